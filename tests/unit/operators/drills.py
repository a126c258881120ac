"""A drill beside a job that runs, task by task, as Airflow runs it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import DAG, BaseOperator
from upath import UPath

from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.journal import Entry, Journal
from airflow_mm2_offsets.moves.move import Mover
from airflow_mm2_offsets.task_groups.drill import drill_tasks
from tests.unit.operators.clusters import RECORDS, Clusters
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker, events, rebuild
from tests.unit.spark import checkpoints

RUN = ("orders_stream", "mm2_drill__manual__1__orders__drill")
"""The DAG run of the drill's job."""
OFFSETS = '{"orders":{"0":9,"1":6,"2":3,"3":2}}'
"""Where the copy begins: what the job's positions are on the target."""
UNTIL_START = ("check", "translate", "start_drill")
WAITS = {"poke_interval": 0.02, "timeout": 5}
TEAR_DOWN = {"quiet_period": 0.05, "poll_interval": 0.02, "timeout": 5}


@dataclass(kw_only=True)
class Drill:
    """A run of ``mm2_drill``, and the job that it leaves alone."""

    worker: Worker
    root: Path
    source: Job
    more: dict[str, Any] = field(default_factory=dict)
    """Further fields of the job."""
    arguments: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Further arguments of the tasks."""

    @classmethod
    def beside(cls, worker: Worker, clusters: Clusters, root: Path) -> "Drill":
        """Return a drill of a job that stands at 4, 6, 3 and 2, whose records are all copied."""
        clusters.copy_the_rest()
        for partition in (2, 3):
            clusters.source.produce("orders", partition, RECORDS)
        for partition in (1, 2, 3):
            clusters.sync(9, 9, partition)
        source = Job(root / "source", 4, 6, 3, 2)
        source.beat(1, bootstrap_servers=["source:9092"])
        return cls(worker=worker, root=root, source=source)

    @property
    def folder(self) -> Path:
        """The drill's folder."""
        return self.root / "drills" / "orders"

    @property
    def job(self) -> SparkJob:
        """The job of the drill."""
        homes = tuple(
            Home(cluster=side, folder=str(self.root / side)) for side in ("source", "target")
        )
        settings = {
            "dag": "orders_stream",
            "records": str(self.root / "records"),
            "heartbeat_timeout": 2.0,
            **self.more,
        }
        return SparkJob(**{"name": "orders", "homes": homes, **settings})

    @property
    def dag(self) -> DAG:
        """The drill's tasks."""
        arguments = {
            "wait_started": WAITS,
            "tear_down": {**TEAR_DOWN, **self.arguments.get("tear_down", {})},
            **{name: each for name, each in self.arguments.items() if name != "tear_down"},
        }
        with DAG("mm2_drill", schedule=None) as dag:
            drill_tasks(
                job=self.job,
                folder=str(self.folder),
                arguments=arguments,
                prefix_group_id=False,
            )
        return dag

    def task(self, name: str) -> BaseOperator:
        """Return a task, made anew as for each try of it."""
        task = self.dag.get_task(name)
        assert isinstance(task, BaseOperator)
        return task

    def run(self, *names: str) -> Any:  # noqa: ANN401 - plain JSON
        """Run tasks to their end; return what the last one returned."""
        for name in names:
            task = self.task(name)
            self.worker.xcoms.pop((name, "return_value"), None)
            ended = self.worker.run(task)
            while ended.type == "DeferTask":
                self.wait(ended)
                (event,) = events(rebuild(ended))
                ended = self.worker.run(self.task(name), after=ended, event=event)
        return self.worker.xcoms.get((names[-1], "return_value"))

    def wait(self, deferred: Any) -> None:  # noqa: ANN401 - a message of Airflow
        """Do what the copy and Airflow do while a task waits: it stops, and its run ends."""
        if deferred.next_method in {"look_again", "remove_after_run"}:
            for run in self.worker.triggered:
                self.worker.run_states.setdefault(run, "success" if self.has_begun else "failed")
        elif "DrillStopped" in deferred.classpath and self.copy.requested_stop() and self.answers:
            self.copy.acknowledge()

    answers: bool = True
    """Whether the copy answers a stop."""

    @property
    def has_begun(self) -> bool:
        """Whether the copy has a driver."""
        return (self.folder / "control" / "driver.json").exists()

    @property
    def copy(self) -> Job:
        """The drill's job, where it has begun."""
        return Job.at(self.folder)

    def begin(self) -> Job:
        """Let the copy begin where its fence says, and read three records."""
        fence = self.copy.fence()
        assert fence is not None
        assert (fence.state.value, fence.starting_offsets) == ("open", OFFSETS)
        starts, ends = checkpoints.orders(9, 6, 3, 2), checkpoints.orders(12, 6, 3, 2)
        files = {
            "sources/0/0": checkpoints.start(starts),
            "offsets/0": checkpoints.batch(ends),
            "commits/0": checkpoints.commit(),
        }
        checkpoints.write(self.copy.checkpoint, files)
        self.folder.joinpath("output").mkdir(exist_ok=True)
        self.folder.joinpath("output", "part-0").write_text("12 records")
        self.copy.beat(1)
        return self.copy

    def entries(self) -> list[Entry]:
        """Return the journal of the job that runs."""
        return Journal(UPath(self.job.journal)).entries()

    def move(self, run: str = "mm2_failover:manual__7") -> None:
        """Let another run begin to move the job."""
        Mover(self.job, run, PLANNED, UPath).ask()

    def files(self) -> dict[str, bytes]:
        """Return all files but those in the drill's folder, and the reports."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
            and not path.is_relative_to(self.folder)
            and ".reports" not in str(path)
        }
