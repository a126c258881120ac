"""CheckFailoverOperator: all that is wrong, before anything is touched."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.moves.stopping import Withdrawal, withdraw
from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from airflow_mm2_offsets.operators.rollback import RollbackFailoverOperator
from airflow_mm2_offsets.spark.drill import mark_drill
from tests.support.pairs import STOPPED, STOPPED_CONNECT
from tests.unit.operators.clusters import Clusters, define
from tests.unit.operators.mover import Mover
from tests.unit.operators.spark_job import Job
from tests.unit.spark import checkpoints

CHECK = CheckFailoverOperator.__name__
MOUNTED = "hdfs://namenode:8020/jobs/orders"


@pytest.fixture
def job(mover: Mover) -> Job:
    """The job where it is."""
    return mover.source


def _passes(mover: Mover) -> bool:
    return str(mover.worker.run(mover.task(CheckFailoverOperator)).type) == "SucceedTask"


def _files(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def _all_down(monkeypatch: pytest.MonkeyPatch, **mm2: object) -> None:
    for side in ("source", "target"):
        down = {"bootstrap.servers": STOPPED.bootstrap_servers}
        define(monkeypatch, f"kafka_{side}", conn_type="kafka", extra=down)
    define(monkeypatch, "mm2_default", extra=mm2)


def test_what_is_ready_passes(mover: Mover, job: Job) -> None:
    """With all well the task succeeds and returns its report; it writes but the topics' ids."""
    before = _files(mover.folder)
    report = mover.run(CheckFailoverOperator)
    assert (report["schema_version"], report["totals"]["failed"]) == (1, 0)
    table = mover.worker.xcoms[CHECK, "table"]
    assert mover.worker.xcoms[CHECK, "summary"].startswith(table[0])
    assert "\n" not in mover.worker.xcoms[CHECK, "summary"]
    after = _files(mover.folder)
    assert after.keys() - before.keys() == {job.checkpoint.with_name("checkpoint.clusters.json")}
    assert after.items() >= before.items()


def test_every_problem_is_named_at_once(
    mover: Mover, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody mends one thing only to be told of the next: the job, and both clusters."""
    _all_down(monkeypatch, connect_url=STOPPED_CONNECT.url)
    (job.control / "driver.json").unlink()
    expected = [
        f"no job has run with the control location {job.control}",
        "source cluster (kafka_source)",
        "target cluster (kafka_target)",
        "Connect at http://",
    ]
    listed = mover.problems(timeout=0.3)
    assert [each[: len(start)] for each, start in zip(listed, expected, strict=True)] == expected


def test_a_bad_checkpoint_does_not_hide_the_clusters(
    mover: Mover, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without positions nothing can be translated, and still the clusters are asked."""
    (job.checkpoint / "metadata").unlink()
    (problem,) = mover.problems()
    assert problem.endswith("is not a checkpoint of a Spark query")
    _all_down(monkeypatch)
    checkpoint, source, target = mover.problems(timeout=0.3)
    assert checkpoint == problem
    assert source.startswith("source cluster (kafka_source)")
    assert target.startswith("target cluster (kafka_target)")


def test_a_wrong_connection_is_one_problem(mover: Mover, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hook's error is listed as any other."""
    define(monkeypatch, "mm2_default", extra={"replication_policy": "none"})
    (problem,) = mover.problems()
    assert problem.startswith("connection mm2_default: replication_policy: is 'none'")


def test_each_refusal_is_named(mover: Mover, job: Job) -> None:
    """A position that could never be translated is named while the job still runs."""
    job.commit(1, 40, 6, 3, 2)
    assert any(each.startswith("orders[0] at 40: ") for each in mover.problems())


def test_partitions_that_differ_are_named(mover: Mover) -> None:
    """A checkpoint without a partition that the topics have could not be started from."""
    Job(mover.folder / "other", 4, 6)
    mover.homes = {"source": {"folder": str(mover.folder / "other")}}
    source, target = mover.problems()
    for side, problem in (("source", source), ("target", target)):
        assert problem.startswith(f"{side} cluster (kafka_{side}): topic orders has partitions ")
        assert "the checkpoint has" in problem


def test_the_control_location_of_another_job_is_refused(mover: Mover, job: Job) -> None:
    """It would stop a job that nobody wants to move."""
    job.beat(3, query_id="of-another-job")
    (problem,) = mover.problems()
    assert problem == (
        f"{job.control} is of the query of-another-job and {job.checkpoint} of the query "
        f"{checkpoints.QUERY_ID}, so another job would be stopped; give both of one job"
    )


def test_a_job_that_reads_the_target_is_refused(
    mover: Mover, job: Job, clusters: Clusters, caplog: pytest.LogCaptureFixture
) -> None:
    """Its brokers say so. Other names of the source are no problem, and yet worth a look."""
    source, target = clusters.source.bootstrap_servers, clusters.target.bootstrap_servers
    job.beat(2, bootstrap_servers=["elsewhere:9092", target])
    (problem,) = mover.problems()
    sentence = f"the job reads elsewhere:9092, {target}, which is the target"
    assert problem.startswith(f"{job.control}/driver.json: {sentence}")
    assert "give the checkpoint and the control location of the job on the source" in problem
    job.beat(3, bootstrap_servers=[source])
    assert _passes(mover)
    job.beat(4, bootstrap_servers=["kafka.internal:9092"])
    assert _passes(mover)
    assert "The job reads kafka.internal:9092, and the source cluster" in caplog.text


def test_a_sink_that_would_drop_batches_is_refused(mover: Mover) -> None:
    """A file sink that has batches drops as many of a fresh checkpoint, in silence."""
    log = mover.folder / "output" / "_spark_metadata"
    mover.homes = {"target": {"output": str(log.parent)}}
    assert _passes(mover)
    log.mkdir(parents=True)
    (log / "4").write_text("v1")
    (problem,) = mover.problems()
    assert problem.startswith(f"{log.parent}: its _spark_metadata has batches up to 4;")


def test_a_target_in_the_folder_of_a_drill_is_refused(mover: Mover) -> None:
    """The drill's tear-down removes all that it holds."""
    drill = UPath(mover.folder / "drill")
    mark_drill(drill, "drill:manual__1")
    mover.homes = {"target": {"folder": str(drill / "orders")}}
    assert any("is removed with all that it holds" in each for each in mover.problems())


def test_a_kept_plan_must_be_one_to_go_by(mover: Mover, job: Job) -> None:
    """Under way: a foreign file in the plan's place, or a plan that the job has left behind."""
    mover.until_start(job.folder)
    assert _passes(mover)
    job.commit(1, 8, 6, 3, 2)
    (problem,) = mover.problems()
    plan = mover.steps.find().noted("plan")
    assert problem.startswith(f"{plan}: holds a plan of ")
    assert "for other positions" in problem
    Path(plan).write_text("{}")
    (problem,) = mover.problems()
    assert problem.startswith(f"{plan}: is not a usable plan: a plan of schema version None")


def test_a_job_that_was_not_moved_is_ready_again(mover: Mover, job: Job) -> None:
    """The fence that its move has left at the target opens with the next hand-over."""
    mover.until_start(job.folder)
    mover.run(RollbackFailoverOperator)
    mover.worker.run_id = "manual__2"
    assert _passes(mover)


def test_a_home_of_another_journal_is_refused(mover: Mover) -> None:
    """Two journals could start two jobs there; the move itself would refuse it after the stop."""
    mover.steps.ask()
    assert withdraw(mover.steps, mover.steps.find().request_id) is Withdrawal.WITHDRAWN
    shutil.copytree(mover.folder / "records", mover.folder / "others")
    mover.more = {"records": str(mover.folder / "others")}
    problems = "; ".join(mover.problems())
    for home in mover.job.homes:
        assert f"{home} belongs to job orders, whose journal is {mover.folder}/records" in problems


def test_a_journal_that_has_lost_entries_is_refused(mover: Mover) -> None:
    """Its fences are later than it is."""
    mover.steps.ask()
    withdraw(mover.steps, mover.steps.find().request_id)
    (mover.folder / "records" / "orders" / "000002.json").unlink()
    mover.worker.run_id = "manual__2"
    assert any("has lost entries; restore it" in each for each in mover.problems())


class TestCopies:
    """A copy of the job's folder shows an old state of it."""

    def test_a_copy_of_the_job_is_refused(self, mover: Mover, job: Job) -> None:
        """A backup of the folder says that the job has ended; both folders are named."""
        job.beat(1, ended=True)
        backup, link = mover.folder / "backup", mover.folder / "link"
        shutil.copytree(job.folder, backup)
        mover.homes = {"source": {"folder": str(backup)}}
        control, checkpoint = mover.problems()
        for name, problem in (("control", control), ("checkpoint", checkpoint)):
            expected = f"{backup}/{name} is not the {name} location of the job, which writes"
            assert problem.startswith(expected)
            assert f"file:{job.folder}/{name}" in problem
        link.symlink_to(job.folder)  # leads to the job's own folder
        mover.homes = {"source": {"folder": str(link)}}
        assert _passes(mover)

    def test_a_job_that_does_not_say_where_it_writes_is_refused(
        self, mover: Mover, job: Job
    ) -> None:
        """Of an older release: the folder could be a copy."""
        job.beat(1, control=None, interval=0.1)
        (problem,) = mover.problems()
        assert "does not write where its control location is" in problem
        assert "start the job with this release's files" in problem

    def test_a_mounted_folder_passes_while_the_job_beats(
        self,
        mover: Mover,
        job: Job,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """Its answer to the stop will prove it; a job that is silent needs ``spark_folder``."""
        mounted: dict[str, Any] = {"control": f"{MOUNTED}/control", "interval": 0.05}
        driver = json.loads((job.control / "driver.json").read_text())
        mounted["queries"] = [{**driver["queries"][0], "checkpoint": f"{MOUNTED}/checkpoint"}]
        job.beat(1, **mounted)
        assert all(f"which writes to {MOUNTED}/" in each for each in mover.problems())
        mover.homes = {"source": {"spark_folder": MOUNTED}}
        assert _passes(mover)
        mover.homes = {}
        monkeypatch.setattr(time, "sleep", lambda _: job.beat(2, **mounted))
        assert _passes(mover)
        assert "The job lives, but" in caplog.text

    def test_a_copied_checkpoint_is_refused_beside_a_job_that_beats(
        self, mover: Mover, job: Job, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where the control location is spelled as the job does, so is the checkpoint."""
        driver = json.loads((job.control / "driver.json").read_text())
        other = {"queries": [{**driver["queries"][0], "checkpoint": "file:/elsewhere"}]}
        monkeypatch.setattr(time, "sleep", lambda _: job.beat(2, interval=1.0, **other))
        job.beat(1, interval=1.0, **other)
        (problem,) = mover.problems()
        assert problem.startswith(f"{job.checkpoint} is not the checkpoint location of the job")

    def test_a_job_that_runs_with_another_control_location(self, mover: Mover, job: Job) -> None:
        """Its note beside the checkpoint says so, though a heartbeat may move here."""
        note = job.checkpoint.with_name("checkpoint.control.json")
        text = {"schema_version": 1, "control": "s3a://lake/control2", "application_id": "app-2"}
        note.write_text(json.dumps(text))
        (problem,) = mover.problems()
        assert f"s3a://lake/control2, and not with {job.control}" in problem
        note.write_text(json.dumps({**text, "control": f"file:{job.control}"}))
        assert _passes(mover)

    @pytest.mark.parametrize("last_batch", [0, None])
    def test_a_checkpoint_that_has_gone_on_since_the_job_ended(
        self, mover: Mover, job: Job, last_batch: int | None
    ) -> None:
        """A job without StopControl, or one that can't write the note, has run: both are named."""
        query = {"query_id": checkpoints.QUERY_ID, "run_id": "r", "batch_id": last_batch}
        query["checkpoint"] = f"file:{job.checkpoint}"
        job.beat(5, ended=True, queries=[query])
        if last_batch is not None:
            assert _passes(mover)
            job.commit(1, 5, 6, 3, 2)
        now, then = (1, "0") if last_batch == 0 else (0, "none")
        (problem,) = mover.problems()
        assert f"the last committed batch is {now}, and it was {then} when the queries" in problem


def test_the_job_s_own_pattern_is_matched_with_the_target(
    mover: Mover, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark starts no job whose startingOffsets lack a topic of its pattern."""
    names = frozenset({"orders", "orders-eu", "__consumer_offsets"})
    monkeypatch.setattr(KafkaCluster, "topic_names", lambda _: names)
    (query,) = json.loads((job.control / "driver.json").read_text())["queries"]

    def at_target(pattern: str | None, *patterns: str) -> None:
        job.beat(1, queries=[{**query, "subscribe_patterns": list(patterns)}])
        mover.more = {"subscribe_pattern": pattern}

    for settings, expected in (
        ((None, "orders.*"), "the job's subscribePattern 'orders.*' matches orders-eu on the tar"),
        (("^orders", "^orders$"), "subscribe_pattern '^orders' matches orders-eu on the target"),
        (("^a.orders$",), "subscribe_pattern '^a.orders$' does not match orders, which the"),
    ):
        at_target(*settings)
        (problem,) = mover.problems()
        assert problem.startswith(expected)
    at_target("^orders$", "orders.*")
    assert _passes(mover)
