"""A world as two clusters and a Connect that can be asked."""

from dataclasses import dataclass

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


@dataclass(slots=True, kw_only=True)
class WorldClusters:
    """The clusters that hold a world; each partition of the topic is the same world.

    So one plan answers many positions.
    """

    source: MemoryBroker
    target: MemoryBroker
    pair: ClusterPair

    @classmethod
    def of(
        cls,
        world: World,
        *,
        partitions: int,
        cleaned: int = 0,
        location: SyncsLocation = SyncsLocation.TARGET,
        asks_connect: bool = True,
    ) -> "WorldClusters":
        """Make the clusters of what a world holds now.

        Args:
            world: It is copied.
            partitions: How many partitions the topic has.
            cleaned: So many syncs compaction has removed.
            location: Where the syncs topic lies.
            asks_connect: Connect can be asked; else it is lost.
        """
        source, target = MemoryBroker(cluster_id="source"), MemoryBroker(cluster_id="target")
        source.topics[TOPIC] = _topic("s", world.source, _source(world.source), partitions)
        target.topics[TOPIC] = _topic("t", world.target, _target(world), partitions)
        noted = (
            {}
            if world.mirror.noted is None
            else {(TOPIC, n): world.mirror.noted for n in range(partitions)}
        )
        pair = ClusterPair(
            source=source.cluster("source"),
            target=target.cluster("target"),
            naming=_NAMING,
            syncs_location=location,
            connect=connect(noted) if asks_connect else None,
        )
        syncs = _syncs(world, partitions, cleaned)
        broker = source if location is SyncsLocation.SOURCE else target
        broker.topics[pair.syncs_topic] = MemoryTopic(
            id=f"syncs-{world.syncs.incarnation}", partitions=[syncs]
        )
        return cls(source=source, target=target, pair=pair)


def _topic(
    side: str, log: SourceLog | TargetLog, records: list[MemoryRecord], partitions: int
) -> MemoryTopic:
    partition = MemoryPartition(low=log.low, high=log.high, records=records)
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
