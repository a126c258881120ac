"""The failover DAG where copies keep their offsets: no syncs topic, no Connect."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.errors import NotReadyError, PlanError, TranslationRefusedError
from airflow_mm2_offsets.testing import Record
from tests.unit.dags.failovers import Failover
from tests.unit.operators.clusters import RECORDS, SYNCS, Clusters, define
from tests.unit.operators.mover import Mover
from tests.unit.operators.spark_job import Job

SAME = '{"orders":{"0":4,"1":6,"2":3,"3":2}}'


@pytest.fixture
def mover(mover: Mover, clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> Mover:
    """A job whose topic has an identical copy; the syncs topic does not exist."""
    clusters.source.delete_topic(SYNCS)
    clusters.target.delete_topic("orders")
    clusters.target.create_topic("orders", partitions=4)
    for partition in range(4):
        clusters.target.produce("orders", partition, RECORDS)
    extra = {"replication_policy": "identity", "mapping": "identity"}
    define(monkeypatch, "mm2_default", extra=extra)
    return mover


def _replace_copies(clusters: Clusters) -> None:
    clusters.truncate_target(2)
    clusters.target.produce("orders", 0, [Record(b"other", b"")] * 8)


def test_a_planned_failover(run: Failover) -> None:
    """From the check to the report; each position is its own, and the plan says by what mapping."""
    run.run_all()
    assert run.starting_offsets() == [SAME]
    assert run.worker.xcoms["translate", "return_value"]["mapping"] == "identity"
    checks = run.worker.xcoms["check", "return_value"]["checks"]
    statuses = {each["name"]: each["status"] for each in checks}
    assert statuses["translation"] == "ok"
    assert statuses["syncs_emitted"] == statuses["archive_readable"] == "not_asked"
    assert statuses["replication_lag"] == statuses["holes"] == "ok"


def test_a_copy_that_lags_too_much_is_refused_by_the_check(
    run: Failover, clusters: Clusters
) -> None:
    """By the threshold of the lag, before the stop."""
    clusters.truncate_target(2)
    vars(run.task("check"))["thresholds"] = {"max_lag_records": 1}
    with pytest.raises(NotReadyError, match=r"orders\[0\] at 4: 2 offsets before it"):
        run.run("check")
    assert run.source.requested_stop() is None


def test_what_is_no_copy_is_refused_by_the_check(run: Failover, clusters: Clusters) -> None:
    """By name, while the job runs on."""
    _replace_copies(clusters)
    with pytest.raises(NotReadyError, match=r"offset \d of orders\[0\].*key, value differ"):
        run.run("check")
    assert run.source.requested_stop() is None


def test_what_is_no_copy_is_refused_by_the_translation(run: Failover, clusters: Clusters) -> None:
    """If it shows only once the job has stopped."""
    run.run_until("translate")
    _replace_copies(clusters)
    with pytest.raises(TranslationRefusedError, match=r"orders\[0\].*key, value differ"):
        run.run("translate")


def test_a_target_that_lost_records_since_the_plan_is_refused(
    run: Failover, clusters: Clusters
) -> None:
    """The kept plan is compared with the clusters before the hand-over."""
    run.run_until("start_target")
    _replace_copies(clusters)
    with pytest.raises(PlanError, match="not identical copies"):
        run.run("start_target")
    assert run.worker.triggered == {}


def test_another_mapping_since_the_plan_is_refused(
    run: Failover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that was changed in between leads to other offsets."""
    run.run_until("start_target")
    define(monkeypatch, "mm2_default", extra={"replication_policy": "identity"})
    with pytest.raises(PlanError, match="mapping is identity in the plan"):
        run.run("start_target")


def test_the_way_home(run: Failover, mover: Mover, clusters: Clusters) -> None:
    """The mapping is its own inverse, unless a producer has written to the target."""
    run.run_all()
    there = Job.at(Path(mover.job.homes[1].folder))
    there.beat(2)
    there.commit(1, 9, 8, 3, 2)
    mover.worker.run_id = "manual__2"
    back = Failover.of(mover)
    back.run("check")
    clusters.target.produce("orders", 0, [b"new"])
    with pytest.raises(NotReadyError, match="what was written there since is not copied back"):
        back.run("check")
