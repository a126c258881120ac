"""Reads when the newest offset syncs were written, for the page; the index keeps no times."""

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.wire import decode_offset_sync
from airflow_mm2_offsets.errors import WireFormatError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import drain
from airflow_mm2_offsets.kafka.sync_log import SYNCS_PARTITION

NEWEST = 20_000
"""How many offsets of the topic are read: about a second's work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedSync:
    """An offset sync, and when it was written."""

    time: int
    """Milliseconds since 1970: the record's timestamp."""
    upstream: int
    """An offset on the source."""
    downstream: int
    """An offset on the target."""

    @property
    def shift(self) -> int:
        """Target offset less source offset."""
        return self.downstream - self.upstream


def read_sync_times(
    cluster: KafkaCluster, topic: str, newest: int = NEWEST
) -> dict[TopicPartition, list[TimedSync]]:
    """Return the newest offset syncs by topic-partition, in log order.

    Records that are no offset syncs are passed over: who reads the index counts them.

    Args:
        cluster: The cluster that holds the offset-syncs topic.
        topic: Its name.
        newest: How many of the topic's last offsets are read.

    Raises:
        Mm2OffsetsError: See ``drain``.
    """
    partition = TopicPartition(topic, SYNCS_PARTITION)
    (watermarks,) = cluster.watermarks([partition]).values()
    start = max(watermarks.low, watermarks.high - newest)
    syncs: dict[TopicPartition, list[TimedSync]] = defaultdict(list)
    for batch in drain(cluster, {partition: start}):
        for record in batch:
            with suppress(WireFormatError):
                sync = decode_offset_sync(record.key(), record.value())
                syncs[TopicPartition(sync.topic, sync.partition)].append(
                    TimedSync(
                        time=record.timestamp()[1],
                        upstream=sync.upstream,
                        downstream=sync.downstream,
                    )
                )
    return dict(syncs)
