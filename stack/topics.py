"""Creates topics, for the demo and the integration tests."""

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]


def create_topic(servers: str, topic: str, partitions: int = 1) -> None:
    """Create a topic with one replica, and wait until the broker has confirmed it."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(timeout=30)
