"""Builds the tasks of a failover in their order, for all modes; ``failover_tasks`` calls it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, XComArg, chain

from airflow_mm2_offsets.operators.approve import ApproveFailoverOperator
from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from airflow_mm2_offsets.operators.checkpoint import ReadSparkCheckpointOperator
from airflow_mm2_offsets.operators.drill_teardown import TearDownDrillOperator
from airflow_mm2_offsets.operators.forecast import ForecastFailoverOperator
from airflow_mm2_offsets.operators.reconcile import ReconcileOperator
from airflow_mm2_offsets.operators.report import ReportFailoverOperator
from airflow_mm2_offsets.operators.rollback import RollbackFailoverOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.sensors.replication import Mm2ReplicatedSensor
from airflow_mm2_offsets.task_groups.gated_tasks import GatedTasks, pull
from airflow_mm2_offsets.task_groups.gates import INTENT, SAME_JOB
from airflow_mm2_offsets.task_groups.job_steps import JobSteps, MovedJob
from airflow_mm2_offsets.task_groups.steps import (
    COPYING,
    DRILL,
    FAILBACK,
    INTENTS,
    JOB_FIELDS,
    MOVING,
    PLANNED,
    REPORTED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverTasks:
    """Adds the tasks of one group."""

    tasks: GatedTasks
    job: MovedJob
    job_steps: JobSteps
    verify: bool | str
    is_mapped: bool = False
    """Whether the group is expanded over several jobs."""

    def add(self) -> None:
        """Add the tasks of the modes that the group can have."""
        check = self.tasks.add(
            CheckFailoverOperator,
            "check",
            is_first=True,
            target_control=f"{self.job.target_folder}/control",
            from_folder=self.job.source_folder,
            sink=self.job.target_output,
            **self._stand_ins(),
            drill=self.job_steps.drill_folders()
            if self.tasks.can_run(frozenset({DRILL}))
            else None,
        )
        stops = self.job_steps.add_stop()
        stop = stops[-1]
        read = self.tasks.add(ReadSparkCheckpointOperator, "read_positions")
        positions: dict[str, Any] = {
            name: XComArg(read, name) for name in ("positions", "clusters")
        }
        wait = self.tasks.add(Mm2ReplicatedSensor, "wait_replicated", runs_in=COPYING, **positions)
        translate = self.tasks.add(
            TranslateOffsetsOperator,
            "translate",
            pending=XComArg(read, "pending"),
            replicated=XComArg(wait),
            home_control=f"{self.job.target_folder}/control",
            **positions,
        )
        forecast = self.tasks.add(
            ForecastFailoverOperator,
            "forecast",
            plan=XComArg(translate),
            positions_as_of=XComArg(read, "as_of"),
        )
        approve = self.tasks.add(
            ApproveFailoverOperator,
            "approve",
            runs_in=MOVING,
            plan=XComArg(translate),
            forecast=XComArg(forecast),
            job=self.job.source_folder,
        )
        submits = self.job_steps.add_submit(stop, read, translate, approve)
        start = [*submits[-1:], *self.job_steps.add_start_drill(translate)]
        started = self.tasks.add(
            SparkStartedSensor,
            "wait_started",
            checkpoint=self.tasks.shared["target_checkpoint"],
            # Unlike an XComArg of a key, it may be absent where the whole failover is left out.
            starting_offsets=pull(translate, "starting_offsets"),
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

    def _stand_ins(self) -> dict[str, Any]:
        """Return what stands in for a lost checkpoint: the check looks at it before the stop."""
        told = self.tasks.arguments.get("read_positions", {})
        return {name: told.get(name) for name in ("saved_positions", "positions")}

    def _add_verify(self, translate: BaseOperator, started: BaseOperator) -> list[BaseOperator]:
        if self.verify is False and not self.tasks.can_run(frozenset({DRILL})):
            return []
        sinks = [
            {"cluster": "source", "path": self.job.source_output},
            {"cluster": "target", "path": self.job.target_output},
        ]
        # In a dry run there is no result, and the template is rendered before the gate skips.
        result = f"(ti.xcom_pull(task_ids='{started.task_id}', {SAME_JOB}) or {{}})"
        verify = self.tasks.add(
            ReconcileOperator,
            "verify",
            runs_in=COPYING,
            optional_in=frozenset({PLANNED, FAILBACK}),
            wanted=self.verify,
            plan=XComArg(translate),
            # ``started`` waits for a batch of the target's job, and returns its positions.
            committed=f"{{{{ {result}.get('positions') }}}}",
            sinks=sinks,
            report=f"{self.job.target_folder}/verified",
            # A lost worker leaves its Spark driver behind, which may still write the report.
            retries=0,
        )
        return [verify]

    def _add_tear_down(self) -> list[BaseOperator]:
        if not self.tasks.can_run(frozenset({DRILL})):
            return []
        tear_down = self.tasks.add(
            TearDownDrillOperator,
            "tear_down",
            runs_in=frozenset({DRILL}),
            trigger_rule="all_done",
            folder=self.job.target_folder,
            without=JOB_FIELDS,  # It stops the drill's job, and not the one that runs on.
        )
        return [tear_down]

    def _add_roll_back(
        self, stop: BaseOperator, steps: Collection[BaseOperator]
    ) -> list[BaseOperator]:
        if not self.tasks.can_run(MOVING):
            return []
        roll_back = self.tasks.add(
            RollbackFailoverOperator,
            "roll_back",
            runs_in=MOVING,
            # In a mapped group, Airflow before 3.3 takes the failure of any job for that of each.
            trigger_rule="all_done" if self.is_mapped else "one_failed",
            after_failure_of=[task.task_id for task in steps] if self.is_mapped else (),
            stopped=XComArg(stop),
            stop_task_id=stop.task_id,
            restart_conf={
                "kafka_conn_id": self.job.source_kafka_conn_id,
                # Read from the checkpoint: an XCom may be of another job that had this map index.
                "topic": None,
                "folder": self.job.source_folder,
                "starting_offsets": None,
            },
            restart_output=self.job.source_output,
            restart_run_id=f"{self.tasks.shared['trigger_run_id']}__restart",
        )
        return [roll_back]

    def _add_report(self, tasks: list[BaseOperator]) -> None:
        by_step = {task.task_id.rpartition(".")[2]: task for task in tasks}
        results: dict[str, Any] = {
            name: XComArg(by_step[step]) for name, step in REPORTED.items() if step in by_step
        }
        report = self.tasks.add(
            ReportFailoverOperator,
            "report",
            trigger_rule="all_done",
            source_folder=self.job.source_folder,
            target_folder=self.job.target_folder,
            intents=[pull(task, INTENT) for step, task in by_step.items() if step in INTENTS],
            **results,
        )
        chain(tasks, report)
