"""What Airflow tells a task about its run and about the other tasks; the report asks for it."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeVar

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.core.report import Step, order_steps
from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.storage import write_text

T = TypeVar("T")


def steps_of(context: Context) -> tuple[Step, ...]:
    """Return the tasks before this one, with what Airflow tells a task about them.

    ``get_task_breadcrumbs``, which Airflow 3.1 lacks, has the durations of ended tasks. No release
    of Airflow up to 3.3 tells a task when another one has started.
    """
    instance: Any = context["ti"]
    task_ids = _steps_before(context["task"])
    states = states_of(instance, task_ids)
    seconds = _durations(instance)
    index = instance.map_index
    return order_steps(
        [
            Step(task_id=each, state=states.get((each, index)), seconds=seconds.get(each))
            for each in task_ids
        ]
    )


def states_of(instance: Any, task_ids: Iterable[str]) -> dict[tuple[str, int], str | None]:  # noqa: ANN401 - Airflow's, of any release
    """Return the states of tasks of a run, by task id and map index; -1: it is not mapped."""
    names = sorted(task_ids)
    runs = instance.get_task_states(
        dag_id=instance.dag_id, run_ids=[instance.run_id], task_ids=names
    )
    known = {*names}
    states = {}
    for name, state in runs.get(instance.run_id, {}).items():
        # Airflow appends the index to the id of a mapped task.
        task_id, _, index = name.rpartition("_")
        is_mapped = name not in known and index.isdecimal()
        states[(task_id, int(index)) if is_mapped else (name, -1)] = _state(state)
    return states


def _steps_before(task: Any) -> set[str]:  # noqa: ANN401 - Airflow's kinds
    """Return the tasks before a task; in a mapped group those of the group, which moves one job."""
    task_ids = set(task.get_flat_relative_ids(upstream=True))
    group = task.get_closest_mapped_task_group()
    return task_ids if group is None else task_ids & {each.task_id for each in group.iter_tasks()}


def _durations(instance: Any) -> dict[str, float | None]:  # noqa: ANN401 - Airflow's, of any release
    if not hasattr(instance, "get_task_breadcrumbs"):
        return {}
    crumbs = instance.get_task_breadcrumbs(instance.dag_id, instance.run_id)
    return {
        crumb["task_id"]: crumb.get("duration")
        for crumb in crumbs
        if crumb.get("map_index", -1) == instance.map_index
    }


def write_report(
    folder: str, context: Context, document: Mapping[str, Any], summary: str, *, distinct: str
) -> list[str]:
    """Write a report as JSON and as Markdown, and return where the files are.

    Args:
        folder: Of all reports.
        context: Names the run.
        document: The report.
        summary: The same as Markdown.
        distinct: What tells it from other reports of the run.
    """
    # Not every storage accepts all characters of a run's id in a file name.
    run = f"{context['ti'].dag_id}__{context['ti'].run_id}"
    name = "".join(each if each.isalnum() or each in "-_." else "-" for each in run)
    digest = sha256(distinct.encode()).hexdigest()[:8]
    paths = [storage_path(folder) / f"{name}.{digest}.{end}" for end in ("json", "md")]
    write_text(paths[0], json.dumps(document, indent=1, default=str), StopError)
    write_text(paths[1], summary, StopError)
    return [*map(str, paths)]


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
