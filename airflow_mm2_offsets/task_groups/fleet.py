"""The tasks of a failover of many jobs, in waves: for users' own DAGs and ``mm2_fleet``."""

from collections.abc import Mapping
from typing import Any

from airflow.providers.common.compat.sdk import TaskGroup

from airflow_mm2_offsets.core.approval import Ask
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.operators.fleet import FLEET_MODES
from airflow_mm2_offsets.task_groups import RETRIES
from airflow_mm2_offsets.task_groups.steps import OPERATORS
from airflow_mm2_offsets.task_groups.waves import FleetTasks

OWN_TASKS = ("read_manifest", "archive_syncs", "preview", "approve_fleet", "turn", "report_fleet")
"""The tasks beside those of each job's failover that take arguments."""


def fleet_tasks(
    *,
    manifest: str,
    archive: str | None = None,
    waves: int = 3,
    at_once: int | str = 5,
    mode: str = FailoverMode.PLANNED.value,
    ask: str = Ask.ABOVE_THRESHOLDS.value,
    response_timeout: float | str | None = None,
    verify: bool = False,
    mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
    source_kafka_conn_id: str = "kafka_source",
    target_kafka_conn_id: str = "kafka_target",
    reports_folder: str | None = None,
    deferrable: bool | None = True,
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
    group_id: str = "fleet",
    prefix_group_id: bool = False,
    default_args: Mapping[str, Any] | None = None,
) -> TaskGroup:
    """Add the tasks that move all jobs of a manifest to the target cluster; return their group.

    Call it inside a DAG. It reads the manifest, archives the offset syncs, plans all jobs from
    where they stand, asks for one approval over the total, and moves the jobs wave by wave: each
    wave is a task group that is expanded over its jobs. A job that fails holds the next wave, and
    not the others of its own. Run again, it moves only what is left.

    Args:
        manifest: The file that lists the jobs; docs/fleet.md. It is read when the DAG runs.
        archive: See ``TranslateOffsetsOperator``: the syncs topic is read into it once for all.
            None or empty text: there is none, as where copies keep their offsets.
        waves: How many waves the DAG has; those without jobs are skipped.
        at_once: How many jobs of a wave may be at work at once.
        mode: ``planned`` or ``disaster``.
        ask: See ``ApproveFailoverOperator``: of the approval over the total. A job whose later plan
            is worse than what was approved for it asks again, unless it is ``never``.
        response_timeout: The deadline of each approval, in seconds; None: it waits for ever.
        verify: Compare both clusters and the outputs of each job at the end.
        mm2_conn_id: Id of a connection of type ``mm2``.
        source_kafka_conn_id: See ``failover_tasks``.
        target_kafka_conn_id: See ``failover_tasks``.
        reports_folder: Where all reports are kept. None: the jobs' beside their target folders, and
            the fleet's in XCom alone.
        deferrable: See ``failover_tasks``.
        arguments: Further arguments by task id: those of ``failover_tasks`` count for each job,
            beside ``read_manifest``, ``archive_syncs``, ``preview``, ``approve_fleet``, ``turn``
            and ``report_fleet``. They count before those of the manifest.
        group_id: The group's id.
        prefix_group_id: Begin the task ids with the group's.
        default_args: Of all tasks; two retries by default.

    Raises:
        ConfigurationError: ``arguments`` names a task that is not there, or ``waves`` is no number
            from 1.
    """
    tasks_arguments = arguments or {}
    known = (*OWN_TASKS, *OPERATORS)
    if unknown := ", ".join(sorted(set(tasks_arguments) - set(known))):
        raise ConfigurationError(f"arguments names {unknown}; name one of {', '.join(known)}")
    if waves < 1:
        raise ConfigurationError(f"waves is {waves}; give a number from 1")
    defaults: Any = {**RETRIES, **(default_args or {})}  # Airflow's annotation takes no dict
    with TaskGroup(group_id, prefix_group_id=prefix_group_id, default_args=defaults) as group:
        FleetTasks(
            settings={
                "mode": mode,
                "archive": archive,
                "mm2_conn_id": mm2_conn_id,
                "reports": reports_folder,
                "ask": ask,
                "response_timeout": response_timeout,
            },
            manifest=manifest,
            waves=waves,
            at_once=at_once,
            failover={
                "mode": mode,
                "modes": tuple(FLEET_MODES),
                "archive": archive,
                "mm2_conn_id": mm2_conn_id,
                "source_kafka_conn_id": source_kafka_conn_id,
                "target_kafka_conn_id": target_kafka_conn_id,
                "reports_folder": reports_folder,
                "verify": verify,
                "deferrable": deferrable,
            },
            arguments=tasks_arguments,
            default_args=default_args or {},
        ).add()
    return group
