"""A run of mm2_failover, with a job and clusters that are only played."""

import pytest
from airflow.providers.common.compat.sdk import DAG, BaseOperator
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from upath import UPath

from airflow_mm2_offsets.spark.fence import FenceState, read_fence
from airflow_mm2_offsets.spark.lock import LockPlaces, acquire_lock, new_lock
from tests.unit.dags.dags_folder import STEPS
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker, events, rebuild
from tests.unit.spark import checkpoints

MOVING = tuple(step for step in STEPS if step != "verify")
"""All tasks but the comparison, which is off."""
STOP = "mm2_failover:manual__1"
"""The request id of the run's stop."""
STARTING = '{"orders":{"0":9,"1":0,"2":0,"3":0}}'

tells_of_dags = pytest.mark.skipif(
    not hasattr(RuntimeTaskInstance, "get_dag"), reason="Airflow tells a task of DAGs from 3.2 on"
)


class Failover:
    """A run of the DAG, of which every task can be run again."""

    def __init__(
        self, worker: Worker, dag: DAG, source: Job, target: str = "target", prefix: str = ""
    ) -> None:
        self.worker, self.dag, self.source = worker, dag, source
        self.prefix = prefix
        """What the task ids begin with."""
        self.target = source.folder.parent / target
        worker.conf = {"source_folder": str(source.folder), "target_folder": str(self.target)}
        for task_id in ("wait_replicated", "wait_started"):
            vars(self.task(task_id)).update(poke_interval=0.02)
        vars(self.task("stop_source")).update(poll_interval=0.02, quiet_period=0.05)

    def task(self, task_id: str) -> BaseOperator:
        task = self.dag.get_task(f"{self.prefix}{task_id}")
        assert isinstance(task, BaseOperator)
        return task

    def run_until(self, task_id: str) -> None:
        """Run all tasks before one."""
        for each in STEPS[: STEPS.index(task_id)]:
            self.run(each)

    def run(self, task_id: str) -> None:
        """Run a task to its end, with its wait."""
        task = self.task(task_id)
        ended = self.worker.run(task)
        if ended.type == "DeferTask":
            self.play(task_id)
            (event,) = events(rebuild(ended))
            ended = self.worker.run(task, after=ended, event=event)
        state = getattr(ended, "state", "success")
        may_skip = task_id in {"submit_target", "verify"}
        assert state in ({"success", "skipped"} if may_skip else {"success"})

    def remove_control(self) -> None:
        """Let the hand-over be that of a job without a control location, which is locked."""
        vars(self.task("submit_target"))["control"] = None
        source, target = UPath(self.source.checkpoint), UPath(self.target) / "checkpoint"
        acquire_lock(LockPlaces(source=source, target=target), new_lock(STOP, "planned"))

    def fence_state(self) -> FenceState | None:
        fence = read_fence(str(self.source.control))
        return None if fence is None else fence.state

    def play(self, task_id: str) -> None:
        """Do what the jobs do while the task waits."""
        if task_id == "stop_source":
            self.source.acknowledge()
        if task_id == "wait_started" and not self.target.joinpath("checkpoint").exists():
            checkpoints.write(
                self.target / "checkpoint",
                {
                    "sources/0/0": checkpoints.start(STARTING),
                    "offsets/0": checkpoints.batch('{"orders":{"0":15,"1":0,"2":0,"3":0}}'),
                    "commits/0": checkpoints.commit(),
                },
            )
