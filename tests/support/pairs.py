"""Clusters in memory with records and offset syncs placed by hand, for the cases of unit tests."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Naming, ReplicationPolicy, SyncsLocation, TopicPartition
from airflow_mm2_offsets.testing import InMemoryCluster, Mm2Simulation, Record, SimulatedConnect
from airflow_mm2_offsets.testing.connect import mirror_config
from airflow_mm2_offsets.testing.logs import FIRST_TIMESTAMP

PARTITIONS = 4
"""How many partitions a topic has."""
NAMING = Naming(source_alias="a", target_alias="b", policy=ReplicationPolicy.IDENTITY)
STOPPED = InMemoryCluster(cluster_id="stopped", is_running=False)
"""A cluster that never answers."""
STOPPED_CONNECT = SimulatedConnect(config={}, is_running=False)
"""A Connect worker that never answers."""

FILTERING: Mapping[str, str] = {
    "transforms": "drop",
    "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
}
"""What a connector's configuration says of a filter."""


class Pair:
    """A source, a target, and offset syncs on the target."""

    def __init__(self) -> None:
        self.simulation = Mm2Simulation(NAMING, syncs_location=SyncsLocation.TARGET)
        self.source, self.target = self.simulation.source, self.simulation.target
        self.pair = replace(self.simulation.pair, connect=None)

    def write(self, topic: str, numbers: Iterable[int], partition: int = 0) -> None:
        """Write numbered records to the source."""
        _write(self.source, topic, numbers, partition)

    def copy(self, topic: str, numbers: Iterable[int], partition: int = 0) -> None:
        """Write numbered records to the target."""
        _write(self.target, topic, numbers, partition)

    def filter(self) -> None:
        """Let Connect say that a filter drops records."""
        worker = self.simulation.connect
        worker.config = {**worker.config, **FILTERING}
        self.pair = replace(self.pair, connect=worker.client())

    def sync(self, topic: str, *syncs: tuple[int, int], partition: int = 0) -> None:
        """Write offset syncs."""
        for upstream, downstream in syncs:
            self.simulation.write_sync(topic, partition, upstream, downstream)


def _write(cluster: InMemoryCluster, topic: str, numbers: Iterable[int], partition: int) -> None:
    """Write records whose content and timestamp follow from their numbers."""
    cluster.create_topic(topic, partitions=PARTITIONS)
    records = (Record(b"key", b"%d" % number, FIRST_TIMESTAMP + number) for number in numbers)
    cluster.produce(topic, partition, records)


def connect(
    offsets: Mapping[tuple[str, int], int] | None = None,
    *,
    state: str = "RUNNING",
    config: Mapping[str, str] = MappingProxyType({}),
    tasks: Iterable[Mapping[str, Any]] = ({"id": 0, "state": "RUNNING"},),
) -> ConnectClient:
    """Return a client of a Connect with one connector from a to b.

    Args:
        offsets: The last copied offset of each topic and partition.
        state: The connector's.
        config: What its configuration says beside its class and the aliases.
        tasks: Their states.
    """
    copied = {TopicPartition(*partition): offset for partition, offset in (offsets or {}).items()}
    worker = SimulatedConnect(
        config={**mirror_config(NAMING, SyncsLocation.TARGET), **config},
        committed_offsets=lambda: copied,
        state=state,
        tasks=list(tasks),
        url="http://connect:8083",
    )
    return worker.client()
