"""Moves the running job, as a user would through Airflow, and gathers the proof."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from airflow_mm2_offsets.core import FailoverPlan, Strategy, TopicPartition
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover, still_copying
from airflow_mm2_offsets.reconcile import Reconciliation
from airflow_mm2_offsets.spark.stopping import request_stop
from demo.producer import PARTITIONS
from demo.report import Report
from demo.sink import Sink
from demo.world import TOPIC, World

STREAM, FAILOVER, VERIFY = "orders_stream", "mm2_failover", "verify"
DONE = {"success", "skipped"}
BEFORE = 900
"""Numbers that the job must have delivered from the source before it is moved."""
AFTER = 900
"""Numbers that the producer writes to the target before it ends."""


class FailedRunError(RuntimeError):
    """A DAG run failed; the message holds the end of the failed task's log."""


class Failover:
    """One failover in a world, step by step, each timed."""

    def __init__(self, world: World) -> None:
        """Start nothing yet."""
        self.world = world
        self.seconds: dict[str, float] = {}
        self.sink = Sink(world.job_folder(side) / "output" for side in ("source", "target"))
        self.run_id = ""

    def run(self) -> Report:
        """Carry it out and return the proof.

        Raises:
            FailedRunError: A DAG run failed.
            WaitTimeoutError: A step did not come to its end.
        """
        with self._step("stream from the source"):
            self.start_stream()
        with self._step("failover"):
            self.trigger(verify=True)
            self.wait_for_task("translate")
            self.move_producer()
            self.wait_for_end()
        with self._step("catch up on the target"):
            self.catch_up()
        return self.report()

    def report(self) -> Report:
        """Return the proof of a failover that has come to its end."""
        tasks = self.world.airflow.api.tasks(FAILOVER, self.run_id).values()
        self.seconds |= {f"task {task.task_id}": task.seconds or 0.0 for task in tasks}
        plan = self.plan()
        return Report(
            plan=plan,
            straight_line=self.straight_line(plan),
            produced=self.world.producer.produced,
            delivered=self.sink.numbers,
            seconds=self.seconds,
            verified=self.verified(),
        )

    def start_stream(self, numbers: int = BEFORE) -> str:
        """Start the job on the source, wait until it has delivered so many, and return its run."""
        airflow = self.world.airflow
        folder = str(self.world.job_folder("source"))
        run_id = airflow.api.trigger(STREAM, {"kafka_conn_id": "kafka_source", "folder": folder})
        self.world.wait(
            "the job to deliver from the source",
            lambda: not self._ended(STREAM, run_id) and len(self.sink.refresh()) >= numbers,
        )
        return run_id

    def trigger(self, **params: object) -> None:
        """Trigger the failover DAG; params that are not given keep their defaults."""
        folders = {
            f"{side}_folder": str(self.world.job_folder(side)) for side in ("source", "target")
        }
        self.run_id = self.world.airflow.api.trigger(FAILOVER, {**folders, **params})

    def wait_for_task(self, task_id: str) -> None:
        """Wait until a task of the failover has done its work."""
        self.world.wait(
            f"task {task_id}",
            lambda: (
                self._ended(FAILOVER, self.run_id)
                or self.world.airflow.api.tasks(FAILOVER, self.run_id)[task_id].state in DONE
            ),
        )

    def wait_for_end(self) -> None:
        """Wait until the failover has come to its end."""
        self.world.wait("the failover's end", lambda: self._ended(FAILOVER, self.run_id))

    def move_producer(self) -> None:
        """Stop the producer, let MirrorMaker 2 copy the rest, and write to the target."""
        world = self.world
        world.producer.stop()
        ends = world.pair.source.watermarks(
            TopicPartition(TOPIC, number) for number in range(PARTITIONS)
        )
        positions = {TOPIC: {partition: held.high for (_, partition), held in ends.items()}}
        self.world.wait(
            "MirrorMaker 2 to copy the last records",
            lambda: not still_copying(world.pair, positions),
        )
        world.producer.start(world.stack.target)

    def catch_up(self) -> None:
        """Write more on the target, end the producer, and wait until all is delivered."""
        producer = self.world.producer
        goal = producer.produced + AFTER
        self.world.wait("more records on the target", lambda: producer.produced >= goal)
        producer.stop()
        self.world.wait(
            "every record to be delivered",
            lambda: len(self.sink.refresh()) >= producer.produced,
            seconds=120,
        )
        self._end_target_job()

    def plan(self) -> FailoverPlan:
        """Return the plan, from XCom."""
        return FailoverPlan.from_json(
            self.world.airflow.api.xcom(FAILOVER, self.run_id, "translate")
        )

    def verified(self) -> Reconciliation | None:
        """Return what the task verify found, from XCom; None where it was not asked to look."""
        airflow = self.world.airflow
        if airflow.api.tasks(FAILOVER, self.run_id)[VERIFY].state == "skipped":
            return None
        found = airflow.api.xcom(FAILOVER, self.run_id, VERIFY)
        return Reconciliation(report=found, allowed=found["allowed"])

    def straight_line(self, plan: FailoverPlan) -> FailoverPlan:
        """Return what the formula of older tools would have answered."""
        options = PlanOptions(strategy=Strategy.LINEAR)
        return plan_failover(self.world.pair, plan.source_positions(), options=options)

    def _end_target_job(self) -> None:
        # What the job delivers after the last number can only be a duplicate: let it end first.
        request_stop(str(self.world.job_folder("target") / "control"), "demo-end")
        run_id = f"{FAILOVER}__{self.run_id}"
        self.world.wait("the target job to end", lambda: self._ended(STREAM, run_id))
        self.sink.refresh()

    def _ended(self, dag_id: str, run_id: str) -> bool:
        airflow = self.world.airflow
        state = airflow.api.state(dag_id, run_id)
        if state == "failed":
            tasks = airflow.api.tasks(dag_id, run_id).values()
            failed = next((task.task_id for task in tasks if task.state == "failed"), None)
            log = airflow.log(dag_id, run_id, failed) if failed else "no task failed"
            raise FailedRunError(f"run {run_id} of {dag_id} failed in task {failed}:\n{log}")
        return state == "success"

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        self.world.progress(f"== {name}")
        began = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began
