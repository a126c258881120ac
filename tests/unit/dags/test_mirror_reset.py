"""MirrorMaker 2 is reset between the plan and the start of the target job, and copies again."""

import re
from collections.abc import Callable

import pytest

from airflow_mm2_offsets.errors import PlanError
from airflow_mm2_offsets.testing import Record
from tests.support.pairs import STOPPED
from tests.unit.dags.failovers import STARTING, Failover
from tests.unit.operators.clusters import RECORDS, SYNCS, Clusters, define, impatient

MORE = [Record(b"key %d" % number, b"value") for number in range(10, 30)]


def _copy_all_again(clusters: Clusters) -> None:
    clusters.target.produce("orders", 0, RECORDS)
    for upstream in (0, 4, 9):
        clusters.sync(upstream, upstream + 15)


def _begin_to_copy_again(clusters: Clusters) -> None:
    clusters.target.produce("orders", 0, RECORDS[:2])
    clusters.sync(0, 15)


def _copy_again_with_late_sync(clusters: Clusters) -> None:
    """Copy all again; a newer sync overwrote the first one before it was sent."""
    clusters.target.produce("orders", 0, RECORDS)
    clusters.sync(9, 24)


def _truncate_and_copy_again(clusters: Clusters) -> None:
    clusters.truncate_target(3)
    clusters.target.produce("orders", 0, RECORDS)
    for upstream in (0, 4, 9):
        clusters.sync(upstream, upstream + 3)


def _truncate_and_begin_to_copy_again(clusters: Clusters) -> None:
    clusters.truncate_target(3)
    clusters.target.produce("orders", 0, [*RECORDS[:2], *RECORDS[:2], *RECORDS[:2]])
    clusters.sync(0, 3)


AGAIN = "MirrorMaker 2 has gone back to {} on the source since the plan was made, and has copied "
RESETS = [
    (_copy_all_again, f"is at 19 there now: {AGAIN.format(0)}again from 15 on"),
    (_begin_to_copy_again, f"is at 0 or later there now: {AGAIN.format(0)}again from 15 on"),
    (_copy_again_with_late_sync, f"is at 19 there now: {AGAIN.format(9)}again from 24 on"),
    (_truncate_and_copy_again, "is at 7 there now, so the job would lose records"),
    (_truncate_and_begin_to_copy_again, "may not have copied again all records"),
]


@pytest.mark.parametrize("cleared", ["start_target", "translate"])
@pytest.mark.parametrize(("reset", "named"), RESETS)
def test_a_plan_from_before_a_reset_starts_nothing(
    run: Failover,
    clusters: Clusters,
    reset: Callable[[Clusters], None],
    named: str,
    cleared: str,
) -> None:
    """The start is within the target, and no answer any more: both values and the step are told."""
    run.run_until("start_target")
    reset(clusters)
    with pytest.raises(PlanError) as caught:
        run.run(cleared)
    assert re.search(r"json: orders\[0\]: starts at 9 for position 4: ", str(caught.value))
    assert named in str(caught.value)
    assert "Delete the file and clear the task that translates, with all after" in str(caught.value)
    assert not run.worker.triggered


def test_the_step_leads_to_a_start_after_a_reset(run: Failover, clusters: Clusters) -> None:
    """A new plan is of the newest copies."""
    run.run_until("start_target")
    _copy_all_again(clusters)
    run.plan_path().unlink()
    for each in ("translate", "approve", "start_target"):
        run.run(each)
    assert run.starting_offsets() == [STARTING.replace("9", "19")]


def _copy_more(clusters: Clusters) -> None:
    clusters.source.produce("orders", 0, MORE)
    clusters.target.produce("orders", 0, MORE)
    clusters.sync(20, 25)


def _write_more(clusters: Clusters) -> None:
    for partition in (0, 2, 3):
        clusters.source.produce("orders", partition, MORE)


def _restart_behind_the_position(clusters: Clusters) -> None:
    clusters.target.produce("orders", 0, RECORDS[7:])
    for upstream in (7, 9):
        clusters.sync(upstream, upstream + 8)


def _lose_source_records(clusters: Clusters) -> None:
    clusters.source.delete_records("orders", 0, 10)


def _delete_syncs(clusters: Clusters) -> None:
    clusters.source.delete_records(SYNCS, 0, clusters.source.log(SYNCS, 0).high)


@pytest.mark.parametrize(
    "change",
    [
        _copy_more,
        _write_more,
        _restart_behind_the_position,
        _lose_source_records,
        _delete_syncs,
    ],
)
@pytest.mark.parametrize("cleared", ["start_target", "translate"])
def test_a_plan_that_nothing_contradicts_is_gone_by(
    run: Failover, clusters: Clusters, change: Callable[[Clusters], None], cleared: str
) -> None:
    """Producers write on, MirrorMaker 2 goes on, or less can be read than for the plan."""
    run.run_until("start_target")
    change(clusters)
    run.run(cleared)
    run.run("start_target")
    assert run.starting_offsets() == [STARTING]


def test_a_source_that_is_lost_with_the_syncs_does_not_hold_the_job_back(
    run: Failover, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says that nothing was compared; it names the cluster."""
    run.run_until("start_target")
    impatient(monkeypatch)
    down = {"bootstrap.servers": STOPPED.bootstrap_servers}
    define(monkeypatch, "kafka_source", conn_type="kafka", extra=down)
    run.run("start_target")
    assert run.worker.triggered
    assert "not compared with what was copied since it was made: source" in caplog.text
