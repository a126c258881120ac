"""Shows a world as two in-memory clusters and a simulated Connect."""

from dataclasses import dataclass, replace

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    Naming,
    OffsetSync,
    ReplicationPolicy,
    SyncsLocation,
    TopicPartition,
    encode_offset_sync,
)
from airflow_mm2_offsets.testing import InMemoryCluster, InMemoryTopic, SimulatedConnect
from airflow_mm2_offsets.testing.connect import mirror_config
from airflow_mm2_offsets.testing.logs import FIRST_TIMESTAMP, PartitionLog, Record, SourceLog
from tests.support.mirror_world.world import MirrorWorld
from tests.support.pairs import FILTERING

TOPIC = "orders"
_NAMING = Naming(source_alias="a", target_alias="b", policy=ReplicationPolicy.IDENTITY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The parts of a world that can be reached, and its layout on the clusters."""

    partitions: int
    """How many the topic has; each is the same world, so that one plan answers many positions."""
    cleaned: int = 0
    """So many syncs compaction has removed."""
    connect: bool = True
    """Connect answers."""
    known_before: bool = False
    """Another partition of the topic had a sync before all others: an archive that knows the topic
    notes the watermarks of all its partitions."""
    misnamed: bool = False
    """MirrorMaker 2 calls the topic ``a.orders`` on the target, where an unrelated ``orders``
    lies; the user says that names stay as they are."""


class WorldClusters:
    """The clusters that hold a world."""

    def __init__(self, world: MirrorWorld, reach: Reach, *, on: SyncsLocation) -> None:
        """Make the clusters of what a world holds now.

        Args:
            world: Its logs are read, not copied.
            reach: The parts that can be reached.
            on: Where the syncs topic lies.
        """
        self.world, self.reach = world, reach
        self.source = InMemoryCluster(cluster_id="source")
        self.target = InMemoryCluster(cluster_id="target")
        self._syncs_cluster = self.target if on is SyncsLocation.TARGET else self.source
        self._connect = self._make_connect(on)
        self.pair = ClusterPair(
            source=self.source.cluster("source"),
            target=self.target.cluster("target"),
            naming=_NAMING,
            syncs_location=on,
            connect=self._connect.client() if reach.connect else None,
        )
        self.refresh()

    def refresh(self) -> None:
        """Show the world's current logs; Connect's committed offset stays."""
        world, reach = self.world, self.reach
        self.source.topics[TOPIC] = self._topic("s", world.source)
        self.target.topics[TOPIC] = self._topic("t", world.target)
        self.target.topics[TOPIC].log_append_time = world.mirror.settings.append_time
        if reach.misnamed:
            self.target.topics[f"a.{TOPIC}"] = self.target.topics[TOPIC]
            self.target.topics[TOPIC] = self._topic("local", _local_log(world.target))
        self._syncs_cluster.topics[self.pair.syncs_topic] = InMemoryTopic(
            topic_id=f"syncs-{world.syncs.incarnation}",
            partitions=[_syncs_log(world, reach)],
        )

    def _topic(self, side: str, log: PartitionLog) -> InMemoryTopic:
        incarnation = getattr(log, "incarnation", 0)
        return InMemoryTopic(
            topic_id=f"{side}-{incarnation}", partitions=[log] * self.reach.partitions
        )

    def _make_connect(self, on: SyncsLocation) -> SimulatedConnect:
        last = self.world.mirror.committed
        numbers = range(self.reach.partitions) if last is not None else ()
        offsets = {TopicPartition(TOPIC, number): last or 0 for number in numbers}
        policy = ReplicationPolicy.DEFAULT if self.reach.misnamed else ReplicationPolicy.IDENTITY
        filtering = FILTERING if self.world.mirror.settings.dropped else {}
        return SimulatedConnect(
            config={**mirror_config(replace(_NAMING, policy=policy), on), **filtering},
            committed_offsets=lambda: offsets,
        )


def _local_log(like: PartitionLog) -> SourceLog:
    """Return the log of another writer's topic, as long as another."""
    records = {
        offset: Record(b"local", b"%d" % offset, 10**12 + offset)
        for offset in range(like.low, like.high)
    }
    return SourceLog(low=like.low, high=like.high, records=records)


def _syncs_log(world: MirrorWorld, reach: Reach) -> SourceLog:
    syncs = [
        OffsetSync(topic=TOPIC, partition=number, upstream=up, downstream=down)
        for up, down in world.syncs.syncs
        for number in range(reach.partitions)
    ]
    before = OffsetSync(topic=TOPIC, partition=reach.partitions, upstream=0, downstream=0)
    others = [before] if reach.known_before else []
    begin = reach.cleaned * reach.partitions
    left = [*enumerate(others), *enumerate(syncs[begin:], begin + len(others))]
    records = {offset: Record(*encode_offset_sync(sync), FIRST_TIMESTAMP) for offset, sync in left}
    return SourceLog(high=len(others) + len(syncs), records=records)
