"""A simulated MirrorMaker 2 halfway through its work, and the connections that name it."""

import json
from collections.abc import Mapping
from functools import partialmethod
from typing import Any

import pytest

from airflow_mm2_offsets.core import Naming, ReplicationPolicy
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.testing import InMemoryCluster, Mm2Simulation, Record
from airflow_mm2_offsets.testing.logs import TargetLog

SYNCS = "mm2-offset-syncs.target.internal"
RECORDS = [Record(b"key %d" % number, b"value") for number in range(10)]
SHIFT = 5
"""Orders has ten records on each side; what is n on the source is n + 5 on the target."""
_NAMING = Naming(source_alias="source", target_alias="target", policy=ReplicationPolicy.IDENTITY)


class Clusters:
    """A source and a target; MirrorMaker 2 has said 0 -> 5, 4 -> 9 and 9 -> 14 of orders[0]."""

    def __init__(self) -> None:
        self.simulation = Mm2Simulation(_NAMING)
        self.source, self.target = self.simulation.source, self.simulation.target
        for cluster in (self.source, self.target):
            cluster.create_topic("orders", partitions=4)
        for partition in (0, 1):
            self.source.produce("orders", partition, RECORDS)
        self.target.produce("orders", 0, [Record(b"before", b"")] * SHIFT + RECORDS)
        for upstream in (0, 4, 9):
            self.sync(upstream, upstream + SHIFT)

    def copy_the_rest(self) -> None:
        """Let MirrorMaker 2 have copied from the beginning of each partition."""
        for partition in (1, 2, 3):
            self.sync(0, 0, partition)
            self.target.produce("orders", partition, RECORDS)

    def truncate_target(self, end: int) -> None:
        """Remove the records of orders[0] from ``end`` on, as an unclean leader election does."""
        log = self.target.log("orders", 0)
        assert isinstance(log, TargetLog)
        del log.entries[end:]

    def sync(self, upstream: int, downstream: int, partition: int = 0) -> None:
        self.simulation.write_sync("orders", partition, upstream, downstream)

    def connect(
        self, monkeypatch: pytest.MonkeyPatch, target: InMemoryCluster | None = None
    ) -> None:
        """Define the three connections by their default ids."""
        for side, cluster in (("source", self.source), ("target", target or self.target)):
            extra = {"bootstrap.servers": cluster.bootstrap_servers}
            define(monkeypatch, f"kafka_{side}", conn_type="kafka", extra=extra)
        define(monkeypatch, "mm2_default", extra={"replication_policy": "identity"})


def define(
    monkeypatch: pytest.MonkeyPatch,
    conn_id: str,
    *,
    conn_type: str = "mm2",
    extra: Mapping[str, Any] | str | None = None,
    **fields: object,
) -> None:
    """Define a connection, as a variable of the environment does."""
    text = json.dumps({"conn_type": conn_type, "extra": extra, **fields})
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", text)


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let hooks wait a moment only for clusters that are down."""
    init = partialmethod(Mm2OffsetHook.__init__, timeout=0.3)
    monkeypatch.setattr(Mm2OffsetHook, "__init__", init)
