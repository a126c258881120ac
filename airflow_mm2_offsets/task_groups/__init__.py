"""The tasks of a move as one group: for users' own DAGs and the example ``mm2_failover``."""

from collections.abc import Callable, Mapping
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
from airflow_mm2_offsets.operators.handover import HandOverOperator, TriggerTargetDagOperator
from airflow_mm2_offsets.operators.platform import AfterCancel, BeforeCancel, BeforeSubmit
from airflow_mm2_offsets.operators.reconcile import ReconcileOperator
from airflow_mm2_offsets.operators.report import ReportFailoverOperator
from airflow_mm2_offsets.operators.rollback import WITHDRAW
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.sensors.replication import Mm2ReplicatedSensor
from airflow_mm2_offsets.sensors.stopped import SparkStoppedSensor
from airflow_mm2_offsets.task_groups.platforms import (
    OperatorFactory,
    call_factory,
    from_hand_over,
)

__all__ = ["OperatorFactory", "failover_tasks", "from_hand_over"]

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
VERIFY = "verify"
OF_STOP, OF_SUBMIT = "cancel_source", "hand_over"
"""The further tasks of a group that is given ``stop``, or ``submit``."""
QUIET_PERIOD = 60.0
"""Seconds that ``stop_source`` waits after a platform's cancel, unless it is told otherwise."""
APPROVAL_SECONDS = 3600.0
"""How long ``approve`` waits for a person, unless it is told otherwise: the job is stopped then."""
_WAITING = frozenset({"stop_source", "wait_replicated", "wait_started"})
_READING = frozenset({"check", "translate"})


def failover_tasks(
    *,
    job: SparkJob | str,
    to: str | None = None,
    policy: str = PLANNED.name,
    dry_run: bool | str = False,
    source_is_gone: bool | str = False,
    positions: Mapping[str, Any] | str | None = None,
    options: Mapping[str, Any] | str | None = None,
    stop: OperatorFactory | None = None,
    submit: OperatorFactory | None = None,
    submit_is_idempotent: bool = False,
    verify: bool = False,
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
        to: The cluster that it goes to, by its alias; None: its other one. A move that names it
            moves no job back that is there already.
        policy: ``planned`` or ``disaster``.
        dry_run: Say what each step would do, and change nothing.
        source_is_gone: See ``MoveRequest``.
        positions: In a disaster, where nothing else says so: where the job stands.
        options: How the positions are translated: see ``TranslateOffsetsOperator``.
        stop: Makes the operator that cancels a job without ``StopControl`` on its platform: an
            operator's class, or ``functools.partial`` of it. The group calls it with ``task_id``
            (``cancel_source``), ``trigger_rule`` and hooks. ``stop_source`` then waits until the
            checkpoint does not change: see ``SparkStoppedSensor``, to which ``arguments`` gives a
            ``quiet_period`` (60 s by default).
        submit: Makes, in the same way, the operator that submits the job to its platform, the task
            ``start_target``; ``hand_over`` runs before it. Its templates take what they need by
            ``from_hand_over``. It must return when the job is submitted, and not wait for its end.
        submit_is_idempotent: Whether the platform starts one job, however often ``submit`` runs in
            one move, because ``submit`` gives the platform a token or a name.
        verify: Compare both clusters and the outputs at the end: adds the task ``verify``.
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
        ConfigurationError: ``arguments`` names a task that the group does not have; the job
            contradicts ``stop`` or ``submit``; or one of these makes no usable operator.
    """
    own = arguments or {}
    _check_start(job, stop, submit)
    move = MoveRequest(
        job=job, to=to, policy=policy, dry_run=dry_run, source_is_gone=source_is_gone
    )
    steps = _steps(move, stop, submit, submit_is_idempotent=submit_is_idempotent)
    if verify:
        steps = _with(steps, "report", {VERIFY: _step_of(ReconcileOperator, move)}, steps["report"])
    for name in own:
        if name not in steps:
            hint = did_you_mean(name, steps, otherwise=f"name one of {', '.join(steps)}")
            raise ConfigurationError(f"arguments names {name}, and no task is called so; {hint}")
    settings: dict[str, dict[str, Any]] = {
        "check": {"positions": positions, "options": options},
        "translate": {"options": options},
        "approve": {
            "ask": approve,
            "response_timeout": APPROVAL_SECONDS,
            "on_failure": on_failure,
        },
        # A lost worker leaves its Spark driver behind, which may still write the report.
        VERIFY: {"retries": 0},
        "report": {"on_failure": on_failure},
    }
    if stop is None:
        settings["stop_source"] = {"positions": positions}
    else:
        settings["stop_source"] = {"quiet_period": QUIET_PERIOD}
    defaults: Any = {**RETRIES, **(default_args or {})}  # Airflow's annotation takes no dict
    with TaskGroup(group_id, prefix_group_id=prefix_group_id, default_args=defaults) as group:
        tasks = []
        for name, step in steps.items():
            given = {
                "trigger_rule": "all_done" if name == "report" else "none_failed",
                **({"deferrable": deferrable} if name in _WAITING else {}),
                **({"execution_timeout": READ_TIMEOUT} if name in _READING else {}),
                **settings.get(name, {}),
                **own.get(name, {}),
            }
            tasks.append(step(name, given))
        chain(*tasks)
    return group


Step = Callable[[str, dict[str, Any]], BaseOperator]
"""Makes a task by its id and arguments."""


def _steps(
    move: MoveRequest,
    stop: OperatorFactory | None,
    submit: OperatorFactory | None,
    *,
    submit_is_idempotent: bool,
) -> dict[str, Step]:
    """Return what makes each task, in their order."""

    def of(operator: type[BaseOperator]) -> Step:
        return _step_of(operator, move)

    steps: dict[str, Step] = {name: of(operator) for name, operator in STEPS.items()}
    as_json = move.to_json()
    if stop is not None:
        hooks = {
            "pre_execute": BeforeCancel(move=as_json),
            "post_execute": AfterCancel(move=as_json),
        }
        steps = _with(
            steps, "stop_source", {OF_STOP: _own("stop", stop, hooks)}, of(SparkStoppedSensor)
        )
    if submit is not None:
        before = BeforeSubmit(move=as_json, is_idempotent=submit_is_idempotent)
        own = _own("submit", submit, {"pre_execute": before})
        if not submit_is_idempotent:
            inner = own
            own = lambda name, given: inner(name, {"retries": 0, **given})  # noqa: E731
        steps = _with(steps, "start_target", {OF_SUBMIT: of(HandOverOperator)}, own)
    return steps


def _step_of(operator: type[BaseOperator], move: MoveRequest) -> Step:
    return lambda name, given: operator(task_id=name, move=move, **given)


def _with(
    steps: dict[str, Step], name: str, before: dict[str, Step], step: Step
) -> dict[str, Step]:
    """Return steps with one of them replaced, and others directly before it."""
    made: dict[str, Step] = {}
    for each, own in steps.items():
        made |= {**before, name: step} if each == name else {each: own}
    return made


def _own(name: str, factory: OperatorFactory, hooks: Mapping[str, Any]) -> Step:
    """Return what makes a task of the user's own operator; the group's rule and hooks hold."""

    def make(task_id: str, given: dict[str, Any]) -> BaseOperator:
        rule = {"trigger_rule": "none_failed"}
        return call_factory(name, factory, task_id=task_id, **{**given, **rule, **hooks})

    return make


def _check_start(
    job: SparkJob | str, stop: OperatorFactory | None, submit: OperatorFactory | None
) -> None:
    """Raise where a job in code contradicts how it is stopped and started."""
    if not isinstance(job, SparkJob):  # a name, or what Airflow maps over
        return
    if (job.dag is None) == (submit is None):
        both = "both are given" if submit else "neither is given"
        raise ConfigurationError(
            f"job {job.name}: dag or submit: {both}; give one of them, the DAG that runs the job, "
            f"or what submits it to its platform"
        )
    if job.is_controlled is (stop is not None):
        raise ConfigurationError(
            f"job {job.name}: is_controlled is {job.is_controlled}, and stop is "
            f"{'given' if stop else 'not given'}: a job that its platform cancels (stop) runs "
            f"without StopControl, and only such a job needs it"
        )
