"""Reads the newest records of a partition; the readiness checks call it."""

from itertools import chain

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import Record, drain

_OFFSETS = 100
"""How far back to look: transaction markers deliver no record."""


def read_newest(cluster: KafkaCluster, partition: TopicPartition) -> list[Record]:
    """Return the records at a partition's last offsets, in log order; see ``drain`` for errors."""
    (watermarks,) = cluster.watermarks([partition]).values()
    start = max(watermarks.low, watermarks.high - _OFFSETS)
    return list(chain.from_iterable(drain(cluster, {partition: start})))
