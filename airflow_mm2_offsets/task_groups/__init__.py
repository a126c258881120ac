"""The tasks of a move as one group: for users' own DAGs and the example ``mm2_failover``."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, TaskGroup, chain

from airflow_mm2_offsets.core.approval import Ask
from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.errors import ConfigurationError, did_you_mean
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.request import MoveRequest
from airflow_mm2_offsets.operators.approve import ApproveFailoverOperator
from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from airflow_mm2_offsets.operators.handover import TriggerTargetDagOperator
from airflow_mm2_offsets.operators.report import ReportFailoverOperator
from airflow_mm2_offsets.operators.rollback import WITHDRAW
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.sensors.replication import Mm2ReplicatedSensor

RETRIES: Mapping[str, Any] = {"retries": 2, "retry_delay": timedelta(seconds=30)}
"""For a lost worker, or a cluster that does not answer for a moment."""
READ_TIMEOUT = timedelta(minutes=15)
"""For a storage that takes requests and never answers: the job may have stopped meanwhile."""
STEPS: Mapping[str, type[BaseOperator]] = {
    "check": CheckFailoverOperator,
    "stop_source": StopSparkStreamingOperator,
    "wait_replicated": Mm2ReplicatedSensor,
    "translate": TranslateOffsetsOperator,
    "approve": ApproveFailoverOperator,
    "start_target": TriggerTargetDagOperator,
    "wait_started": SparkStartedSensor,
    "report": ReportFailoverOperator,
}
"""The tasks in their order; the journal carries what one of them tells the next."""
_WAITING = frozenset({"stop_source", "wait_replicated", "wait_started"})
_READING = frozenset({"check", "translate"})


def failover_tasks(
    *,
    job: SparkJob | str,
    policy: str = PLANNED.name,
    dry_run: bool | str = False,
    source_is_gone: bool | str = False,
    positions: Mapping[str, Any] | str | None = None,
    options: Mapping[str, Any] | str | None = None,
    approve: str = Ask.ABOVE_THRESHOLDS.value,
    on_failure: str = WITHDRAW,
    deferrable: bool | None = True,
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
    group_id: str = "failover",
    prefix_group_id: bool = True,
    default_args: Mapping[str, Any] | None = None,
) -> TaskGroup:
    """Add the tasks that move one job to its other cluster, and return their group.

    Call it inside a DAG. It checks all that can be known before the stop, stops the job and reads
    where, waits for MirrorMaker 2, translates and forecasts, asks for approval above the job's
    thresholds, starts the job's DAG at the other cluster, waits for the first batch there, and
    reports. A move that fails before the job is handed over is taken back. Texts may be templates.

    Args:
        job: The job, or its name in the file of jobs.
        policy: ``planned`` or ``disaster``.
        dry_run: Say what each step would do, and change nothing.
        source_is_gone: See ``MoveRequest``.
        positions: In a disaster, where nothing else says so: where the job stands.
        options: How the positions are translated: see ``TranslateOffsetsOperator``.
        approve: When a person is asked: ``above_thresholds``, ``always`` or ``never``.
        on_failure: What a failure before the hand-over undoes: see ``RollbackFailoverOperator``.
        deferrable: Wait in the triggerer: no wait holds a worker's slot. False: in the worker;
            None: as ``[operators] default_deferrable`` says.
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
    move = MoveRequest(job=job, policy=policy, dry_run=dry_run, source_is_gone=source_is_gone)
    settings: dict[str, dict[str, Any]] = {
        "check": {"positions": positions, "options": options},
        "stop_source": {"positions": positions},
        "translate": {"options": options},
        "approve": {"ask": approve},
        "report": {"on_failure": on_failure},
    }
    defaults: Any = {**RETRIES, **(default_args or {})}  # Airflow's annotation takes no dict
    with TaskGroup(group_id, prefix_group_id=prefix_group_id, default_args=defaults) as group:
        chain(
            *(
                operator(
                    task_id=name,
                    move=move,
                    **{
                        "trigger_rule": "all_done" if name == "report" else "none_failed",
                        **({"deferrable": deferrable} if name in _WAITING else {}),
                        **({"execution_timeout": READ_TIMEOUT} if name in _READING else {}),
                        **settings.get(name, {}),
                        **own.get(name, {}),
                    },
                )
                for name, operator in STEPS.items()
            )
        )
    return group
