"""The task that stops a job, as the tests of its waits and of its kills run it."""

from typing import Any

from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator

REQUEST_ID = "failover:manual__1#1"
"""The first stop in a worker's run."""


def stop_task(**settings: Any) -> StopSparkStreamingOperator:
    """Return the task; its run's conf names the job's folder."""
    with DAG("failover", schedule=None):
        return StopSparkStreamingOperator(
            task_id="stop",
            **{
                "home": "{{ dag_run.conf.folder }}",
                "quiet_period": 0.05,
                "poll_interval": 0.02,
                "deferrable": True,
                **settings,
            },
        )
