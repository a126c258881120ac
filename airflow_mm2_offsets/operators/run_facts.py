"""What Airflow tells a task about its run and about the other tasks; the report asks for it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.core.report import Step, order_steps
from airflow_mm2_offsets.operators.settings import given

T = TypeVar("T")


def steps_of(context: Context) -> tuple[Step, ...]:
    """Return the tasks before this one, with what Airflow tells a task about them.

    ``get_task_breadcrumbs``, which Airflow 3.1 lacks, has the durations of ended tasks. No release
    of Airflow up to 3.3 tells a task when another one has started.
    """
    instance: Any = context["ti"]
    task_ids = set(context["task"].get_flat_relative_ids(upstream=True))
    states = instance.get_task_states(
        dag_id=instance.dag_id, run_ids=[instance.run_id], task_ids=sorted(task_ids)
    ).get(instance.run_id, {})
    seconds = _durations(instance)
    return order_steps(
        [
            Step(task_id=each, state=_state(states.get(each)), seconds=seconds.get(each))
            for each in task_ids
        ]
    )


def _durations(instance: Any) -> dict[str, float | None]:  # noqa: ANN401 - Airflow's, of any release
    if not hasattr(instance, "get_task_breadcrumbs"):
        return {}
    crumbs = instance.get_task_breadcrumbs(instance.dag_id, instance.run_id)
    return {crumb["task_id"]: crumb.get("duration") for crumb in crumbs}


def _state(state: object) -> str | None:
    return None if state is None else str(getattr(state, "value", state))


def run_facts(context: Context) -> dict[str, Any]:
    """Return which run it is, and who started it when."""
    instance, dag_run = context["ti"], context["dag_run"]
    logical_date = getattr(dag_run, "logical_date", None)
    start = getattr(dag_run, "start_date", None)
    return {
        "dag_id": instance.dag_id,
        "run_id": instance.run_id,
        "logical_date": logical_date.isoformat() if logical_date else None,
        "started_at": start.isoformat() if start else None,
        "reported_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "run_type": _state(getattr(dag_run, "run_type", None)),
        "triggered_by": getattr(dag_run, "triggering_user_name", None),
    }


def attempt(get: Callable[[], T], otherwise: T, what: str, remarks: list[str]) -> T:
    """Return a part of the report; whatever is wrong with it is a remark, and no failure."""
    try:
        return get()
    except Exception as error:  # noqa: BLE001 - the report is what the person on call reads
        remarks.append(f"{what}: {type(error).__name__}: {error}")
        return otherwise


def as_mapping(value: object) -> dict[str, Any] | None:
    """Return what a task returned; None where it was skipped or failed."""
    return {**value} if isinstance(value, Mapping) else None


def sentences(values: object) -> list[str]:
    """Return the sentences of a dry run; a task that was skipped has none."""
    found = []
    for value in values if isinstance(values, Sequence) and not isinstance(values, str) else ():
        sentence = value.get("intent") if isinstance(value, Mapping) else value
        if text := given(sentence):
            found.append(text)
    return found
