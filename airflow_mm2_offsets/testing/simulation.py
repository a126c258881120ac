"""Two clusters in memory with a simulated MirrorMaker 2 between them; users' tests call it."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast
from unittest.mock import patch

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    Naming,
    OffsetSync,
    SyncsLocation,
    TopicPartition,
    encode_offset_sync,
)
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.testing.clients import in_memory_clients
from airflow_mm2_offsets.testing.clusters import InMemoryCluster
from airflow_mm2_offsets.testing.connect import SimulatedConnect, in_memory_connect, mirror_config
from airflow_mm2_offsets.testing.logs import Record, SourceLog, TargetLog
from airflow_mm2_offsets.testing.mirror import MirrorSettings, MirrorTask
from airflow_mm2_offsets.testing.sync_writer import Sync

_DEFAULT_NAMING = Naming(source_alias="source", target_alias="target")
_DEFAULT_SETTINGS = MirrorSettings()
_EVERYTHING = 2**63 - 1


class Mm2Simulation:
    """Source, target, a MirrorMaker 2 that copies when ``mirror`` is called, and its Connect."""

    def __init__(
        self,
        naming: Naming = _DEFAULT_NAMING,
        *,
        syncs_location: SyncsLocation = SyncsLocation.SOURCE,
        settings: MirrorSettings = _DEFAULT_SETTINGS,
    ) -> None:
        """Make two empty clusters; ``simulated_mm2`` also lets clients find them.

        Args:
            naming: The aliases and the replication policy.
            syncs_location: The cluster that holds the offset-syncs topic.
            settings: How MirrorMaker 2 is set up.
        """
        self.source = InMemoryCluster()
        self.target = InMemoryCluster(log_type=TargetLog)
        self.settings = settings
        self.connect = SimulatedConnect(
            config=mirror_config(naming, syncs_location), committed_offsets=self.committed_offsets
        )
        self.pair = ClusterPair(
            source=self.source.cluster("source"),
            target=self.target.cluster("target"),
            naming=naming,
            syncs_location=syncs_location,
            connect=self.connect.client(),
        )
        """The clusters as the functions below the hooks take them."""
        self._tasks: dict[TopicPartition, MirrorTask] = {}
        self._environment = ExitStack()

    @property
    def syncs_cluster(self) -> InMemoryCluster:
        """The cluster that holds the offset-syncs topic."""
        on_source = self.pair.syncs_location is SyncsLocation.SOURCE
        return self.source if on_source else self.target

    def mirror(self, *, max_records: int = _EVERYTHING, commit: bool = True) -> None:
        """Copy the records that were not copied yet, of all topics of the source.

        Args:
            max_records: How many records of each partition to copy at most.
            commit: Whether Connect commits the source offsets afterwards and MirrorMaker 2 sends
                the delayed offset syncs. Without a commit, MirrorMaker 2 copies the same records
                again after ``restart_worker``.
        """
        for topic in sorted(self.source.topics):
            if not _is_internal(topic):
                self._copy_topic(topic, max_records, commit=commit)

    def restart_worker(self) -> None:
        """Kill the Connect worker and start it again.

        Each task starts after the committed offset and copies all later records again: a rewind
        in the offset syncs.
        """
        for task in self._tasks.values():
            task.kill()

    def write_sync(self, topic: str, partition: int, upstream: int, downstream: int) -> None:
        """Write an offset sync by hand, as if MirrorMaker 2 had sent it.

        Args:
            topic: By the source's name.
            partition: Of the topic.
            upstream: The record's offset on the source.
            downstream: The record's offset on the target.
        """
        sync = OffsetSync(
            topic=topic, partition=partition, upstream=upstream, downstream=downstream
        )
        record = Record(*encode_offset_sync(sync))
        self.syncs_cluster.produce(self.pair.syncs_topic, 0, [record])

    def committed_offsets(self) -> dict[TopicPartition, int]:
        """Return the last copied source offset that Connect has committed, by topic-partition."""
        return {
            partition: task.committed
            for partition, task in self._tasks.items()
            if task.committed is not None
        }

    def use_connection(
        self,
        conn_id: str = "mm2_default",
        *,
        source_conn_id: str = "kafka_source",
        target_conn_id: str = "kafka_target",
        timeout: float = 0.5,
    ) -> None:
        """Let Airflow find the clusters by connections, until ``close``.

        They are environment variables: ``AIRFLOW_CONN_<ID>`` of one ``mm2`` connection and of two
        ``kafka`` connections.

        Args:
            conn_id: Id of the connection of type ``mm2``.
            source_conn_id: Id of the source's connection of type ``kafka``.
            target_conn_id: Id of the target's connection of type ``kafka``.
            timeout: Seconds until a hook gives up a cluster with ``is_running = False``.
        """
        connections: dict[str, dict[str, Any]] = {
            conn_id: self._mm2_connection(source_conn_id, target_conn_id),
            source_conn_id: _kafka_connection(self.source),
            target_conn_id: _kafka_connection(self.target),
        }
        variables = {
            f"AIRFLOW_CONN_{name.upper()}": json.dumps(connection)
            for name, connection in connections.items()
        }
        # A hook's default timeout of 30 s would keep a test of an outage waiting.
        from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook  # noqa: PLC0415 - imports Airflow

        defaults = cast("dict[str, Any]", Mm2OffsetHook.__init__.__kwdefaults__)
        self._environment.enter_context(patch.dict(os.environ, variables))
        self._environment.enter_context(patch.dict(defaults, timeout=timeout))

    def _mm2_connection(self, source_conn_id: str, target_conn_id: str) -> dict[str, Any]:
        naming = self.pair.naming
        extra = {
            "source_kafka_conn_id": source_conn_id,
            "target_kafka_conn_id": target_conn_id,
            "source_alias": naming.source_alias,
            "target_alias": naming.target_alias,
            "replication_policy": naming.policy.value,
            "replication_policy_separator": naming.separator,
            "offset_syncs_topic_location": self.pair.syncs_location.value,
            "connect_url": self.connect.url,
        }
        return {"conn_type": "mm2", "extra": extra}

    def close(self) -> None:
        """Remove the connections of ``use_connection``."""
        self._environment.close()

    def _copy_topic(self, topic: str, max_records: int, *, commit: bool) -> None:
        partitions = len(self.source.topics[topic].partitions)
        self.target.create_topic(self.pair.naming.target_topic(topic), partitions=partitions)
        for number in range(partitions):
            task = self._task(TopicPartition(topic, number))
            task.copy(max_records)
            if commit:
                task.commit()

    def _task(self, partition: TopicPartition) -> MirrorTask:
        """Return the task of a partition, with the logs that the clusters hold now."""
        source = self.source.log(*partition)
        target = self.target.log(*self.pair.on_target(partition))
        if not isinstance(source, SourceLog) or not isinstance(target, TargetLog):
            raise ConfigurationError(
                f"{partition}: the simulated MirrorMaker 2 copies from a "
                f"SourceLog to a TargetLog, not from a {type(source).__name__} to a "
                f"{type(target).__name__}; let the clusters create the topic"
            )
        task = self._tasks.get(partition)
        if task is None:
            topic, number = partition
            task = MirrorTask(
                self.settings, source, target, lambda sync: self._send_sync(topic, number, sync)
            )
            self._tasks[partition] = task
        elif task.target is not target:
            task.task.unacknowledged.clear()
        task.source, task.target = source, target
        return task

    def _send_sync(self, topic: str, partition: int, sync: Sync) -> None:
        self.write_sync(topic, partition, *sync)


@contextmanager
def simulated_mm2(
    naming: Naming = _DEFAULT_NAMING,
    *,
    syncs_location: SyncsLocation = SyncsLocation.SOURCE,
    settings: MirrorSettings = _DEFAULT_SETTINGS,
) -> Iterator[Mm2Simulation]:
    """Yield two empty clusters with a simulated MirrorMaker 2 between them.

    While it is open, every Kafka and Connect client that this package makes in this process finds
    them. Clients of other addresses stay real. Programs that a test starts don't find them.

    Args:
        naming: The aliases and the replication policy.
        syncs_location: The cluster that holds the offset-syncs topic.
        settings: How MirrorMaker 2 is set up.
    """
    simulation = Mm2Simulation(naming, syncs_location=syncs_location, settings=settings)
    with in_memory_clients(), in_memory_connect():
        try:
            yield simulation
        finally:
            simulation.close()


def _is_internal(topic: str) -> bool:
    """Tell whether MirrorMaker 2 leaves a topic out (``DefaultTopicFilter``)."""
    return topic.startswith("__") or topic.endswith((".internal", "-internal", ".replica"))


def _kafka_connection(cluster: InMemoryCluster) -> dict[str, Any]:
    return {"conn_type": "kafka", "extra": {"bootstrap.servers": cluster.bootstrap_servers}}
