"""CheckFailoverOperator: copies of a job's folders, and a target's folders that are in use."""

import json
import shutil
import time
from pathlib import Path

import pytest

from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.spark.fence import new_fence, raise_fence
from tests.unit.operators.checks import check, problems
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job that has read topic orders, of four partitions."""
    return Job(tmp_path / "source", 4, 0, 0, 0)


@pytest.mark.usefixtures("all_copied")
def test_a_copy_of_the_job_is_refused(worker: Worker, job: Job, tmp_path: Path) -> None:
    """A backup of the folder says that the job has ended; both folders are named."""
    job.beat(1, ended=True)
    shutil.copytree(job.folder, tmp_path / "backup")
    backup = {name: str(tmp_path / "backup" / name) for name in ("control", "checkpoint")}
    control, checkpoint = problems(worker, check(job, **backup))
    for name, problem in (("control", control), ("checkpoint", checkpoint)):
        expected = f"{tmp_path}/backup/{name} is not the {name} location of the job, which writes"
        assert problem.startswith(expected)
        assert f"file:{job.folder}/{name}" in problem
    # A link leads to the job's own folder.
    (tmp_path / "link").symlink_to(job.folder)
    link = {name: str(tmp_path / "link" / name) for name in ("control", "checkpoint")}
    assert worker.run(check(job, **link)).type == "SucceedTask"


@pytest.mark.usefixtures("all_copied")
def test_a_job_that_does_not_say_where_it_writes_is_refused(worker: Worker, job: Job) -> None:
    """Of an older release: the folder could be a copy."""
    job.beat(1, control=None, interval=0.1)
    (problem,) = problems(worker, check(job))
    assert "does not write where its control location is" in problem
    assert "start the job with this release's files" in problem


@pytest.mark.usefixtures("all_copied")
def test_a_mounted_folder_passes_while_the_job_beats(
    worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its answer to the stop will prove it; a job that is silent needs the user's word."""
    mounted = {"control": "hdfs://n/x/control", "interval": 0.05}
    job.beat(1, **mounted)
    (problem,) = problems(worker, check(job))
    assert "which writes to hdfs://n/x/control" in problem
    word = {"spark_control": "hdfs://n/x/control"}
    assert worker.run(check(job, **word)).type == "SucceedTask"
    monkeypatch.setattr(time, "sleep", lambda _: job.beat(2, **mounted))
    job.beat(1, **mounted)
    assert worker.run(check(job)).type == "SucceedTask"
    assert "The job lives, but" in caplog.text


@pytest.mark.usefixtures("all_copied")
def test_a_copied_checkpoint_is_refused_beside_a_job_that_beats(
    worker: Worker, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the control location is spelled as the job does, so is the checkpoint."""
    shutil.copytree(job.checkpoint, tmp_path / "backup")
    monkeypatch.setattr(time, "sleep", lambda _: job.beat(2, interval=1.0))
    job.beat(1, interval=1.0)
    (problem,) = problems(worker, check(job, checkpoint=str(tmp_path / "backup")))
    assert problem.startswith(f"{tmp_path}/backup is not the checkpoint location of the job")


@pytest.mark.usefixtures("all_copied")
def test_a_fence_where_the_target_job_is_to_run(worker: Worker, job: Job, tmp_path: Path) -> None:
    """Of an earlier failover from there: the job would end at once, with nothing to run instead."""
    target = tmp_path / "target" / "control"
    settings = {"target_control": str(target)}
    assert worker.run(check(job, **settings)).type == "SucceedTask"
    raise_fence(str(target), new_fence("failback:manual__7", "home"))
    (problem,) = problems(worker, check(job, **settings))
    assert problem.startswith(f"{target}: a fence stands where the target job is to run")
    assert "the job is being moved to home by 'failback:manual__7'" in problem
    assert f"fence lift {target} --request-id 'failback:manual__7'" in problem
    (target / "fence.json").unlink()
    (target / "stop-request.json").write_text('{"request_id": "by hand"}')
    (problem,) = problems(worker, check(job, **settings))
    assert problem.startswith(f"{target}: the stop 'by hand' is open where the target job is")


def test_the_job_s_own_pattern_is_matched_with_the_target(
    worker: Worker, job: Job, all_copied: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark starts no job whose startingOffsets lack a topic of its pattern."""
    assert all_copied
    names = frozenset({"orders", "orders-eu", "__consumer_offsets"})
    monkeypatch.setattr(KafkaCluster, "topic_names", lambda _: names)
    driver = json.loads((job.control / "driver.json").read_text())
    (query,) = driver["queries"]

    def find(*patterns: str, **settings: str) -> list[str]:
        job.beat(1, queries=[{**query, "subscribe_patterns": list(patterns)}])
        return problems(worker, check(job, **settings))

    (new,) = find("orders.*")
    assert new.startswith("the job's subscribePattern 'orders.*' matches orders-eu on the target")
    (new,) = find("^orders$", subscribe_pattern="^orders")
    assert new.startswith("subscribe_pattern '^orders' matches orders-eu on the target")
    (unread,) = find(subscribe_pattern="^a.orders$")
    assert unread.startswith("subscribe_pattern '^a.orders$' does not match orders, which the")
    for pattern, word in (("^orders$", "None"), ("refunds", "None"), ("orders.*", "")):
        job.beat(1, queries=[{**query, "subscribe_patterns": [pattern]}])
        assert worker.run(check(job, subscribe_pattern=word)).type == "SucceedTask"
