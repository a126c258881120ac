"""Two clusters and the MirrorMaker 2 between them."""

from dataclasses import dataclass, replace

from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Naming, SyncIndex, SyncsLocation, TopicPartition
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import Progress
from airflow_mm2_offsets.kafka.syncs import SyncsRead, read_syncs


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPair:
    """A source, a target, and how MirrorMaker 2 copies from one to the other."""

    source: KafkaCluster
    target: KafkaCluster
    naming: Naming
    syncs_location: SyncsLocation = SyncsLocation.SOURCE
    connect: ConnectClient | None = None
    """The workers that run the connectors; None where they can't be asked."""

    @property
    def syncs_cluster(self) -> KafkaCluster:
        """The cluster that holds the offset-syncs topic."""
        return self.source if self.syncs_location is SyncsLocation.SOURCE else self.target

    @property
    def syncs_topic(self) -> str:
        """The name of the offset-syncs topic."""
        return self.naming.syncs_topic(self.syncs_location)

    def on_target(self, partition: TopicPartition) -> TopicPartition:
        """Return what a partition of the source is called on the target."""
        return TopicPartition(self.naming.target_topic(partition.topic), partition.partition)

    def resting(self, rest: float) -> "ClusterPair":
        """Return the pair as a process should read it that answers meanwhile; see ``Pace``."""
        source, target = replace(self.source, rest=rest), replace(self.target, rest=rest)
        return replace(self, source=source, target=target)

    def read_syncs(
        self,
        *,
        start: int = 0,
        known: SyncIndex | None = None,
        progress: Progress | None = None,
    ) -> SyncsRead:
        """Read the offset-syncs topic; see ``kafka.syncs.read_syncs``.

        Args:
            start: The first offset to read: ``next_offset`` of an earlier read.
            known: The index of that earlier read, which the result continues.
            progress: Told the number of records read and the seconds passed.

        Raises:
            SyncsTopicError: The topic is missing, holds no sync, or was made again or truncated
                since ``start``.
            ClusterUnreachableError: Its cluster does not answer.
        """
        return read_syncs(
            self.syncs_cluster, self.syncs_topic, start=start, known=known, progress=progress
        )
