"""The wait for MirrorMaker 2 where a filter drops the last records: it ends when all is quiet."""

from typing import Any

import pytest

from airflow_mm2_offsets.triggers import replication
from airflow_mm2_offsets.triggers.polling import Done, NotYet
from airflow_mm2_offsets.triggers.replication import ReplicatedTrigger
from tests.unit.operators.clusters import RECORDS, Clusters

QUIET_AFTER = 30.0


class Wait:
    """A wait in the triggerer, and its clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, positions: dict[str, Any]) -> None:
        self.now = 0.0
        monkeypatch.setattr(replication, "time", self)
        self._trigger = ReplicatedTrigger(
            mm2_conn_id="mm2_default",
            positions=positions,
            quiet_after=QUIET_AFTER,
            deadline=1e10,
            poll_interval=2.0,
        )

    def monotonic(self) -> float:
        return self.now

    def has_ended_after(self, seconds: float) -> bool:
        self.now += seconds
        found = self._trigger.poll()
        assert isinstance(found, Done | NotYet)
        return isinstance(found, Done)


@pytest.fixture
def dropped(clusters: Clusters) -> Clusters:
    """The source's last three records of partition 1 are not copied."""
    clusters.copy_the_rest()
    clusters.sync(9, 9, 1)
    clusters.source.produce("orders", 1, RECORDS[:3])
    return clusters


@pytest.fixture
def wait(dropped: Clusters, monkeypatch: pytest.MonkeyPatch) -> Wait:
    assert dropped
    return Wait(monkeypatch, {"orders": {"1": 12}})


def test_it_ends_when_neither_cluster_has_changed(wait: Wait) -> None:
    assert not wait.has_ended_after(0)
    assert not wait.has_ended_after(QUIET_AFTER - 1)
    assert wait.has_ended_after(1)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_change_of_either_cluster_begins_it_anew(
    wait: Wait, dropped: Clusters, side: str
) -> None:
    wait.has_ended_after(0)
    wait.has_ended_after(QUIET_AFTER - 1)
    getattr(dropped, side).produce("orders", 1, RECORDS[:1])
    assert not wait.has_ended_after(1)
    assert not wait.has_ended_after(QUIET_AFTER - 1)
    assert wait.has_ended_after(1)


@pytest.mark.parametrize(
    "positions",
    [
        pytest.param({"orders": {"1": 12, "0": 12}}, id="what was copied before is not known"),
        pytest.param({"orders": {"1": 12}, "refunds": {"0": 3}}, id="nothing of it was copied"),
    ],
)
def test_it_does_not_end_where_more_than_the_last_records_is_open(
    dropped: Clusters, monkeypatch: pytest.MonkeyPatch, positions: dict[str, Any]
) -> None:
    dropped.source.produce("orders", 0, RECORDS[:3])
    for cluster in (dropped.source, dropped.target):
        cluster.create_topic("refunds", partitions=1)
    dropped.source.produce("refunds", 0, RECORDS)
    wait = Wait(monkeypatch, positions)
    wait.has_ended_after(0)
    assert not wait.has_ended_after(100 * QUIET_AFTER)


def test_it_does_not_end_while_records_are_copied_again(
    dropped: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newer copies are on their way: what is not there yet would be read twice."""
    dropped.sync(2, 15)
    dropped.target.produce("orders", 0, RECORDS[2:4])
    wait = Wait(monkeypatch, {"orders": {"0": 4}})
    wait.has_ended_after(0)
    assert not wait.has_ended_after(100 * QUIET_AFTER)
