"""Each task that reads a checkpoint for a connection: one of the other cluster is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, BaseOperator

from airflow_mm2_offsets.errors import ForeignPositionsError, Mm2OffsetsError, NotReadyError
from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from airflow_mm2_offsets.operators.checkpoint import ReadSparkCheckpointOperator
from airflow_mm2_offsets.operators.groups import PublishPositionsOperator
from airflow_mm2_offsets.operators.migrate import MigrateSparkCheckpointOperator
from airflow_mm2_offsets.operators.save_positions import SaveSparkPositionsOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from tests.support.foreign_checkpoints import NOTINGS, Noting, note_cluster
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker

Make = Callable[[Path], BaseOperator]
MM2 = {"mm2_conn_id": "mm2_default"}
AT_4 = {"orders": {"0": "4", "1": "0", "2": "0", "3": "0"}}


def _task(kind: type[BaseOperator], **settings: Any) -> BaseOperator:
    with DAG("failover", schedule=None):
        return kind(task_id="read", **settings)


def _move(at: Path, policy: str) -> dict[str, Any]:
    homes = {"source": str(at.parent), "target": str(at.parent.with_name("target"))}
    job = {"name": "orders", "homes": homes, "is_controlled": False}
    return {"job": job, "policy": policy}


MAKES: dict[str, Make] = {
    "read": lambda at: _task(ReadSparkCheckpointOperator, checkpoint=str(at), **MM2),
    "read in a disaster": lambda at: _task(
        ReadSparkCheckpointOperator,
        checkpoint=str(at),
        policy="disaster",
        positions=AT_4,
        **MM2,
    ),
    "translate": lambda at: _task(TranslateOffsetsOperator, checkpoint=str(at)),
    "translate and compare": lambda at: _task(
        TranslateOffsetsOperator, checkpoint=str(at), positions=AT_4
    ),
    "save": lambda at: _task(
        SaveSparkPositionsOperator,
        job={**_move(at, "planned")["job"], "saved_positions": f"{at.parent}/saved"},
    ),
    "publish": lambda at: _task(PublishPositionsOperator, checkpoint=str(at), group_id="job"),
    "migrate": lambda at: _task(
        MigrateSparkCheckpointOperator, checkpoint=str(at), target_checkpoint=f"{at.parent}/copy"
    ),
    "check": lambda at: _task(CheckFailoverOperator, move=_move(at, "planned")),
    "check in a disaster": lambda at: _task(CheckFailoverOperator, move=_move(at, "disaster")),
}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "job", 4, 0, 0, 0)


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
@pytest.mark.parametrize("note", NOTINGS)
def test_a_checkpoint_of_the_target_is_refused(
    worker: Worker, all_copied: Clusters, job: Job, note: Noting, make: Make
) -> None:
    """At once, with the file that says so, and nothing is written beside what is there."""
    file = note(job.checkpoint, all_copied.target)
    before = {path: path.read_bytes() for path in job.folder.rglob("*") if path.is_file()}
    with pytest.raises(Mm2OffsetsError) as caught:
        worker.run(make(job.checkpoint))
    assert isinstance(caught.value, (ForeignPositionsError, NotReadyError))
    assert isinstance(caught.value, AirflowFailException)
    assert file in str(caught.value)
    after = {path: path.read_bytes() for path in job.folder.rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.parametrize("name", ["read", "translate", "check"])
@pytest.mark.parametrize("note", NOTINGS)
def test_one_of_the_source_is_taken(
    worker: Worker, all_copied: Clusters, job: Job, note: Noting, name: str
) -> None:
    """What lies beside it says the same as the connection."""
    note(job.checkpoint, all_copied.source)
    worker.run(MAKES[name](job.checkpoint))


def test_the_positions_of_a_moved_job_are_published_on_its_side(
    worker: Worker, all_copied: Clusters, job: Job
) -> None:
    """With side target the job reads the target."""
    note_cluster(job.checkpoint, all_copied.target)
    task = _task(
        PublishPositionsOperator, checkpoint=str(job.checkpoint), group_id="job", side="target"
    )
    worker.run(task)
