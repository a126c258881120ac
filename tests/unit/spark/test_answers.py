"""What a job says when it has stopped, beside its checkpoint."""

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.spark.answers import check_answer
from airflow_mm2_offsets.spark.control import Acknowledgement, read_last_acknowledgement
from tests.unit.operators.spark_job import Job


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path, 4, 6)


def _said(job: Job, **more: Any) -> Acknowledgement:
    job.acknowledge(request_id="stop-1", **more)
    answer = read_last_acknowledgement(str(job.control))
    assert answer is not None
    return answer


def test_a_word_that_agrees(job: Job) -> None:
    """Batch and offsets are those of the last commit, with or without the queries' names."""
    offsets = [{"orders": {"0": 4, "1": 6}}]
    check_answer(_said(job, offsets=offsets), str(job.checkpoint))
    check_answer(_said(job, queries=[job.query_answer(0, 4, 6)]), str(job.checkpoint))
    other = {**job.query_answer(9, 99, 99), "query_id": "another"}
    check_answer(_said(job, queries=[other, job.query_answer(0, 4, 6)]), str(job.checkpoint))


def test_a_word_that_says_no_batch(job: Job) -> None:
    """A job that committed none, or was answered for, says nothing to compare."""
    check_answer(_said(job, batch_id=None), str(job.checkpoint))
    check_answer(_said(job, queries=[job.query_answer(None)]), str(job.folder / "nowhere"))


@pytest.mark.parametrize("with_queries", [True, False])
def test_another_batch_is_refused(job: Job, *, with_queries: bool) -> None:
    """Both numbers are named: the checkpoint is a copy from another time."""
    more = {"queries": [job.query_answer(7, 99, 6)]} if with_queries else {"batch_id": 7}
    with pytest.raises(StopError, match=r"last committed batch is 0, and 7 in the answer"):
        check_answer(_said(job, **more), str(job.checkpoint))


def test_other_offsets_are_refused(job: Job) -> None:
    """The partition is named with both positions."""
    answer = _said(job, queries=[job.query_answer(0, 4, 99)])
    with pytest.raises(StopError, match=r"position of orders\[1\] is 6, and 99 in the answer"):
        check_answer(answer, str(job.checkpoint))
    answer = _said(job, queries=[job.query_answer(0, 4, 6, 8)])
    with pytest.raises(StopError, match=r"position of orders\[2\] is none, and 8 in the answer"):
        check_answer(answer, str(job.checkpoint))


def test_the_checkpoint_of_another_job_is_refused(job: Job) -> None:
    """Even one whose numbers are the same."""
    answer = _said(job, queries=[{**job.query_answer(0, 4, 6), "query_id": "another"}])
    with pytest.raises(StopError, match=r"the job that has stopped ran another; give the checkp"):
        check_answer(answer, str(job.checkpoint))
    metadata = job.checkpoint / "metadata"
    metadata.write_text(json.dumps({"id": "another"}))
    check_answer(answer, str(job.checkpoint))
