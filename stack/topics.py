"""Creates topics, for the demo and the integration tests."""

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from stack.waiting import wait_until


def create_topic(servers: str, topic: str, partitions: int = 1) -> None:
    """Create a topic with one replica, and wait until the broker can be asked for it.

    The controller confirms a topic before the broker has heard of it, or leads its partitions.
    """
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(timeout=30)
    wait_until(lambda: _led_partitions(admin, topic) == partitions, f"{topic} to be there")


def _led_partitions(admin: AdminClient, topic: str) -> int:
    found = admin.list_topics(timeout=30).topics.get(topic)
    return sum(each.leader >= 0 for each in found.partitions.values()) if found else 0
