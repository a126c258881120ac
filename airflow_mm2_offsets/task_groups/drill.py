"""The tasks of a drill as one group: for users' own DAGs and the example ``mm2_drill``."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from airflow.providers.common.compat.sdk import BaseOperator, TaskGroup, chain

from airflow_mm2_offsets.core.policy import DRILL
from airflow_mm2_offsets.errors import ConfigurationError, did_you_mean
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.request import MoveRequest
from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from airflow_mm2_offsets.operators.drill import StartDrillOperator
from airflow_mm2_offsets.operators.drill_teardown import TearDownDrillOperator
from airflow_mm2_offsets.operators.reconcile import ReconcileOperator
from airflow_mm2_offsets.operators.report import ReportFailoverOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.task_groups import READ_TIMEOUT, RETRIES
from airflow_mm2_offsets.task_groups.platforms import SAME_JOB

__all__ = ["drill_tasks"]

STEPS: Final[Mapping[str, type[BaseOperator]]] = {
    "check": CheckFailoverOperator,
    "translate": TranslateOffsetsOperator,
    "start_drill": StartDrillOperator,
    "wait_started": SparkStartedSensor,
    "verify": ReconcileOperator,
    "tear_down": TearDownDrillOperator,
    "report": ReportFailoverOperator,
}
"""The tasks in their order."""
_OF_MOVE = frozenset({"check", "translate", "start_drill", "tear_down", "report"})
"""The tasks that take the move; the other two get what they need from the tasks before them."""
_LAST = frozenset({"tear_down", "report"})
"""The tasks that run whatever has failed before."""


def drill_tasks(
    *,
    job: SparkJob | str,
    folder: str,
    options: Mapping[str, Any] | str | None = None,
    min_records: int | str = 1,
    deferrable: bool | None = True,
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
    group_id: str = "drill",
    prefix_group_id: bool = True,
    default_args: Mapping[str, Any] | None = None,
) -> TaskGroup:
    """Add the tasks that rehearse a job's move to its other cluster, and return their group.

    Call it inside a DAG. The job runs on where it is. The group checks what its move would need,
    translates where the job stands now, starts a second copy of it at the other cluster in a
    throw-away folder, waits for its first records, compares what it has written with both clusters,
    and removes it. The report says what a move would cost. Texts may be templates.

    Args:
        job: The job, or its name in the file of jobs.
        folder: Where the copy lives. Only drills of this job use it, and all in it is removed.
        options: How the positions are translated: see ``TranslateOffsetsOperator``.
        min_records: How many records the copy must have read before it is compared.
        deferrable: See ``failover_tasks``.
        arguments: Further arguments of the operators, by task id without prefix, such as
            ``{"wait_started": {"timeout": 3600}}``. They count before those of this function.
        group_id: The group's id.
        prefix_group_id: Begin the task ids with the group's, as Airflow does.
        default_args: Of the group's tasks; two retries by default.

    Raises:
        ConfigurationError: ``arguments`` names a task that the group does not have.
    """
    own = arguments or {}
    for name in own:
        if name not in STEPS:
            hint = did_you_mean(name, STEPS, otherwise=f"name one of {', '.join(STEPS)}")
            raise ConfigurationError(f"arguments names {name}, and no task is called so; {hint}")
    move = MoveRequest(job=job, policy=DRILL.name)
    defaults: Any = {**RETRIES, **(default_args or {})}  # Airflow's annotation takes no dict
    with TaskGroup(group_id, prefix_group_id=prefix_group_id, default_args=defaults) as group:
        settings = _settings(group.child_id, folder, options, min_records)
        for name in ("wait_started", "tear_down"):
            settings[name]["deferrable"] = deferrable
        tasks: list[BaseOperator] = []
        for name, operator in STEPS.items():
            given = {
                **({"move": move} if name in _OF_MOVE else {}),
                **settings.get(name, {}),
                **({"trigger_rule": "all_done"} if name in _LAST else {}),
                **own.get(name, {}),
            }
            tasks.append(operator(task_id=name, **given))
        chain(*tasks)
    return group


def _settings(
    child_id: Callable[[str], str],
    folder: str,
    options: Mapping[str, Any] | str | None,
    min_records: int | str,
) -> dict[str, dict[str, Any]]:
    """Return the arguments of each task; ``child_id`` makes the ids of the group's tasks."""

    def pull(task: str, key: str = "return_value", end: str = "") -> str:
        task_id = child_id(task)
        return f"{{{{ ti.xcom_pull(task_ids='{task_id}', key='{key}', {SAME_JOB}){end} }}}}"

    started = pull("start_drill", end="['folder']")
    plan = pull("translate", end=" | tojson")
    return {
        "check": {"options": options, "execution_timeout": READ_TIMEOUT},
        "translate": {"options": options, "execution_timeout": READ_TIMEOUT},
        "start_drill": {"folder": folder, "plan": plan},
        "wait_started": {
            "checkpoint": f"{started}/checkpoint",
            "starting_offsets": pull("translate", "starting_offsets"),
            "min_records": min_records,
        },
        "verify": {
            "report": f"{started}/verified",
            "mm2_conn_id": pull("start_drill", end="['mm2_conn_id']"),
            "to": pull("start_drill", end="['to']"),
            "plan": plan,
            # The copy's output holds no record of before its start.
            "scope": {
                "committed": pull("wait_started", end="['positions']"),
                "records_before": 0,
            },
            "sinks": [{"cluster": "target", "path": pull("start_drill", end="['output']")}],
            # A lost worker leaves its Spark driver behind, which may still write the report.
            "retries": 0,
        },
        "tear_down": {"folder": folder},
    }
