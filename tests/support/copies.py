"""Copies that keep offsets, and copies that only seem to, between two clusters in memory."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Naming, OffsetMapping, ReplicationPolicy, TopicPartition
from airflow_mm2_offsets.testing import InMemoryCluster, Record
from airflow_mm2_offsets.testing.logs import FIRST_TIMESTAMP, SourceLog

NAMING = Naming(source_alias="a", target_alias="b", policy=ReplicationPolicy.IDENTITY)
TOPIC = "orders"
KEY = TopicPartition(TOPIC, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What lies at one offset: a record, or nothing that is delivered."""

    origin: int | None
    """The source offset that it copies; None: of another writer."""
    record: Record | None


def numbered(number: int, *, key: bytes = b"key") -> Record:
    """Return a record whose content follows from a number."""
    return Record(key, b"%d" % number, FIRST_TIMESTAMP + number)


def entries_of(records: Iterable[Record | None]) -> list[Entry]:
    """Return the entries of a source; None is a transaction marker."""
    return [Entry(origin=origin, record=record) for origin, record in enumerate(records)]


@dataclass(slots=True, kw_only=True)
class Copies:
    """Two clusters with one partition each, and what a job would lose."""

    source: InMemoryCluster = field(default_factory=InMemoryCluster)
    target: InMemoryCluster = field(default_factory=InMemoryCluster)
    naming: Naming = NAMING
    entries: list[Entry] = field(default_factory=list)
    """The target's."""

    @property
    def pair(self) -> ClusterPair:
        """The clusters as planning takes them."""
        return ClusterPair(
            source=self.source.cluster("source", timeout=0.3),
            target=self.target.cluster("target", timeout=0.3),
            naming=self.naming,
            mapping=OffsetMapping.IDENTITY,
        )

    def fill(self, source: Sequence[Entry], target: Sequence[Entry]) -> "Copies":
        """Write both logs."""
        self.entries = list(target)
        for cluster, name, entries in (
            (self.source, TOPIC, source),
            (self.target, self.naming.target_topic(TOPIC), target),
        ):
            cluster.create_topic(name)
            _fill(self.log(cluster, name), entries)
        return self

    def log(self, cluster: InMemoryCluster, topic: str = TOPIC) -> SourceLog:
        """Return a cluster's log."""
        log = cluster.log(topic, 0)
        assert isinstance(log, SourceLog)
        return log

    def compact(self, *clusters: InMemoryCluster) -> None:
        """Set ``cleanup.policy`` to compact."""
        for cluster in clusters:
            for topic in cluster.topics.values():
                topic.settings["cleanup.policy"] = "compact"

    def lost(self, position: int, start: int) -> Counter[Any]:
        """Return what a job at ``position`` misses of the copies, if it starts at ``start``.

        Records of equal content can't be told apart by a job: they are counted.
        """
        unread = Counter(
            entry.record
            for entry in self.entries
            if entry.record and entry.origin is not None and entry.origin >= position
        )
        delivered = Counter(entry.record for entry in self.entries[start:] if entry.record)
        return unread - delivered


def _fill(log: SourceLog, entries: Sequence[Entry]) -> None:
    for entry in entries:
        if entry.record is None:
            log.skip(1)
        else:
            log.write(entry.record)
