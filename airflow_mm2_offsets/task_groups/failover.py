"""Builds the tasks of a failover, for all modes; ``failover_tasks`` calls it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from airflow.providers.common.compat.sdk import BaseOperator, Context, XComArg, chain

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.operators.approve import ApproveFailoverOperator
from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from airflow_mm2_offsets.operators.checkpoint import ReadSparkCheckpointOperator
from airflow_mm2_offsets.operators.drill import StartDrillOperator
from airflow_mm2_offsets.operators.drill_teardown import TearDownDrillOperator
from airflow_mm2_offsets.operators.forecast import ForecastFailoverOperator
from airflow_mm2_offsets.operators.handover import HandOverOperator, TriggerTargetDagOperator
from airflow_mm2_offsets.operators.platform import (
    CANCELLED,
    CANCELLED_AT,
    BeforeCancel,
    BeforeSubmit,
    note_cancel,
)
from airflow_mm2_offsets.operators.polling import DeferrablePolling
from airflow_mm2_offsets.operators.reconcile import ReconcileOperator
from airflow_mm2_offsets.operators.report import ReportFailoverOperator
from airflow_mm2_offsets.operators.rollback import RollbackFailoverOperator
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.sensors.replication import Mm2ReplicatedSensor
from airflow_mm2_offsets.sensors.stopped import SparkStoppedSensor
from airflow_mm2_offsets.task_groups.first_gate import FirstGate
from airflow_mm2_offsets.task_groups.gates import INTENT, SAME_JOB, Gate
from airflow_mm2_offsets.task_groups.platforms import OperatorFactory, call_factory

PLANNED, DISASTER, DRILL, FAILBACK = FailoverMode
MOVING = frozenset({PLANNED, DISASTER, FAILBACK})
"""The modes in which the job itself is moved."""
COPYING = frozenset({PLANNED, DRILL, FAILBACK})
"""The modes in which both clusters are up."""

OPERATORS = (
    *("check", "stop_source", "read_positions", "wait_replicated", "translate", "forecast"),
    *("approve", "submit_target", "start_drill", "wait_started", "verify", "tear_down"),
    *("roll_back", "report"),
)
"""The tasks that take arguments, without the group's prefix."""
OF_STOP, OF_SUBMIT = "cancel_source", "hand_over"
"""The further tasks of a group that is given ``stop``, or ``submit``."""
QUIET_PERIOD = 60.0
"""Seconds that ``stop_source`` waits after a platform's cancel, unless it is told otherwise."""
READING = frozenset({"check", "read_positions", "translate", "forecast"})
"""The tasks that read clusters and storage, and wait for nothing else."""
AFTER_FAILURE = frozenset({"tear_down", "roll_back", "report"})
"""The tasks that run although a step before them has failed."""
READ_TIMEOUT = timedelta(minutes=15)
"""For a storage that takes requests and never answers: the job may have stopped meanwhile."""
JOB_FIELDS = frozenset({"checkpoint", "control", "target_checkpoint", "moved_to", "source_is_gone"})
"""The shared arguments that name the source job."""
INTENTS = {
    "cancel_source": "run {operator}, which cancels the job",
    "stop_source": "raise a fence in {control}, ask the job there to stop, and wait for the proof",
    "approve": "ask a person where the numbers are above the thresholds",
    "submit_target": "mark the job as moved to {moved_to} and trigger {trigger_dag_id}",
    "hand_over": "mark the job as moved to {moved_to}",
    "start_drill": "trigger {trigger_dag_id} with the throw-away folder {folder}",
    "wait_started": "wait for the first batch in {checkpoint}",
    "verify": "compare both clusters and the outputs, and report to {report}",
    "tear_down": "stop the job of the drill and remove {folder}",
    "roll_back": "take back what this run has done to the job in {checkpoint}",
}
"""What each task that changes something would do, for a dry run."""
PLATFORM_INTENTS = {
    "stop_source": "wait until {checkpoint} stands still",
    "submit_target": "run {operator}, which submits the job",
}
"""The same of tasks that differ where the group is given ``stop`` or ``submit``."""

REPORTED = {
    "stopped": "stop_source",
    "plan": "translate",
    "forecast": "forecast",
    "approval": "approve",
    "started": "wait_started",
    "verified": "verify",
    "drill": "tear_down",
    "rollback": "roll_back",
}
"""The task whose result each part of the report holds."""


OperatorT = TypeVar("OperatorT", bound=BaseOperator)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverTasks:
    """Adds the tasks of one group. Texts may be templates."""

    mode: str
    dry_run: bool | str
    shared: Mapping[str, Any]
    """Arguments of several operators: each operator takes those that it has a template field of."""
    source_folder: str
    target_folder: str
    source_output: str
    target_output: str
    source_kafka_conn_id: str
    target_kafka_conn_id: str
    verify: bool | str
    deferrable: bool | None
    arguments: Mapping[str, Mapping[str, Any]]
    """The user's arguments, by task id; they count before all others."""
    stop: OperatorFactory | None = None
    """Makes the operator that cancels the job on its platform; None: the job is asked to stop."""
    submit: OperatorFactory | None = None
    """Makes the operator that submits the job; None: its DAG is triggered."""
    submit_is_idempotent: bool = False
    modes: Collection[FailoverMode] = frozenset(FailoverMode)
    """Those that ``mode`` may render as, where it is a template."""
    left_out: str = ""
    """Renders as the reason why no task is to run; as empty text where they are."""
    held: str = ""
    """Renders as the reason why no step may run yet; as empty text where they may."""
    is_mapped: bool = False
    """Whether the group is expanded over several jobs."""
    gates: dict[str, Gate] = field(default_factory=dict)
    """Of the tasks that were added, by task id with the group's prefix."""

    def add(self) -> None:
        """Add the tasks of the modes that the group can have."""
        check = self._add(
            CheckFailoverOperator,
            "check",
            is_first=True,
            target_control=f"{self.target_folder}/control",
            from_folder=self.source_folder,
            sink=self.target_output,
            **self._stand_ins(),
            drill=self._drill_folders() if self._can_run(frozenset({DRILL})) else None,
        )
        stops = self._add_stop()
        stop = stops[-1]
        read = self._add(ReadSparkCheckpointOperator, "read_positions")
        positions: dict[str, Any] = {
            name: XComArg(read, name) for name in ("positions", "clusters")
        }
        wait = self._add(Mm2ReplicatedSensor, "wait_replicated", runs_in=COPYING, **positions)
        translate = self._add(
            TranslateOffsetsOperator,
            "translate",
            pending=XComArg(read, "pending"),
            home_control=f"{self.target_folder}/control",
            **positions,
        )
        forecast = self._add(
            ForecastFailoverOperator,
            "forecast",
            plan=XComArg(translate),
            positions_as_of=XComArg(read, "as_of"),
        )
        approve = self._add(
            ApproveFailoverOperator,
            "approve",
            runs_in=MOVING,
            plan=XComArg(translate),
            forecast=XComArg(forecast),
            job=self.source_folder,
        )
        submits = self._add_submit(stop, read, translate, approve)
        start = [*submits[-1:], *self._add_start_drill(translate)]
        started = self._add(
            SparkStartedSensor,
            "wait_started",
            checkpoint=self.shared["target_checkpoint"],
            # Unlike an XComArg of a key, it may be absent where the whole failover is left out.
            starting_offsets=_pull(translate, "starting_offsets"),
        )
        chain(translate, started)
        steps = [check, *stops, read, wait, translate, forecast, approve, *submits[:-1]]
        chain(*steps, start, started)
        ends = [*self._add_verify(translate, started), *self._add_tear_down()]
        chain(started, *ends)
        undone = self._add_roll_back(stop, [*steps, *start])
        for task in undone:  # at most one
            chain([*steps, *start], task)
        self._add_report([*steps, *start, started, *ends, *undone])

    def _add_stop(self) -> list[BaseOperator]:
        """Add the task that stops the job, after the platform's cancel where there is one."""
        if self.stop is None:
            return [self._add(StopSparkStreamingOperator, "stop_source", runs_in=MOVING)]
        cancel = self._add_own(
            self.stop,
            OF_STOP,
            then=BeforeCancel(settings=self._own_settings()),
            post_execute=note_cancel,
        )
        silence = self._add(
            SparkStoppedSensor,
            "stop_source",
            runs_in=MOVING,
            quiet_period=QUIET_PERIOD,
            cancelled_by=_pull(cancel, CANCELLED),
            cancelled_at=_pull(cancel, CANCELLED_AT),
            intent=PLATFORM_INTENTS["stop_source"],
        )
        return [cancel, silence]

    def _add_submit(
        self,
        stop: BaseOperator,
        read: BaseOperator,
        translate: BaseOperator,
        approve: BaseOperator,
    ) -> list[BaseOperator]:
        """Add the tasks that hand the job over and start it."""
        if not self._can_run(MOVING):
            return []
        handed: dict[str, Any] = {
            "runs_in": MOVING,
            "read": XComArg(read),
            "stopped": XComArg(stop),
            "approval": XComArg(approve),
            "from_folder": self.source_folder,
            "target_control": f"{self.target_folder}/control",
        }
        if self.submit is None:
            tasks: list[BaseOperator] = [
                self._add(
                    TriggerTargetDagOperator,
                    "submit_target",
                    conf=self._conf(translate),
                    job_output=self.target_output,
                    # A cleared task finds the run that it triggered. It is skipped, and the next
                    # goes on.
                    skip_when_already_exists=True,
                    **handed,
                )
            ]
        else:
            tasks = [
                self._add(HandOverOperator, OF_SUBMIT, **handed),
                self._add_own(
                    self.submit,
                    "submit_target",
                    then=BeforeSubmit(
                        settings=self._own_settings(),
                        stop_task_id=stop.task_id,
                        is_idempotent=self.submit_is_idempotent,
                    ),
                    # Airflow's retry would be refused.
                    defaults={} if self.submit_is_idempotent else {"retries": 0},
                ),
            ]
        # Cleared together with the task whose XComs its conf pulls, it must wait for that one.
        chain(translate, tasks[0])
        return tasks

    def _own_settings(self) -> dict[str, Any]:
        """Return what is checked around a user's own operators."""
        names = ("checkpoint", "target_checkpoint", "control", "request_id", "mode")
        # The cancel takes the lock that the hand-over looks for.
        hand_over = self.arguments.get(OF_SUBMIT if self.submit else "submit_target", {})
        kept = {name: self.shared[name] for name in (*names, "source_is_gone")}
        return {**kept, "locks": hand_over.get("locks")}

    def _add_own(
        self,
        factory: OperatorFactory,
        task_id: str,
        *,
        then: Callable[[Context], None],
        defaults: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> BaseOperator:
        """Add a task of the user's own operator, behind the gate of the group."""
        gate = Gate(
            mode=self.mode,
            dry_run=self.dry_run,
            runs_in=MOVING,
            intent=PLATFORM_INTENTS.get(task_id, INTENTS[task_id]),
            then=then,
            left_out=self.left_out,
            held=self.held,
        )
        # The group's rule and hooks hold whatever else the user gives.
        own = {**arguments, "trigger_rule": "none_failed", "pre_execute": gate}
        told = {**(defaults or {}), **self.arguments.get(task_id, {})}
        name = "stop" if task_id == OF_STOP else "submit"
        task = call_factory(name, factory, task_id=task_id, **{**told, **own})
        self.gates[task.task_id] = gate
        return task

    def _add_start_drill(self, translate: BaseOperator) -> list[BaseOperator]:
        if not self._can_run(frozenset({DRILL})):
            return []
        start = self._add(
            StartDrillOperator,
            "start_drill",
            runs_in=frozenset({DRILL}),
            conf=self._conf(translate),
            **self._drill_folders(),
        )
        chain(translate, start)
        return [start]

    def _stand_ins(self) -> dict[str, Any]:
        """Return what stands in for a lost checkpoint: the check looks at it before the stop."""
        told = self.arguments.get("read_positions", {})
        return {name: told.get(name) for name in ("saved_positions", "positions")}

    def _drill_folders(self) -> dict[str, Any]:
        """Return what a drill must keep apart; its check and its start look at the same."""
        reads = self.arguments.get("read_positions", {})
        folders = {
            "folder": self.target_folder,
            "sinks": [self.source_output],
            "job_folders": {"source folder": self.source_folder},
            "other_folders": {
                "archive": self.shared["archive"],
                "saved positions": reads.get("saved_positions"),
                "reports folder": self.shared["reports"],
            },
            "honours_drill": False,
        }
        told = self.arguments.get("start_drill", {})
        return {name: told.get(name, value) for name, value in folders.items()}

    def _add_verify(self, translate: BaseOperator, started: BaseOperator) -> list[BaseOperator]:
        if self.verify is False and not self._can_run(frozenset({DRILL})):
            return []
        sinks = [
            {"cluster": "source", "path": self.source_output},
            {"cluster": "target", "path": self.target_output},
        ]
        # In a dry run there is no result, and the template is rendered before the gate skips.
        result = f"(ti.xcom_pull(task_ids='{started.task_id}', {SAME_JOB}) or {{}})"
        verify = self._add(
            ReconcileOperator,
            "verify",
            runs_in=COPYING,
            optional_in=frozenset({PLANNED, FAILBACK}),
            wanted=self.verify,
            plan=XComArg(translate),
            # ``started`` waits for a batch of the target's job, and returns its positions.
            committed=f"{{{{ {result}.get('positions') }}}}",
            sinks=sinks,
            report=f"{self.target_folder}/verified",
            # A lost worker leaves its Spark driver behind, which may still write the report.
            retries=0,
        )
        return [verify]

    def _add_tear_down(self) -> list[BaseOperator]:
        if not self._can_run(frozenset({DRILL})):
            return []
        tear_down = self._add(
            TearDownDrillOperator,
            "tear_down",
            runs_in=frozenset({DRILL}),
            trigger_rule="all_done",
            folder=self.target_folder,
            without=JOB_FIELDS,  # It stops the drill's job, and not the one that runs on.
        )
        return [tear_down]

    def _add_roll_back(
        self, stop: BaseOperator, steps: Collection[BaseOperator]
    ) -> list[BaseOperator]:
        if not self._can_run(MOVING):
            return []
        roll_back = self._add(
            RollbackFailoverOperator,
            "roll_back",
            runs_in=MOVING,
            # In a mapped group, Airflow before 3.3 takes the failure of any job for that of each.
            trigger_rule="all_done" if self.is_mapped else "one_failed",
            after_failure_of=[task.task_id for task in steps] if self.is_mapped else (),
            stopped=XComArg(stop),
            stop_task_id=stop.task_id,
            restart_conf={
                "kafka_conn_id": self.source_kafka_conn_id,
                # Read from the checkpoint: an XCom may be of another job that had this map index.
                "topic": None,
                "folder": self.source_folder,
                "starting_offsets": None,
            },
            restart_output=self.source_output,
            restart_run_id=f"{self.shared['trigger_run_id']}__restart",
        )
        return [roll_back]

    def _add_report(self, tasks: list[BaseOperator]) -> None:
        by_step = {task.task_id.rpartition(".")[2]: task for task in tasks}
        results: dict[str, Any] = {
            name: XComArg(by_step[step]) for name, step in REPORTED.items() if step in by_step
        }
        report = self._add(
            ReportFailoverOperator,
            "report",
            trigger_rule="all_done",
            source_folder=self.source_folder,
            target_folder=self.target_folder,
            intents=[_pull(task, INTENT) for step, task in by_step.items() if step in INTENTS],
            **results,
        )
        chain(tasks, report)

    def _conf(self, translate: BaseOperator) -> dict[str, str]:
        return {
            "kafka_conn_id": self.target_kafka_conn_id,
            "topic": _pull(translate, "target_topics"),
            "folder": self.target_folder,
            "starting_offsets": _pull(translate, "starting_offsets"),
        }

    def _add(
        self,
        operator: type[OperatorT],
        task_id: str,
        *,
        runs_in: frozenset[FailoverMode] = frozenset(FailoverMode),
        optional_in: frozenset[FailoverMode] = frozenset(),
        wanted: bool | str = True,
        without: Collection[str] = (),
        is_first: bool = False,
        intent: str | None = None,
        after_failure_of: Collection[str] = (),
        **settings: Any,
    ) -> OperatorT:
        """Add a task; ``without`` names shared arguments that it does not take.

        The first task parses the settings of all.
        """
        fields = set(operator.template_fields) - set(without)
        shared = {name: value for name, value in self.shared.items() if name in fields}
        if issubclass(operator, DeferrablePolling):
            shared["deferrable"] = self.deferrable
        gate = Gate(
            mode=self.mode,
            dry_run=self.dry_run,
            runs_in=runs_in,
            optional_in=optional_in,
            wanted=wanted,
            wanted_name=task_id,
            intent=intent or INTENTS.get(task_id),
            left_out=self.left_out,
            held="" if task_id in AFTER_FAILURE else self.held,
            after_failure_of=after_failure_of,
        )
        hook = FirstGate(gate=gate, gates=self.gates, modes=self._modes()) if is_first else gate
        defaults: dict[str, Any] = {"trigger_rule": "none_failed", "pre_execute": hook}
        if task_id in READING:
            defaults["execution_timeout"] = READ_TIMEOUT
        arguments = {**defaults, **shared, **settings, **self.arguments.get(task_id, {})}
        task = operator(task_id=task_id, **arguments)
        self.gates[task.task_id] = gate
        return task

    def _can_run(self, runs_in: frozenset[FailoverMode]) -> bool:
        """Tell whether a task can ever run; a mode that is a template may be any of ``modes``."""
        return not runs_in.isdisjoint(self._modes())

    def _modes(self) -> frozenset[FailoverMode]:
        """Return the modes that the group can carry out."""
        if self.mode in set(FailoverMode):
            return frozenset({FailoverMode(self.mode)})
        # A drill starts the job's DAG, and ends it through its control location.
        has_own = self.stop is not None or self.submit is not None
        return frozenset(self.modes) & (MOVING if has_own else frozenset(FailoverMode))


def _pull(task: BaseOperator, key: str) -> str:
    # An XComArg that is absent would fail before the operator can say what to do.
    return f"{{{{ ti.xcom_pull(task_ids='{task.task_id}', key='{key}', {SAME_JOB}) }}}}"
