"""Reads MirrorMaker 2's heartbeats on the target: the forecast and the readiness checks call it."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import ReplicationPolicy, TopicPartition
from airflow_mm2_offsets.core.naming import HEARTBEATS_TOPIC
from airflow_mm2_offsets.core.wire import decode_heartbeat
from airflow_mm2_offsets.errors import ClusterRefusedError, TopicNotFoundError, WireFormatError
from airflow_mm2_offsets.kafka.tail import read_newest


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeats:
    """The newest heartbeats of the source on the target."""

    topic: str
    times: tuple[int, ...]
    """Milliseconds since 1970; empty where the topic holds none."""


def read_heartbeats(pair: ClusterPair) -> Heartbeats | None:
    """Return the newest heartbeats that came from the source; None if there is no such topic.

    Both of MirrorMaker 2's policies rename the source's heartbeats topic; only some others keep its
    name. A heartbeat there that names this target was written on it.

    Raises:
        ClusterRefusedError: The user may not read the topic.
        ClusterUnreachableError: The target does not answer.
    """
    renamed = _read(pair, pair.naming.heartbeats_topic(), is_shared=False)
    if pair.naming.policy is not ReplicationPolicy.IDENTITY or (renamed and renamed.times):
        return renamed
    with suppress(ClusterRefusedError):  # only other policies need a right on it
        return _read(pair, HEARTBEATS_TOPIC, is_shared=True) or renamed
    return renamed


def _read(pair: ClusterPair, topic: str, *, is_shared: bool) -> Heartbeats | None:
    with suppress(TopicNotFoundError):
        return Heartbeats(topic=topic, times=tuple(_times(pair, topic, is_shared=is_shared)))
    return None


def _times(pair: ClusterPair, topic: str, *, is_shared: bool) -> Iterator[int]:
    for record in read_newest(pair.target, TopicPartition(topic, 0)):
        with suppress(WireFormatError):  # a tombstone, or another program's record
            heartbeat = decode_heartbeat(record.key(), record.value())
            if not is_shared or heartbeat.target_alias != pair.naming.target_alias:
                yield heartbeat.timestamp
