"""The failover DAG where copies keep their offsets: no syncs topic, no Connect."""

from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.errors import NotReadyError, PlanError, TranslationRefusedError
from airflow_mm2_offsets.testing import Record
from tests.unit.dags.dags_folder import STEPS
from tests.unit.dags.failovers import MOVING, STARTING, Failover
from tests.unit.dags.test_disaster import Disaster
from tests.unit.dags.ways_home import JobOnTarget, way_home
from tests.unit.operators.clusters import RECORDS, SYNCS, Clusters, define
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker

SAME = STARTING
UNTIL_STARTED = STEPS[: STEPS.index("wait_started")]


@pytest.fixture
def source(clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job that has read up to 9, and an identical copy; the syncs topic does not exist."""
    clusters.source.delete_topic(SYNCS)
    clusters.target.delete_topic("orders")
    clusters.target.create_topic("orders", partitions=4)
    for partition in (0, 1):
        clusters.target.produce("orders", partition, RECORDS)
    define(
        monkeypatch,
        "mm2_default",
        extra={"replication_policy": "identity", "mapping": "identity"},
    )
    return Job(tmp_path / "source", 9, 0, 0, 0)


def _starts(run: Failover) -> list[str]:
    return [conf["starting_offsets"] for conf in run.worker.triggered.values()]


def _plan(run: Failover) -> dict[str, object]:
    plan = run.worker.xcoms["translate", "return_value"]
    assert isinstance(plan, dict)
    return plan


def test_a_planned_failover(run: Failover) -> None:
    """From the check to the report; each position is its own, and the plan says by what mapping."""
    for task_id in STEPS:
        run.run(task_id)
    assert _starts(run) == [SAME]
    assert _plan(run)["mapping"] == "identity"
    statuses = {
        each["name"]: each["status"] for each in run.worker.xcoms["check", "return_value"]["checks"]
    }
    assert statuses["translation"] == "ok"
    assert statuses["syncs_emitted"] == statuses["archive_readable"] == "not_asked"
    assert statuses["replication_lag"] == statuses["holes"] == "ok"


def test_each_task_run_again_keeps_the_plan(run: Failover) -> None:
    """A task that is cleared after the next one has run says the same."""
    for task_id in MOVING:
        run.run(task_id)
    digest = _plan(run)["digest"]
    for task_id in UNTIL_STARTED[1:]:
        run.run(task_id)
    assert (_plan(run)["digest"], _starts(run)) == (digest, [SAME])


def test_the_wait_is_for_the_targets_end(
    run: Failover, clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A position above it is not copied yet."""
    run.run_until("wait_replicated")
    clusters.truncate_target(3)
    waited: list[str] = []

    def copy(task_id: str) -> None:
        waited.append(task_id)
        clusters.target.produce("orders", 0, RECORDS[3:])

    monkeypatch.setattr(run, "play", copy)
    run.run("wait_replicated")
    assert waited == ["wait_replicated"]
    run.run("translate")
    assert _plan(run)["verdict"] == "ready"


def test_a_copy_that_lags_a_little_begins(
    run: Failover, clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check says what is not copied; the wait brings it, and only then it is translated."""
    clusters.truncate_target(7)
    run.run_until("wait_replicated")
    checks = run.worker.xcoms["check", "return_value"]["checks"]
    said = [each["value"] for each in checks if each["name"] == "translation"]
    assert "orders[0] at 9: 2 offsets before it are not copied" in said[1]
    with pytest.raises(TranslationRefusedError, match="above the target's end 7"):
        run.run("translate")
    stops = run.play

    def copy(task_id: str) -> None:
        if task_id == "wait_replicated":
            clusters.target.produce("orders", 0, RECORDS[7:])
        stops(task_id)

    monkeypatch.setattr(run, "play", copy)
    for task_id in STEPS[STEPS.index("wait_replicated") :]:
        run.run(task_id)
    assert _starts(run) == [SAME]


def test_a_copy_that_lags_too_much_is_refused_by_the_check(
    run: Failover, clusters: Clusters
) -> None:
    """By the threshold of the lag, before the stop."""
    clusters.truncate_target(7)
    vars(run.task("check"))["max_lag_records"] = 1
    with pytest.raises(NotReadyError, match=r"orders\[0\] at 9: 2 offsets before it"):
        run.run("check")
    assert run.source.requested_stop() is None


def test_a_copy_that_is_none_is_refused_by_the_check(run: Failover, clusters: Clusters) -> None:
    """By name, while the job runs on."""
    clusters.truncate_target(2)
    clusters.target.produce("orders", 0, [Record(b"other", b"")] * 3)
    with pytest.raises(NotReadyError, match=r"offset 2 of orders\[0\].*key, value differ"):
        run.run("check")
    assert run.source.requested_stop() is None


def test_an_archive_is_refused_by_the_check(run: Failover, tmp_path: Path) -> None:
    """No plan takes one here: it is said while the job runs on."""
    run.worker.conf = {**run.worker.conf, "archive": str(tmp_path / "syncs")}
    with pytest.raises(NotReadyError, match=r"archive .*syncs is given; the copies keep offsets"):
        run.run("check")
    assert run.source.requested_stop() is None


def test_a_copy_that_is_none_is_refused_by_the_translation(
    run: Failover, clusters: Clusters
) -> None:
    """If it shows only once the job has stopped."""
    run.run_until("translate")
    clusters.truncate_target(2)
    clusters.target.produce("orders", 0, [Record(b"other", b"")] * 3)
    with pytest.raises(
        TranslationRefusedError, match=r"offset 2 of orders\[0\].*key, value differ"
    ):
        run.run("translate")


def test_a_target_that_lost_records_since_the_plan_is_refused(
    run: Failover, clusters: Clusters
) -> None:
    """The kept plan is compared with the clusters before the hand-over."""
    run.run_until("submit_target")
    clusters.truncate_target(2)
    clusters.target.produce("orders", 0, [*RECORDS[3:], Record(b"other", b"")])
    with pytest.raises(PlanError, match="not identical copies"):
        run.run("submit_target")
    assert run.worker.triggered == {}


def test_another_mapping_since_the_plan_is_refused(
    run: Failover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that was changed in between leads to other offsets."""
    run.run_until("submit_target")
    define(monkeypatch, "mm2_default", extra={"replication_policy": "identity"})
    with pytest.raises(PlanError, match="mapping is identity in the plan"):
        run.run("submit_target")


@pytest.mark.parametrize("word", [True, False])
def test_a_disaster(
    worker: Worker, failover: DAG, source: Job, tmp_path: Path, clusters: Clusters, *, word: bool
) -> None:
    """By the user's word at the position; without it from the beginning, which repeats records."""
    disaster = Disaster(worker, failover, source, tmp_path / "saved")
    clusters.source.is_running = False
    vars(disaster.task("translate"))["sole_writer"] = word
    disaster.run_from("check", "submit_target")
    start = disaster.started_at()
    assert start == (SAME if word else '{"orders":{"0":0,"1":0,"2":0,"3":0}}')
    plan = _plan(disaster)
    assert [each["part"] for each in plan["left_out"]] == ["source"]  # type: ignore[attr-defined]
    totals = plan["totals"]
    assert isinstance(totals, dict)
    assert (totals["exact"], totals["max_reread"]) == (0, None)


def test_the_way_home(run: Failover, clusters: Clusters) -> None:
    """The mapping is its own inverse, unless a producer has written to the target."""
    for each in MOVING:
        run.run(each)
    run.worker.triggered.clear()
    vars(run)["job_on_target"] = _JobOnTarget(run)
    back = way_home(run.worker, run, "manual__2")
    for each in UNTIL_STARTED:
        back.run(each)
    assert _starts(back) == ['{"orders":{"0":10,"1":10,"2":0,"3":0}}']
    assert clusters.source.watermarks("orders", 0).high == 10


class _JobOnTarget(JobOnTarget):
    """It has read all."""

    def __init__(self, folder: Failover) -> None:
        super().__init__(folder)
        self.commit(0, 10, 10, 0, 0)


def test_no_way_home_from_what_others_wrote(run: Failover, clusters: Clusters) -> None:
    """It would be lost: it is on the cluster that the job leaves only."""
    for each in MOVING:
        run.run(each)
    clusters.target.produce("orders", 0, [b"new"])
    vars(run)["job_on_target"] = _JobOnTarget(run)
    back = way_home(run.worker, run, "manual__2")
    with pytest.raises(NotReadyError, match="what was written there since is not copied back"):
        back.run("check")
