"""Finds what a call of an operator's method belongs to: run, policy and connection."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_mm2_offsets.core.policy import POLICIES
from airflow_mm2_offsets.observability import Step

BEGAN = "mm2_offsets_began"
"""The argument that carries the time of the first start through a deferral."""


def find_step(arguments: Sequence[object]) -> Step | None:
    """Return the step that a call runs for; None where it is of no operator or has no context.

    Args:
        arguments: Those of the method: the operator and Airflow's context are among them.
    """
    operator = next((each for each in arguments if isinstance(each, BaseOperator)), None)
    maps = [each for each in arguments if isinstance(each, Mapping)]
    context = next((each for each in maps if "ti" in each), None)
    if operator is None or context is None:
        return None
    # Users' own tests call a method with a context of their choice.
    dag_id, run_id, task_id = (
        str(getattr(context["ti"], name, "")) for name in ("dag_id", "run_id", "task_id")
    )
    conn_id = getattr(operator, "mm2_conn_id", None)
    carried = next((each[BEGAN] for each in maps if BEGAN in each), None)
    return Step(
        name=operator.task_id.rpartition(".")[2],
        dag_id=dag_id,
        run_id=run_id,
        task_id=task_id,
        began=float(carried) if carried is not None else _began(operator, context),
        policy=_policy(operator, context),
        conn_id=None if conn_id is None else str(conn_id),
    )


def _began(operator: BaseOperator, context: Mapping[str, Any]) -> float:
    """Return when a task that was not resumed by us first started."""
    task_instance = context["ti"]
    with suppress(Exception):  # a metric's number is not worth a task
        if getattr(operator, "reschedule", False) and not getattr(operator, "deferrable", False):
            first = task_instance.get_first_reschedule_date(context)
            return float(first.timestamp()) if first else time.time()
        if task_instance._ti_context_from_server.next_method:  # noqa: SLF001 - no public name
            return float(task_instance.start_date.timestamp())
    return time.time()


def _policy(operator: BaseOperator, context: Mapping[str, Any]) -> str | None:
    """Return the policy that the operator, its move or the DAG's params name."""
    move = getattr(operator, "move", None)
    of_move = move.get("policy") if isinstance(move, Mapping) else None
    params: Mapping[str, Any] = context.get("params") or {}
    for policy in (of_move, getattr(operator, "policy", None), params.get("policy")):
        if isinstance(policy, str) and policy in POLICIES:
            return policy
    return None
