"""Moves the running job through Airflow, as a user would, and gathers the proof."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from upath import UPath

from airflow_mm2_offsets.core import FailoverPlan, Strategy, TopicPartition
from airflow_mm2_offsets.moves.move import job_at
from airflow_mm2_offsets.moves.stop_job import stop_job
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover, still_copying
from airflow_mm2_offsets.planning.stored_plan import whole_plan
from airflow_mm2_offsets.reconcile import Reconciliation
from demo.environment import TOPIC, Demo
from demo.producer import PARTITIONS
from demo.report import Report
from demo.sink import Sink
from demo.steps import Steps
from demo.switch import Switch, read_batches
from demo.timeline import Timeline, read_intervals

STREAM, FAILOVER, ARCHIVE = "orders_stream", "mm2_failover", "mm2_archive_syncs"
VERIFY_DAG, VERIFY = "mm2_verify", "verify"
SIDES = ("source", "target")
DONE = {"success", "skipped"}
BEFORE = 900
"""Numbers that the job must have delivered from the source before it is moved."""
AFTER = 900
"""Numbers that the producer writes to the target before it ends."""


class FailedRunError(RuntimeError):
    """A DAG run failed; the message holds the end of the failed task's log."""


STREAMING, MOVING = "stream from the source", "failover"
CATCHING_UP, PROVING = "catch up on the target", "gather the proof"
STEPS = (STREAMING, MOVING, CATCHING_UP, PROVING)


class Failover:
    """One failover of the demo; each step is timed.

    Args:
        demo: The programs, which run.
        steps: Told of each step; None: they are counted from here.
    """

    def __init__(self, demo: Demo, *, steps: Steps | None = None) -> None:
        """Prepare a failover without starting it."""
        self.demo = demo
        self.steps = steps or Steps(STEPS, demo.progress)
        self.sink = Sink(map(demo.output, SIDES))
        self.run_id = self.verify_id = ""

    def run(self) -> Report:
        """Carry out the failover and return the proof.

        Raises:
            FailedRunError: A DAG run failed.
            WaitTimeoutError: A step did not end in time.
        """
        with self.steps.step(STREAMING):
            self.start_stream()
        with self.steps.step(MOVING):
            self.trigger()
            self.wait_for_task("translate")
            self.move_producer()
            self.wait_for_end()
        with self.steps.step(CATCHING_UP):
            self.catch_up()
        with self.steps.step(PROVING):
            self.verify()
            return self.report()

    def verify(self) -> None:
        """Let Spark compare what was moved."""
        self.verify_id = self.demo.airflow.api.trigger(VERIFY_DAG, {"job": TOPIC})
        self.demo.wait("the comparison", lambda: self.has_ended(VERIFY_DAG, self.verify_id))

    def report(self) -> Report:
        """Return the proof of a failover that has ended."""
        tasks = self.demo.airflow.api.tasks(FAILOVER, self.run_id).values()
        seconds = {f"task {task.task_id}": task.seconds or 0.0 for task in tasks}
        plan = self.plan()
        return Report(
            plan=plan,
            straight_line=self.straight_line(plan),
            timeline=self.timeline(),
            produced=self.demo.producer.produced,
            delivered=self.sink.numbers,
            seconds={**self.steps.seconds, **seconds},
            verified=self.verified(),
        )

    def start_stream(self, numbers: int = BEFORE) -> str:
        """Start the job on the source and wait for its first numbers; return the run id."""
        airflow = self.demo.airflow
        folder = self.demo.location("source")
        run_id = airflow.api.trigger(STREAM, {"kafka_conn_id": "kafka_source", "folder": folder})
        self.wait_delivered(numbers, lambda: self.has_ended(STREAM, run_id))
        return run_id

    def wait_delivered(self, numbers: int = BEFORE, has_ended: Callable[[], bool] = bool) -> None:
        """Wait until the job, which must not end before, has delivered numbers from the source."""
        self.demo.wait(
            "the job to deliver from the source",
            lambda: not has_ended() and len(self.sink.refresh()) >= numbers,
        )

    def trigger(self, **params: object) -> None:
        """Trigger the failover DAG; other params keep their defaults."""
        self.run_id = self.demo.airflow.api.trigger(FAILOVER, {"job": TOPIC, **params})

    def wait_for_task(self, task_id: str) -> None:
        """Wait until a task of the failover has succeeded or was skipped."""
        self.demo.wait(
            f"task {task_id}",
            lambda: (
                self.has_ended(FAILOVER, self.run_id)
                or self.demo.airflow.api.tasks(FAILOVER, self.run_id)[task_id].state in DONE
            ),
            now=self._at_work,
        )

    def wait_for_end(self) -> None:
        """Wait until the failover has ended."""
        self.demo.wait(
            "the failover's end",
            lambda: self.has_ended(FAILOVER, self.run_id),
            now=self._at_work,
        )

    def move_producer(self) -> None:
        """Stop the producer, let MirrorMaker 2 copy the rest, and write to the target."""
        demo = self.demo
        demo.producer.stop()
        ends = demo.pair.source.watermarks(
            TopicPartition(TOPIC, number) for number in range(PARTITIONS)
        )
        positions = {TOPIC: {partition: end.high for (_, partition), end in ends.items()}}
        self.demo.wait(
            "MirrorMaker 2 to copy the last records",
            lambda: not still_copying(demo.pair, positions),
        )
        demo.producer.start(demo.stack.target)

    def catch_up(self) -> None:
        """Write more on the target, end the producer, and wait until all is delivered."""
        producer = self.demo.producer
        goal = producer.produced + AFTER
        self.demo.wait("more records on the target", lambda: producer.produced >= goal)
        producer.stop()
        self.demo.wait(
            "every record to be delivered",
            lambda: set(producer.due) <= self.sink.refresh().keys(),
        )
        self._end_target_job()

    def plan(self) -> FailoverPlan:
        """Return the plan, from XCom, or from the file that XCom names."""
        content = self.demo.airflow.api.xcom(FAILOVER, self.run_id, "translate")
        return FailoverPlan.from_json(whole_plan(content))

    def verified(self) -> Reconciliation | None:
        """Return the reconciliation of ``verify``, from XCom; None if nothing was compared."""
        if not self.verify_id:
            return None
        report = self.demo.airflow.api.xcom(VERIFY_DAG, self.verify_id, VERIFY)
        return Reconciliation(report=report, allowed=report["allowed"])

    def timeline(self) -> Timeline:
        """Return whose the seconds were until the first record on the target."""
        airflow = self.demo.airflow
        tasks = airflow.api.tasks(FAILOVER, self.run_id).values()
        logs = airflow.logs(FAILOVER, self.run_id)
        return Timeline.of(
            tasks,
            {task.task_id: read_intervals(logs, task) for task in tasks},
            triggered=airflow.api.triggered_at(FAILOVER, self.run_id),
            first_record=self.sink.first_record(self.demo.job_folder("target") / "output"),
        )

    def switch(self, report: Report) -> Switch:
        """Return what the picture of a failover shows; both outputs are on the local disk."""
        shown = TopicPartition(TOPIC, 0)
        source, target = (
            read_batches(self.demo.job_folder(side) / "output", shown.partition) for side in SIDES
        )
        return Switch(
            partition=str(shown),
            source=source,
            target=target,
            stopped_at=report.plan.source_positions()[TOPIC][shown.partition],
            started_at=report.plan.target_positions()[TOPIC][shown.partition],
            triggered=self.demo.airflow.api.triggered_at(FAILOVER, self.run_id),
            timeline=report.timeline,
            verdict=report.verdict,
        )

    def straight_line(self, plan: FailoverPlan) -> FailoverPlan:
        """Return the plan by the formula of older tools."""
        options = PlanOptions(strategy=Strategy.LINEAR)
        return plan_failover(self.demo.pair, plan.source_positions(), options=options)

    def _at_work(self) -> str:
        """Return the tasks of the failover that run or wait, to end a line with."""
        tasks = self.demo.airflow.api.tasks(FAILOVER, self.run_id).values()
        names = sorted(task.task_id for task in tasks if task.state in {"running", "deferred"})
        return f", at {' and '.join(names)}" if names else ""

    def _end_target_job(self) -> None:
        # What the job delivers after the last number can only be a duplicate: let it end first.
        job = job_at(self.demo.location("target"), UPath)
        (run_id,) = [run for run in self.demo.airflow.api.runs(STREAM) if self.run_id in run]
        with ThreadPoolExecutor(1) as pool:
            stop = pool.submit(stop_job, job, by="demo", open_path=UPath)

            def has_ended() -> bool:
                if stop.done():
                    stop.result()  # raises what has ended it
                return self.has_ended(STREAM, run_id)

            self.demo.wait("the target job to end", has_ended)
        self.sink.refresh()

    def has_ended(self, dag_id: str, run_id: str) -> bool:
        """Tell whether a run has succeeded.

        Raises:
            FailedRunError: It failed.
        """
        airflow = self.demo.airflow
        state = airflow.api.state(dag_id, run_id)
        if state == "failed":
            tasks = airflow.api.tasks(dag_id, run_id).values()
            failed = next((task.task_id for task in tasks if task.state == "failed"), None)
            log = airflow.log(dag_id, run_id, failed) if failed else "no task failed"
            raise FailedRunError(f"run {run_id} of {dag_id} failed in task {failed}:\n{log}")
        return state == "success"
