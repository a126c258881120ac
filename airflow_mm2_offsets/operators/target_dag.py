"""Whether the DAG that runs the job on the target can be triggered: ``check`` and hand-over ask."""

import logging
from typing import Any

from airflow.providers.common.compat.sdk import Context
from airflow.sdk.exceptions import AirflowRuntimeError

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


def has_dag_run(context: Context, dag_id: str, run_id: str) -> bool:
    """Tell whether a DAG has a run of this id, whatever its state.

    Raises:
        AirflowRuntimeError: Airflow did not answer.
    """
    task_instance: Any = context["ti"]
    return bool(task_instance.get_dr_count(dag_id=dag_id, run_ids=[run_id]))
