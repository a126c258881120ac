"""CheckFailoverOperator: all that is wrong, before anything is touched."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.spark.fence import new_fence, raise_fence
from tests.support.pairs import STOPPED, STOPPED_CONNECT
from tests.unit.operators.checks import check, problems
from tests.unit.operators.clusters import Clusters, define, impatient
from tests.unit.operators.spark_job import Job
from tests.unit.operators.translate_task import translate
from tests.unit.operators.worker import Worker
from tests.unit.spark import checkpoints


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job that has read topic orders, of four partitions."""
    return Job(tmp_path / "source", 4, 0, 0, 0)


def _files(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("all_copied")
def test_what_is_ready_passes(worker: Worker, job: Job, tmp_path: Path) -> None:
    """With all well the task succeeds and returns its report; it writes but the topics' ids."""
    note = {job.checkpoint.with_name("checkpoint.clusters.json")}
    before = _files(tmp_path)
    assert worker.run(check(job)).type == "SucceedTask"
    assert worker.run(check(job, control=None, plan_path=None)).type == "SucceedTask"
    report = worker.xcoms["check", "return_value"]
    assert (report["schema_version"], report["totals"]["failed"]) == (1, 0)
    table = worker.xcoms["check", "table"]
    assert worker.xcoms["check", "summary"].startswith(table[0])
    assert "\n" not in worker.xcoms["check", "summary"]
    after = _files(tmp_path)
    assert after.keys() - before.keys() == note
    assert after.items() >= before.items()


def test_every_problem_is_named_at_once(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody mends one thing only to be told of the next: plan, job, target and both clusters."""
    for side in ("source", "target"):
        down = {"bootstrap.servers": STOPPED.bootstrap_servers}
        define(monkeypatch, f"kafka_{side}", conn_type="kafka", extra=down)
    define(monkeypatch, "mm2_default", extra={"connect_url": STOPPED_CONNECT.url})
    impatient(monkeypatch)
    job = Job(tmp_path / "source", 4)
    (job.control / "driver.json").unlink()
    target = Job(tmp_path / "target", 1)
    listed = problems(worker, check(job, plan_path="nosuch://bucket/plan.json"))
    assert len(listed) == 6
    for problem, expected in zip(
        listed,
        [
            "nosuch:",
            f"no job has run with the control location {job.control}",
            f"{target.checkpoint} holds commits, metadata, offsets, sources already",
            "source cluster (kafka_source)",
            "target cluster (kafka_target)",
            "Connect at http://",
        ],
        strict=True,
    ):
        assert problem.startswith(expected)


def test_a_bad_checkpoint_does_not_hide_the_clusters(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without positions nothing can be translated, and still the clusters are asked."""
    for side in ("source", "target"):
        down = {"bootstrap.servers": STOPPED.bootstrap_servers}
        define(monkeypatch, f"kafka_{side}", conn_type="kafka", extra=down)
    define(monkeypatch, "mm2_default", extra={})
    impatient(monkeypatch)
    (job.checkpoint / "metadata").unlink()
    checkpoint, source, target = problems(worker, check(job))
    assert checkpoint.endswith("is not a checkpoint of a Spark query")
    assert source.startswith("source cluster (kafka_source)")
    assert target.startswith("target cluster (kafka_target)")


@pytest.mark.usefixtures("clusters")
def test_a_bad_checkpoint_alone_is_one_problem(worker: Worker, job: Job) -> None:
    """Clusters that answer are no problem."""
    (job.checkpoint / "metadata").unlink()
    assert len(problems(worker, check(job))) == 1


@pytest.mark.usefixtures("clusters")
def test_a_wrong_connection_is_one_problem(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hook's error is listed as any other."""
    define(monkeypatch, "mm2_default", extra={"replication_policy": "none"})
    (problem,) = problems(worker, check(job))
    assert problem.startswith("connection mm2_default: replication_policy: is 'none'")


@pytest.mark.usefixtures("clusters")
def test_each_refusal_is_named(worker: Worker, job: Job) -> None:
    """A position that could never be translated is named while the job still runs."""
    _move(job, 40, 0, 0, 0)
    listed = problems(worker, check(job))
    assert any(each.startswith("orders[0] at 40: ") for each in listed)


def test_partitions_that_differ_are_named(
    worker: Worker, tmp_path: Path, all_copied: Clusters
) -> None:
    """A checkpoint without a partition that the topics have could not be started from."""
    assert all_copied
    source, target = problems(worker, check(Job(tmp_path / "source", 4, 0)))
    for side, problem in (("source", source), ("target", target)):
        assert problem.startswith(f"{side} cluster (kafka_{side}): topic orders has partitions ")
        assert "the checkpoint has" in problem


@pytest.mark.usefixtures("all_copied")
def test_the_control_location_of_another_job_is_refused(worker: Worker, job: Job) -> None:
    """A wrong control location would stop a job that nobody wants to move."""
    job.beat(3, query_id="of-another-job")
    (problem,) = problems(worker, check(job))
    assert problem == (
        f"{job.control} is of the query of-another-job and {job.checkpoint} of the query "
        f"{checkpoints.QUERY_ID}, so another job would be stopped; give both of one job"
    )


def test_a_job_that_reads_the_target_is_refused(
    worker: Worker, job: Job, all_copied: Clusters
) -> None:
    """The folder of the job on the target, given for the source's, is found out by its brokers."""
    source, target = all_copied.source.bootstrap_servers, all_copied.target.bootstrap_servers
    job.beat(2, bootstrap_servers=["elsewhere:9092", target])
    (problem,) = problems(worker, check(job))
    sentence = f"the job reads elsewhere:9092, {target}, which is the target"
    assert problem.startswith(f"{job.control}/driver.json: {sentence}")
    assert "give the checkpoint and the control location of the job on the source" in problem

    job.beat(3, bootstrap_servers=[source])
    assert worker.run(check(job)).type == "SucceedTask"


@pytest.mark.usefixtures("all_copied")
def test_a_job_that_knows_its_brokers_by_other_names_is_told(
    worker: Worker, job: Job, caplog: pytest.LogCaptureFixture
) -> None:
    """One cluster has other names in other networks: it's no problem, and yet worth a look."""
    job.beat(2, bootstrap_servers=["kafka.internal:9092"])
    assert worker.run(check(job)).type == "SucceedTask"
    assert "The job reads kafka.internal:9092, and the source cluster" in caplog.text


@pytest.mark.usefixtures("all_copied")
def test_a_sink_that_would_drop_batches_is_refused(
    worker: Worker, job: Job, tmp_path: Path
) -> None:
    """A file sink that has batches drops as many of a fresh checkpoint, in silence."""
    log = tmp_path / "output" / "_spark_metadata"
    assert worker.run(check(job, sink=str(log.parent))).type == "SucceedTask"
    log.mkdir(parents=True)
    (log / "4").write_text("v1")
    (problem,) = problems(worker, check(job, sink=str(log.parent)))
    assert problem.startswith(f"{log.parent}: its _spark_metadata has batches up to 4;")


@pytest.mark.usefixtures("all_copied")
@pytest.mark.parametrize("name", ["sources/0/0", "metadata", "offsets/0"])
def test_a_target_checkpoint_that_was_begun_is_refused(
    worker: Worker, job: Job, tmp_path: Path, name: str
) -> None:
    """Spark takes no startingOffsets where a checkpoint has a beginning, committed or not."""
    path = tmp_path / "target" / "checkpoint" / name
    path.parent.mkdir(parents=True)
    path.write_text("")
    (problem,) = problems(worker, check(job))
    assert problem.startswith(
        f"{tmp_path}/target/checkpoint holds {name.partition('/')[0]} already"
    )


@pytest.mark.usefixtures("all_copied")
def test_a_failover_under_way_passes(worker: Worker, job: Job, tmp_path: Path) -> None:
    """Once the run's own fence stands, what it has begun is no problem; another's fence is."""
    target = Job(tmp_path / "target", 9, 0, 0, 0)
    assert len(problems(worker, check(job))) == 1  # the target's checkpoint is in use
    raise_fence(str(job.control), new_fence("failover:manual__1", str(target.folder)))
    assert worker.run(check(job)).type == "SucceedTask"
    worker.run_id = "manual__2"
    listed = problems(worker, check(job))
    assert len(listed) == 2
    assert f"the job is being moved to {target.folder} by 'failover:manual__1'" in listed[0]


@pytest.mark.usefixtures("all_copied")
def test_a_plan_that_is_kept_must_be_one_to_go_by(worker: Worker, job: Job, tmp_path: Path) -> None:
    """A foreign file in the plan's place is found before anything is stopped."""
    plan = tmp_path / "target" / "plans" / "manual__1.json"
    plan.parent.mkdir(parents=True)
    plan.write_text("{}")
    (problem,) = problems(worker, check(job))
    assert problem.startswith(f"{plan}: is not a usable plan: a plan of schema version None")


@pytest.mark.usefixtures("all_copied")
def test_a_plan_that_the_job_has_left_behind_is_refused(
    worker: Worker, job: Job, tmp_path: Path
) -> None:
    """Of an earlier try of the run, after which the job was started again."""
    plan = str(tmp_path / "target" / "plans" / "manual__1.json")
    worker.run(translate(checkpoint=str(job.checkpoint), plan_path=plan))
    assert worker.run(check(job)).type == "SucceedTask"
    job.commit(1, 8, 0, 0, 0)
    (problem,) = problems(worker, check(job))
    assert problem.startswith(f"{plan}: holds a plan of ")
    assert "for other positions" in problem


def _move(job: Job, *offsets: int) -> None:
    text = checkpoints.batch(checkpoints.orders(*offsets))
    (job.checkpoint / "offsets" / "0").write_text(text)
