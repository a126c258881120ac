"""The task that stops a job, as the tests of its waits and of its kills run it."""

from collections.abc import Mapping
from typing import Any

from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator

REQUEST_ID = "failover:manual__1#1"
"""The first stop in a worker's run."""
JOB: dict[str, Any] = {"name": "orders", "homes": {"east": "{{ dag_run.conf.folder }}"}}


def stop_task(
    *, job: Mapping[str, Any] | None = None, **settings: Any
) -> StopSparkStreamingOperator:
    """Return the task; its run's conf names the job's folder, ``job`` further fields of the job."""
    return _task(job={**JOB, **(job or {})}, **settings)


def step_task(move: Any) -> StopSparkStreamingOperator:  # noqa: ANN401 - of many kinds
    """Return the task as a step of a move."""
    return _task(move=move)


def _task(**settings: Any) -> StopSparkStreamingOperator:
    with DAG("failover", schedule=None):
        return StopSparkStreamingOperator(
            task_id="stop",
            **{
                "quiet_period": 0.05,
                "poll_interval": 0.02,
                "deferrable": True,
                **settings,
            },
        )
