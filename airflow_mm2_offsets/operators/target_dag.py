"""What a task may ask Airflow about the DAG that runs the job on the target."""

import logging
from typing import Any

from airflow.providers.common.compat.sdk import Context
from airflow.sdk.exceptions import AirflowRuntimeError

log = logging.getLogger(__name__)

_NOT_FOUND = 404


def find_dag_problems(context: Context, dag_id: str) -> list[str]:
    """Return why a run of a DAG would not start, as sentences; none where it would.

    A run of a paused DAG is queued: it would start a job whenever somebody unpauses the DAG,
    perhaps long after the failover was given up. Airflow tells a task from 3.2 on.

    Raises:
        AirflowRuntimeError: Airflow did not answer.
    """
    # Its class is the SDK's own, and has no such method before Airflow 3.2.
    ask: Any = getattr(context["ti"], "get_dag", None)
    if ask is None:
        log.warning(
            "Airflow before 3.2 does not tell a task whether DAG %s exists and is paused: see for "
            "yourself",
            dag_id,
        )
        return []
    try:
        found = ask(dag_id)
    except AirflowRuntimeError as error:
        if (error.error.detail or {}).get("status_code") != _NOT_FOUND:
            raise
        return [f"Airflow has no DAG {dag_id}: give the DAG that runs the job, or see its import"]
    if not found.is_paused:
        return []
    problem = (
        f"DAG {dag_id} is paused, so a run of it would wait until somebody unpauses it, and start "
        f"the job then: unpause it first"
    )
    return [problem]


def has_dag_run(context: Context, dag_id: str, run_id: str) -> bool:
    """Tell whether a DAG has a run of this id, whatever its state.

    Raises:
        AirflowRuntimeError: Airflow did not answer.
    """
    ask: Any = context["ti"]
    return bool(ask.get_dr_count(dag_id=dag_id, run_ids=[run_id]))
