"""Two clusters and the MirrorMaker 2 between them; nearly every function takes the pair."""

from dataclasses import dataclass, replace

from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import (
    Direction,
    Naming,
    OffsetMapping,
    SyncsLocation,
    TopicPartition,
)
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.advice import mechanism
from airflow_mm2_offsets.kafka.cluster import KafkaCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPair:
    """A source, a target, and how MirrorMaker 2 copies from one to the other.

    A job moves from ``source`` to ``target``. An exchanged pair is the way home: its MirrorMaker 2
    copies from ``target`` to ``source``.
    """

    source: KafkaCluster
    target: KafkaCluster
    naming: Naming
    syncs_location: SyncsLocation = SyncsLocation.SOURCE
    connect: ConnectClient | None = None
    """The Connect workers that run the connectors; None if they can't be reached."""
    mapping: OffsetMapping = OffsetMapping.OFFSET_SYNCS
    """What says where the source's records lie on the target."""

    @property
    def has_syncs(self) -> bool:
        """Whether there are offset syncs; a copy that keeps offsets needs none."""
        return self.mapping is OffsetMapping.OFFSET_SYNCS

    @property
    def direction(self) -> Direction:
        """Whether the job moves as MirrorMaker 2 copies, or back."""
        return self.naming.direction

    @property
    def mirrored(self) -> "ClusterPair":
        """The pair as MirrorMaker 2 copies: its source is MirrorMaker 2's."""
        return self if self.direction is Direction.FORWARD else self.exchanged()

    def exchanged(self) -> "ClusterPair":
        """Return the pair seen from the other cluster, with the same syncs.

        ``syncs_location`` is MirrorMaker 2's setting either way.
        """
        return replace(self, source=self.target, target=self.source, naming=self.naming.exchanged())

    def towards(self, cluster: str | None) -> "ClusterPair":
        """Return the pair as a job moves to a cluster: as MirrorMaker 2 copies, or back.

        Args:
            cluster: Its alias; None or empty: MirrorMaker 2's target.

        Raises:
            ConfigurationError: It is neither cluster.
        """
        aliases = self.naming.source_alias, self.naming.target_alias
        if cluster in {None, "", self.naming.target_alias}:
            return self.mirrored
        if cluster == self.naming.source_alias:
            return self.mirrored.exchanged()
        raise ConfigurationError(
            f"the job goes to {cluster!r}, and the mirror has the aliases "
            f"{' and '.join(map(repr, aliases))}: give one of them",
            setting="to",
        )

    @property
    def syncs_cluster(self) -> KafkaCluster:
        """The cluster that holds the offset-syncs topic."""
        on_source = self.syncs_location is SyncsLocation.SOURCE
        return self.mirrored.source if on_source else self.mirrored.target

    @property
    def syncs_topic(self) -> str:
        """The name of the offset-syncs topic.

        Raises:
            ConfigurationError: See ``require_syncs``.
        """
        self.require_syncs()
        return self.naming.syncs_topic(self.syncs_location)

    def require_syncs(self) -> None:
        """Raise unless there are offset syncs.

        Raises:
            ConfigurationError: The copy keeps offsets, so that there is no offset-syncs topic.
        """
        if not self.has_syncs:
            raise ConfigurationError(
                f"the mapping of the pair is {self.mapping}: the copy keeps offsets, and there is "
                f"no offset-syncs topic to read, to list or to archive. Plan the failover of the "
                f"job, or set the mapping to {OffsetMapping.OFFSET_SYNCS}",
                setting="mapping",
            )

    def on_target(self, partition: TopicPartition) -> TopicPartition:
        """Return the name on the target of a partition of the source."""
        return TopicPartition(self.naming.target_topic(partition.topic), partition.partition)

    def throttled(self, ratio: float) -> "ClusterPair":
        """Return the pair for a process that also serves requests; see ``Throttle``."""
        source = replace(self.source, throttle_ratio=ratio)
        target = replace(self.target, throttle_ratio=ratio)
        return replace(self, source=source, target=target)


def checked_logins(pair: ClusterPair) -> ClusterPair:
    """Return a pair whose clusters one process can log in to.

    Raises:
        ConfigurationError: They have different principals of Kerberos: librdkafka's clients share
            the one ticket of the process.
    """
    principals = {
        each.name: str(each.config["sasl.kerberos.principal"])
        for each in (pair.source, pair.target)
        if mechanism(each.config) == "GSSAPI" and "sasl.kerberos.principal" in each.config
    }
    if len(set(principals.values())) > 1:
        named = " and ".join(f"{name}: {each}" for name, each in principals.items())
        raise ConfigurationError(
            "source and target have different principals of Kerberos, and a process has one "
            f"ticket; use one principal that both accept, or another login for one ({named})",
            setting="sasl.kerberos.principal",
        )
    return pair
