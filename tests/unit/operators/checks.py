"""Runs CheckFailoverOperator for a job that is only played."""

from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.errors import NotReadyError
from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker


def check(job: Job, **settings: Any) -> CheckFailoverOperator:
    """Return the task, for a job beside whose folder the target's is."""
    folder = job.folder.parent
    arguments = {
        "checkpoint": str(job.checkpoint),
        "control": str(job.control),
        "target_checkpoint": str(folder / "target" / "checkpoint"),
        "plan_path": str(folder / "target" / "plans" / "{{ run_id }}.json"),
        **settings,
    }
    with DAG("failover", schedule=None):
        return CheckFailoverOperator(task_id="check", **arguments)


def problems(worker: Worker, task: CheckFailoverOperator) -> list[str]:
    """Run the task, which must fail; return the problems that it lists."""
    with pytest.raises(NotReadyError) as caught:
        worker.run(task)
    head, *listed = str(caught.value).split("\n  - ")
    expected = f"the failover can't begin, and nothing was stopped; {len(listed)} to mend:"
    assert head == expected
    return listed
