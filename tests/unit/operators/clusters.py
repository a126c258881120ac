"""Two clusters in the test's own process, and the connections that name them."""

import json
from collections.abc import Mapping
from functools import partialmethod
from typing import Any

import pytest

from airflow_mm2_offsets.core import OffsetSync, encode_offset_sync
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from tests.unit.kafka.brokers import MockBroker
from tests.unit.kafka.brokers import describable as describable  # noqa: PLC0414 - for importers

SYNCS = "mm2-offset-syncs.target.internal"
RECORDS = [(b"key %d" % number, b"value") for number in range(10)]
SHIFT = 5
"""Orders has ten records on each side; what is n on the source is n + 5 on the target."""


class Clusters:
    """A source and a target; MirrorMaker 2 has said 0 -> 5, 4 -> 9 and 9 -> 14 of orders[0]."""

    def __init__(self) -> None:
        self.source, self.target = MockBroker(), MockBroker()
        for partition in (0, 1):
            self.source.write("orders", RECORDS, partition)
        self.target.write("orders", [(b"before", b"")] * SHIFT + RECORDS)
        for upstream in (0, 4, 9):
            self.sync(upstream, upstream + SHIFT)

    def copy_the_rest(self) -> None:
        """Let MirrorMaker 2 have copied from the beginning of each partition."""
        for partition in (1, 2, 3):
            self.sync(0, 0, partition)
            self.target.write("orders", RECORDS, partition)

    def sync(self, upstream: int, downstream: int, partition: int = 0) -> None:
        pair = OffsetSync(
            topic="orders", partition=partition, upstream=upstream, downstream=downstream
        )
        self.source.write(SYNCS, [encode_offset_sync(pair)])

    def target_id(self) -> str | None:
        return self.target.cluster().describe().cluster_id

    def connect(self, monkeypatch: pytest.MonkeyPatch, target: MockBroker | None = None) -> None:
        """Define the three connections by their default ids."""
        for side, broker in (("source", self.source), ("target", target or self.target)):
            extra = {"bootstrap.servers": broker.servers}
            define(monkeypatch, f"kafka_{side}", conn_type="kafka", extra=extra)
        define(monkeypatch, "mm2_default", extra={"replication_policy": "identity"})

    def stop(self) -> None:
        self.source.stop()
        self.target.stop()


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
