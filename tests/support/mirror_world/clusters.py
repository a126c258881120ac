"""A world as two clusters and a Connect that can be asked."""

from dataclasses import dataclass

from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import (
    Naming,
    OffsetSync,
    ReplicationPolicy,
    SyncsLocation,
    encode_offset_sync,
)
from airflow_mm2_offsets.service.pair import ClusterPair
from tests.support.memory_brokers import (
    MemoryBroker,
    MemoryPartition,
    MemoryRecord,
    MemoryTopic,
)
from tests.support.mirror_world.logs import SourceLog, TargetLog
from tests.support.mirror_world.world import World
from tests.unit.service.pairs import connect

TOPIC = "orders"
_NAMING = Naming(source_alias="a", target_alias="b", policy=ReplicationPolicy.IDENTITY)
_POLICIES = "org.apache.kafka.connect.mirror"
_POLICY = "replication.policy.class"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What of a world can be asked, and how it lies there."""

    partitions: int
    """How many the topic has; each is the same world, so that one plan answers many positions."""
    cleaned: int = 0
    """So many syncs compaction has removed."""
    connect: bool = True
    """Connect can be asked."""
    misnamed: bool = False
    """MirrorMaker 2 calls the topic ``a.orders`` on the target, where an ``orders`` of its own
    lies; the user says that names stay as they are."""


class WorldClusters:
    """The clusters that hold a world."""

    def __init__(self, world: World, reach: Reach, *, on: SyncsLocation) -> None:
        """Make the clusters of what a world holds now.

        Args:
            world: It is copied.
            reach: What can be asked.
            on: Where the syncs topic lies.
        """
        self.world, self.reach = world, reach
        self.source, self.target = (
            MemoryBroker(cluster_id="source"),
            MemoryBroker(cluster_id="target"),
        )
        self._syncs_broker = self.target if on is SyncsLocation.TARGET else self.source
        self.pair = ClusterPair(
            source=self.source.cluster("source"),
            target=self.target.cluster("target"),
            naming=_NAMING,
            syncs_location=on,
            connect=self._connect() if reach.connect else None,
        )
        self.refresh()

    def refresh(self) -> None:
        """Take over what has happened to the world since; not what Connect has noted."""
        world, number = self.world, self.reach.partitions
        self.source.topics[TOPIC] = _topic("s", world.source, _source(world.source), number)
        self.target.topics[TOPIC] = _topic("t", world.target, _target(world), number)
        if self.reach.misnamed:
            self.target.topics[f"a.{TOPIC}"] = self.target.topics[TOPIC]
            self.target.topics[TOPIC] = _local_topic(world.target, number)
        self._syncs_broker.topics[self.pair.syncs_topic] = MemoryTopic(
            id=f"syncs-{world.syncs.incarnation}",
            partitions=[_syncs(world, number, self.reach.cleaned)],
        )

    def _connect(self) -> ConnectClient:
        last = self.world.mirror.noted
        places = range(self.reach.partitions) if last is not None else ()
        policy = "DefaultReplicationPolicy" if self.reach.misnamed else "IdentityReplicationPolicy"
        return connect(
            {(TOPIC, number): last or 0 for number in places},
            config={_POLICY: f"{_POLICIES}.{policy}"},
        )


def _local_topic(like: TargetLog, partitions: int) -> MemoryTopic:
    """Return a topic that others write to, as long as another."""
    records = [
        MemoryRecord(offset, b"local", b"%d" % offset, 10**12 + offset)
        for offset in range(like.low, like.high)
    ]
    partition = MemoryPartition(low=like.low, high=like.high, records=records)
    return MemoryTopic(id="local", partitions=[partition] * partitions)


def _topic(
    side: str, log: SourceLog | TargetLog, records: list[MemoryRecord], partitions: int
) -> MemoryTopic:
    stable = log.stable if isinstance(log, SourceLog) else None
    partition = MemoryPartition(low=log.low, high=log.high, stable=stable, records=records)
    return MemoryTopic(id=f"{side}-{log.incarnation}", partitions=[partition] * partitions)


def _source(log: SourceLog) -> list[MemoryRecord]:
    return [MemoryRecord(offset, *record) for offset, record in log.records.items()]


def _target(world: World) -> list[MemoryRecord]:
    log, append_time = world.target, world.mirror.settings.append_time
    return [
        MemoryRecord(offset, *entry.record, append_time)
        for offset, entry in enumerate(log.entries)
        if entry.record is not None and offset >= log.low
    ]


def _syncs(world: World, partitions: int, cleaned: int) -> MemoryPartition:
    syncs = [
        OffsetSync(topic=TOPIC, partition=number, upstream=up, downstream=down)
        for up, down in world.syncs.syncs
        for number in range(partitions)
    ]
    begin = cleaned * partitions
    records = [
        MemoryRecord(offset, *encode_offset_sync(sync))
        for offset, sync in enumerate(syncs[begin:], begin)
    ]
    return MemoryPartition(high=len(syncs), records=records)
