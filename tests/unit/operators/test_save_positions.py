"""Saved positions, and reading them where the checkpoint is lost."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG
from upath import UPath

from airflow_mm2_offsets.core.ids import ClusterIds, PairIds
from airflow_mm2_offsets.errors import (
    CheckpointError,
    HandoverError,
    PositionError,
)
from airflow_mm2_offsets.moves.fences import Fence, raise_fence
from airflow_mm2_offsets.moves.journal import FenceState
from airflow_mm2_offsets.operators.checkpoint import ReadSparkCheckpointOperator
from airflow_mm2_offsets.operators.handover import TriggerTargetDagOperator
from airflow_mm2_offsets.operators.save_positions import SaveSparkPositionsOperator
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.saved_positions import (
    SavedPositions,
    read_saved_positions,
    save_positions,
    saved_positions_path,
)
from tests.unit.operators.clusters import Clusters, impatient
from tests.unit.operators.mover import WAITS, Mover
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker
from tests.unit.spark import checkpoints

AT = datetime(2026, 11, 21, 8, tzinfo=UTC)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job that has committed up to 4 and 6."""
    return Job(tmp_path / "source", 4, 6)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "saved"


def _save(worker: Worker, job: Job, folder: Path, **more: str) -> dict[str, Any]:
    """Save the positions of a job with one home; ``more`` are further homes."""
    homes = {"source": str(job.folder), **more}
    with DAG("archive", schedule=None):
        of_job = {"name": "orders", "homes": homes, "saved_positions": str(folder)}
        worker.run(SaveSparkPositionsOperator(task_id="save", job=of_job))
    saved: dict[str, Any] = worker.xcoms["save", "return_value"]
    return saved


def _read(worker: Worker, job: Job, **settings: Any) -> dict[str, Any]:
    with DAG("failover", schedule=None):
        task = ReadSparkCheckpointOperator(
            task_id="read", **{"checkpoint": str(job.checkpoint), "policy": "disaster"} | settings
        )
    worker.run(task)
    read: dict[str, Any] = worker.xcoms["read", "return_value"]
    return read


def test_saved_positions_stand_in_for_a_lost_checkpoint(
    worker: Worker, job: Job, folder: Path
) -> None:
    """They say their age and origin, and that nothing is known to be pending."""
    _save(worker, job, folder)
    shutil.rmtree(job.folder)
    read = _read(worker, job, saved_positions=str(folder))
    assert read["positions"] == read["read_until"] == '{"orders":{"0":4,"1":6}}'
    assert (read["origin"], read["pending"], read["query_id"]) == (
        "saved",
        None,
        checkpoints.QUERY_ID,
    )
    saved = json.loads(next(folder.iterdir()).read_text())
    assert read["as_of"] == saved["saved_at"]


def test_a_checkpoint_that_can_be_read_counts(worker: Worker, job: Job, folder: Path) -> None:
    """Saved and given positions are for the night when nothing else says so."""
    _save(worker, job, folder)
    job.commit(1, 8, 9)
    read = _read(worker, job, saved_positions=str(folder), positions='{"orders":{"0":1}}')
    assert (read["origin"], read["as_of"]) == ("checkpoint", None)
    assert read["positions"] == '{"orders":{"0":8,"1":9}}'


def test_a_damaged_checkpoint_is_an_error_that_names_the_choice(
    worker: Worker, job: Job, folder: Path
) -> None:
    """Its storage answers: older positions must not replace it in silence."""
    _save(worker, job, folder)
    (job.checkpoint / "offsets" / "0").write_text("v1")
    with pytest.raises(CheckpointError, match="nothing stands in for it: restore it"):
        _read(worker, job, saved_positions=str(folder))
    (job.checkpoint / "metadata").unlink()
    with pytest.raises(CheckpointError, match="nothing stands in for it: restore it"):
        _read(worker, job, saved_positions=str(folder))


def test_only_a_disaster_takes_saved_positions(worker: Worker, job: Job, folder: Path) -> None:
    """By every other policy a lost checkpoint is an error, as before."""
    _save(worker, job, folder)
    shutil.rmtree(job.checkpoint)
    with pytest.raises(CheckpointError, match=r"metadata: is missing; .* Spark query$"):
        _read(worker, job, saved_positions=str(folder), policy="planned")


def test_the_users_word_is_the_last_resort(worker: Worker, job: Job, folder: Path) -> None:
    """Without saved positions, or with ones that can't be used; without it the choice is named."""
    shutil.rmtree(job.checkpoint)
    given = {"positions": {"orders": {"0": "3"}}}
    assert _read(worker, job, **given)["origin"] == "given"
    read = _read(worker, job, saved_positions=str(folder), **given)
    assert (read["positions"], read["query_id"]) == ('{"orders":{"0":3}}', None)
    # The job may have gone on since: the forecast needs a time.
    assert datetime.now(UTC) - datetime.fromisoformat(read["as_of"]) < timedelta(minutes=1)
    told = AT.isoformat()
    assert _read(worker, job, positions={**given, "as_of": told})["as_of"] == told
    with pytest.raises(PositionError, match="task read: positions: as_of is 'yesterday'"):
        _read(worker, job, positions={**given, "as_of": "yesterday"})
    with pytest.raises(CheckpointError, match="give saved_positions, the folder that"):
        _read(worker, job)
    with pytest.raises(CheckpointError, match="there are no saved positions of the checkpoint"):
        _read(worker, job, saved_positions=str(folder))


@pytest.mark.parametrize("change", ['"query_id": "', '"0": "', '"saved_at": "'])
def test_an_edited_file_is_refused(worker: Worker, job: Job, folder: Path, change: str) -> None:
    """A digest tells what was saved from what was edited or cut short."""
    _save(worker, job, folder)
    (path,) = folder.iterdir()
    path.write_text(path.read_text().replace(change, f"{change}1", 1))
    shutil.rmtree(job.checkpoint)
    with pytest.raises(CheckpointError, match="does not hold saved positions that can be used"):
        _read(worker, job, saved_positions=str(folder))


def test_positions_of_another_query_are_refused(worker: Worker, job: Job, folder: Path) -> None:
    """The last driver ran another query: the job has got another checkpoint since."""
    _save(worker, job, folder)
    job.beat(2, query_id="another")
    shutil.rmtree(job.checkpoint)
    with pytest.raises(CheckpointError, match="the last driver ran another"):
        _read(worker, job, saved_positions=str(folder), control=str(job.control))


def test_a_job_whose_journal_is_lost_is_not_saved(worker: Worker, job: Job, folder: Path) -> None:
    """A fence says that the job reads another cluster since, and the journal is gone."""
    fence = Fence(
        number=7,
        home=str(job.folder),
        state=FenceState.MOVED,
        request_id="other#3",
        moved_to="us",
        at=AT,
        journal="elsewhere",
    )
    raise_fence(UPath(job.control), fence)
    with pytest.raises(HandoverError, match=r"job orders has no journal in .*: restore it"):
        _save(worker, job, folder)
    assert not folder.exists()


class TestJob:
    """A job is read where its journal says that it is."""

    @pytest.fixture
    def mover(self, mover: Mover, folder: Path) -> Mover:
        """A job whose positions are saved."""
        mover.more = {"saved_positions": str(folder)}
        return mover

    def _save(self, mover: Mover) -> dict[str, Any]:
        with DAG("archive", schedule=None):
            task = SaveSparkPositionsOperator(task_id="save", job=mover.job)
        mover.worker.run(task)
        return mover.worker.xcoms.get(("save", "return_value")) or {}

    def test_each_home_has_a_file(self, mover: Mover, folder: Path) -> None:
        """Where it was, and where it was moved to; a disaster there takes the latter."""
        assert self._save(mover)["positions"] == {
            "orders": {"0": "4", "1": "6", "2": "3", "3": "2"}
        }
        mover.until_start(mover.source.folder)
        mover.run(TriggerTargetDagOperator)
        west = Path(mover.job.homes[1].folder)
        mover.begin(west, 9, 6, 3, 2)
        mover.run(SparkStartedSensor, **WAITS)
        saved = self._save(mover)
        assert saved["positions"] == {"orders": {"0": "9", "1": "6", "2": "3", "3": "2"}}
        assert len([*folder.iterdir()]) == 2
        shutil.rmtree(west / "checkpoint")
        Job.at(west).beat(2, lease=0.01)
        mover.worker.run_id, mover.policy = "manual__2", "disaster"
        mover.more["heartbeat_timeout"] = 0.05
        stop = {"quiet_period": 0.05, "poll_interval": 0.02, "deferrable": True, "timeout": 5}
        read = mover.run(StopSparkStreamingOperator, **stop)
        assert (read["origin"], read["positions"]) == (
            "saved",
            '{"orders":{"0":9,"1":6,"2":3,"3":2}}',
        )

    def test_a_job_that_saves_none(self, mover: Mover) -> None:
        """The example DAG has the task for everybody."""
        mover.more = {}
        assert self._save(mover) == {}


def test_ids_are_compared_before_positions_count(
    worker: Worker, job: Job, folder: Path, clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic that was recreated on the target since is refused; a lost source is not asked.

    What an earlier task has read is compared as what was saved.
    """
    clusters.connect(monkeypatch)
    impatient(monkeypatch)
    given = _read(worker, job, mm2_conn_id="mm2_default")
    _save(worker, job, folder, target=f"{job.folder}-target")
    shutil.rmtree(job.checkpoint)
    clusters.source.is_running = False
    settings = {"saved_positions": str(folder), "mm2_conn_id": "mm2_default"}
    read = _read(worker, job, **settings)
    assert read["clusters"]["source"]["cluster_id"] == clusters.source.cluster_id
    clusters.target.delete_topic("orders")
    clusters.target.create_topic("orders", partitions=4)
    for stands_in in ({"saved_positions": str(folder)}, {"positions": given}):
        with pytest.raises(HandoverError, match=r"clusters\.target\.topic_ids\.orders"):
            _read(worker, job, mm2_conn_id="mm2_default", **stands_in)


def _save_at(
    job: Job, folder: Path, read_at: datetime, ids: PairIds | None = None
) -> SavedPositions:
    location = UPath(job.checkpoint)
    checkpoint = read_checkpoint(location)
    return save_positions(UPath(folder), location, checkpoint, ids or PairIds(), read_at)


def test_an_older_read_replaces_nothing(job: Job, folder: Path) -> None:
    """Of two runs at the same time, the later read stays, whichever writes last."""
    older = _save_at(job, folder, AT)
    job.commit(1, 8, 9)
    newer = _save_at(job, folder, AT + timedelta(seconds=5))
    assert newer.positions == {"orders": {0: 8, 1: 9}}
    assert _save_at(job, folder, AT + timedelta(seconds=4)) == newer
    assert read_saved_positions(UPath(folder), UPath(job.checkpoint)) == newer
    assert older.age(AT + timedelta(minutes=3)) == 180
    # A clock that was far ahead once must not stop all later saves.
    assert _save_at(job, folder, AT - timedelta(days=1)).saved_at < older.saved_at


def test_a_topic_without_progress_keeps_its_ids(job: Job, folder: Path) -> None:
    """Recreated between two saves, its positions are still those of the old topic."""

    def ids(topic_id: str) -> PairIds:
        return PairIds(source=ClusterIds(cluster_id="S", topic_ids={"orders": topic_id}))

    _save_at(job, folder, AT, ids("old"))
    kept = _save_at(job, folder, AT + timedelta(seconds=1), ids("new"))
    assert kept.clusters == ids("old")
    job.commit(1, 8, 9)
    assert _save_at(job, folder, AT + timedelta(seconds=2), ids("new")).clusters == ids("new")


def test_all_spellings_have_one_file() -> None:
    """Spark's and Airflow's names of a location lead to the same file; others to another."""
    folder = UPath("memory://saved")
    paths = {
        saved_positions_path(folder, UPath(each, anon=True)).name
        for each in ("s3://bucket/orders", "s3a://bucket/orders/")
    }
    assert len(paths) == 1
    assert saved_positions_path(folder, UPath("s3://bucket/orders2", anon=True)).name not in paths
