"""Builds the steps of a failover that stop the job and start it; ``failover`` orders them.

A job is stopped through its control location and started by its DAG, or both by operators of the
user's own, for the job's platform.
"""

from dataclasses import dataclass
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, XComArg, chain

from airflow_mm2_offsets.operators.drill import StartDrillOperator
from airflow_mm2_offsets.operators.handover import HandOverOperator, TriggerTargetDagOperator
from airflow_mm2_offsets.operators.platform import (
    CANCELLED,
    CANCELLED_AT,
    BeforeCancel,
    BeforeSubmit,
    note_cancel,
)
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.sensors.stopped import SparkStoppedSensor
from airflow_mm2_offsets.task_groups.gated_tasks import GatedTasks, pull
from airflow_mm2_offsets.task_groups.platforms import OperatorFactory
from airflow_mm2_offsets.task_groups.steps import (
    DRILL,
    MOVING,
    OF_STOP,
    OF_SUBMIT,
    PLATFORM_INTENTS,
    QUIET_PERIOD,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedJob:
    """Where the job is, and where it is to go. Texts may be templates."""

    source_folder: str
    target_folder: str
    source_output: str
    target_output: str
    source_kafka_conn_id: str
    target_kafka_conn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSteps:
    """Adds the tasks that stop the job, hand it over, and start it or its drill."""

    tasks: GatedTasks
    job: MovedJob
    stop: OperatorFactory | None = None
    """Makes the operator that cancels the job on its platform; None: the job is asked to stop."""
    submit: OperatorFactory | None = None
    """Makes the operator that submits the job; None: its DAG is triggered."""
    submit_is_idempotent: bool = False

    def add_stop(self) -> list[BaseOperator]:
        """Add the task that stops the job, after the platform's cancel where there is one."""
        if self.stop is None:
            return [self.tasks.add(StopSparkStreamingOperator, "stop_source", runs_in=MOVING)]
        cancel = self.tasks.add_own(
            self.stop,
            OF_STOP,
            then=BeforeCancel(settings=self._own_settings()),
            post_execute=note_cancel,
        )
        silence = self.tasks.add(
            SparkStoppedSensor,
            "stop_source",
            runs_in=MOVING,
            quiet_period=QUIET_PERIOD,
            cancelled_by=pull(cancel, CANCELLED),
            cancelled_at=pull(cancel, CANCELLED_AT),
            intent=PLATFORM_INTENTS["stop_source"],
        )
        return [cancel, silence]

    def add_submit(
        self,
        stop: BaseOperator,
        read: BaseOperator,
        translate: BaseOperator,
        approve: BaseOperator,
    ) -> list[BaseOperator]:
        """Add the tasks that hand the job over and start it."""
        if not self.tasks.can_run(MOVING):
            return []
        handed: dict[str, Any] = {
            "runs_in": MOVING,
            "read": XComArg(read),
            "stopped": XComArg(stop),
            "approval": XComArg(approve),
            "from_folder": self.job.source_folder,
            "target_control": f"{self.job.target_folder}/control",
            # The check has looked at the same.
            "subscribe_pattern": self.tasks.arguments.get("check", {}).get("subscribe_pattern"),
        }
        if self.submit is None:
            tasks: list[BaseOperator] = [
                self.tasks.add(
                    TriggerTargetDagOperator,
                    "submit_target",
                    conf=self._conf(translate),
                    job_output=self.job.target_output,
                    # A cleared task finds the run that it triggered. It is skipped, and the next
                    # goes on.
                    skip_when_already_exists=True,
                    **handed,
                )
            ]
        else:
            hand_over = self.tasks.add(HandOverOperator, OF_SUBMIT, **handed)
            tasks = [
                hand_over,
                self.tasks.add_own(
                    self.submit,
                    "submit_target",
                    then=BeforeSubmit(
                        settings=self._own_settings(),
                        stop_task_id=stop.task_id,
                        hand_over_task_id=hand_over.task_id,
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
        hand_over = self.tasks.arguments.get(OF_SUBMIT if self.submit else "submit_target", {})
        kept = {name: self.tasks.shared[name] for name in (*names, "source_is_gone")}
        return {**kept, "locks": hand_over.get("locks")}

    def add_start_drill(self, translate: BaseOperator) -> list[BaseOperator]:
        """Add the task that starts a drill, where the group can be one."""
        if not self.tasks.can_run(frozenset({DRILL})):
            return []
        start = self.tasks.add(
            StartDrillOperator,
            "start_drill",
            runs_in=frozenset({DRILL}),
            conf=self._conf(translate),
            **self.drill_folders(),
        )
        chain(translate, start)
        return [start]

    def drill_folders(self) -> dict[str, Any]:
        """Return what a drill must keep apart; its check and its start look at the same."""
        reads = self.tasks.arguments.get("read_positions", {})
        folders = {
            "folder": self.job.target_folder,
            "sinks": [self.job.source_output],
            "job_folders": {"source folder": self.job.source_folder},
            "other_folders": {
                "archive": self.tasks.shared["archive"],
                "saved positions": reads.get("saved_positions"),
                "reports folder": self.tasks.shared["reports"],
            },
            "honours_drill": False,
        }
        told = self.tasks.arguments.get("start_drill", {})
        return {name: told.get(name, value) for name, value in folders.items()}

    def _conf(self, translate: BaseOperator) -> dict[str, str]:
        return {
            "kafka_conn_id": self.job.target_kafka_conn_id,
            "topic": pull(translate, "target_topics"),
            "folder": self.job.target_folder,
            "starting_offsets": pull(translate, "starting_offsets"),
        }
