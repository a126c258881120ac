"""One live broker, and a topic full of offset syncs."""

from functools import partial

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from airflow_mm2_offsets.core import encode_offset_sync
from benchmarks.load import Load
from stack.local import LocalStack
from stack.process import accepts


class OneBroker(LocalStack):
    """The stack's source cluster alone."""

    def start(self) -> None:
        """Start the broker and wait until it answers."""
        self._format()
        broker = self._brokers["source"]
        broker.start()
        broker.wait_ready(partial(accepts, self.source), progress=self.progress)


def fill(servers: str, topic: str, load: Load) -> None:
    """Make ``topic`` and write all syncs of ``load`` to it.

    Raises:
        KafkaException: The topic can't be made.
        RuntimeError: The broker did not take all of them within a minute.
    """
    admin = AdminClient({"bootstrap.servers": servers})
    # Nothing is compacted away meanwhile: the cleaner leaves the segment that is written to.
    config = {"cleanup.policy": "compact"}
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(timeout=30)
    append(servers, topic, load)


def append(servers: str, topic: str, load: Load, *, first: int = 0) -> None:
    """Write all syncs of ``load`` to ``topic``; ``first``: how many of each partition it holds.

    Raises:
        RuntimeError: The broker did not take all of them within a minute.
    """
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "queue.buffering.max.messages": load.count,
            # Else a batch that is sent again, as may be while a topic is new, comes out of order.
            "enable.idempotence": True,
        }
    )
    for sync in load.in_log_order(first):
        key, value = encode_offset_sync(sync)
        producer.produce(topic, value, key, partition=0)
    if left := producer.flush(60):
        raise RuntimeError(f"{left} of {load.count} syncs were not written in a minute")
