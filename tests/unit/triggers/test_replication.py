"""The wait for MirrorMaker 2, look by look."""

from typing import Any

import pytest

from airflow_mm2_offsets.errors import (
    ClusterUnreachableError,
    ConfigurationError,
)
from airflow_mm2_offsets.triggers.polling import Done, NotYet
from airflow_mm2_offsets.triggers.replication import ReplicatedTrigger
from tests.support.pairs import STOPPED
from tests.unit.operators.clusters import Clusters, define, impatient
from tests.unit.triggers.times import TIMES


def _behind(positions: dict[str, Any]) -> Done | NotYet:
    return ReplicatedTrigger(mm2_conn_id="mm2_default", positions=positions, **TIMES).poll()


@pytest.mark.usefixtures("clusters")
@pytest.mark.parametrize("positions", [{"orders": {"0": 4}}, {"orders": {0: "7"}}])
def test_what_a_sync_has_passed_is_replicated(positions: dict[str, Any]) -> None:
    """A sync at or after the position ends the wait; keys and numbers may be text."""
    assert isinstance(_behind(positions), Done)


def test_each_partition_that_is_behind_is_named(clusters: Clusters) -> None:
    """The reason names partition and position, and only those that are behind."""
    waiting = _behind({"orders": {"0": 4, "1": 3}})
    assert isinstance(waiting, NotYet)
    assert waiting.reason.startswith("orders[1] at 3 no offset sync is known")
    clusters.copy_the_rest()
    clusters.sync(9, 9, partition=1)
    assert _behind({"orders": {"0": 4, "1": 3}}) == Done(
        result={"source_ends": {"orders": {"0": "0 5 10"}}}
    )


def test_a_cluster_that_is_down_is_left_to_the_wait(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The poll raises what every wait takes for not there yet."""
    assert clusters
    impatient(monkeypatch)
    down = {"bootstrap.servers": STOPPED.bootstrap_servers}
    define(monkeypatch, "kafka_target", conn_type="kafka", extra=down)
    with pytest.raises(ClusterUnreachableError, match=r"target cluster \(kafka_target\)"):
        _behind({"orders": {"0": 4}})


def test_a_connection_that_is_gone_ends_the_wait() -> None:
    """No waiting mends a connection: the poll raises its error."""
    with pytest.raises(ConfigurationError, match="connection mm2_default does not exist"):
        _behind({"orders": {"0": 4}})
