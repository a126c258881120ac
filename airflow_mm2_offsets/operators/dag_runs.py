"""Triggers the DAG that runs a job, and tells whether a run of it can start."""

from collections.abc import Mapping
from typing import Any

from airflow.providers.common.compat.sdk import Context
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import ErrorResponse, TriggerDagRun

from airflow_mm2_offsets.moves.jobs import Home, SparkJob


def conf_for(home: Home) -> dict[str, str]:
    """Return the conf by which a job's DAG starts it at a home."""
    output = {"output": home.sink} if home.output else {}
    return {
        "kafka_conn_id": home.kafka_conn_id,
        "folder": home.spark_folder or home.folder,
        **output,
    }


def start_job(
    context: Context, job: SparkJob, home: Home, run_id: str, more: Mapping[str, Any] | None = None
) -> bool:
    """Trigger a job's DAG for a home; False if it has this run already.

    ``TriggerDagRunOperator`` ends its task, and could record nothing afterwards.

    Raises:
        AirflowRuntimeError: Airflow refused.
    """
    message = TriggerDagRun(
        dag_id=str(job.dag), run_id=run_id, conf={**(more or {}), **conf_for(home)}
    )
    answer: Any = task_runner.SUPERVISOR_COMMS.send(message)
    has_run = isinstance(answer, ErrorResponse)
    if has_run and answer.error is not ErrorType.DAGRUN_ALREADY_EXISTS:
        raise AirflowRuntimeError(answer)
    context["ti"].xcom_push(key="trigger_run_id", value=run_id)
    return not has_run
