"""Whether the DAG that runs the job on the target can be triggered: ``check`` and hand-over ask."""

import logging
from collections.abc import Mapping
from typing import Any

from airflow.providers.common.compat.sdk import Context
from airflow.sdk.exceptions import AirflowRuntimeError

from airflow_mm2_offsets.operators.settings import given

log = logging.getLogger(__name__)

_NOT_FOUND = 404


def find_dag_problems(context: Context, dag_id: str) -> list[str]:
    """Return why a run of a DAG would not start, as sentences; an empty list if it would.

    A run of a paused DAG is queued. It would start the job when a user unpauses the DAG, perhaps
    long after the failover was given up. Only Airflow 3.2 and later tell a task about a DAG.

    Raises:
        AirflowRuntimeError: Airflow did not answer.
    """
    # The class is private to the SDK, and has no such method before Airflow 3.2.
    get_dag: Any = getattr(context["ti"], "get_dag", None)
    if get_dag is None:
        log.warning(
            "Airflow before 3.2 does not tell a task about DAG %s: check that it exists "
            "and is not paused",
            dag_id,
        )
        return []
    try:
        dag = get_dag(dag_id)
    except AirflowRuntimeError as error:
        if (error.error.detail or {}).get("status_code") != _NOT_FOUND:
            raise
        return [f"Airflow has no DAG {dag_id}: give the DAG that runs the job, or mend its import"]
    if not dag.is_paused:
        return []
    problem = (
        f"DAG {dag_id} is paused, so a run of it would wait, and start the job when a user "
        f"unpauses it: unpause it first"
    )
    return [problem]


def with_output(conf: Any, output: str | None) -> Any:  # noqa: ANN401 - what users give
    """Return a conf that names the job's output, where it is not ``output`` in its folder."""
    if given(output) is None or not isinstance(conf, Mapping):
        return conf
    if str(output).rstrip("/") == f"{conf.get('folder')}/output":
        return conf
    return {**conf, "output": output}


def tells_of_dags(context: Context) -> bool:
    """Tell whether this Airflow tells a task about DAGs: 3.2 and later do."""
    return getattr(context["ti"], "get_dag", None) is not None


def has_dag_run(context: Context, dag_id: str, run_id: str) -> bool:
    """Tell whether a DAG has a run of this id, whatever its state.

    Raises:
        AirflowRuntimeError: Airflow did not answer.
    """
    task_instance: Any = context["ti"]
    return bool(task_instance.get_dr_count(dag_id=dag_id, run_ids=[run_id]))
