"""A move by mm2_failover on real clusters: the DAG's own tasks, run in the test's process.

The job alone is played: its folder holds the files that a Spark job under StopControl leaves.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, BaseOperator
from upath import UPath

from airflow_mm2_offsets.errors import NotReplicatedError
from airflow_mm2_offsets.hooks.jobs import jobs_of_file
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.moves.fences import Fence, read_fence
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.jobs_file import find_job
from airflow_mm2_offsets.moves.journal import Entry, FenceState, Journal, State
from tests.integration.mirrors import Mirror
from tests.unit.dags.dags_folder import FOLDER, parse
from tests.unit.operators.clusters import define
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker, events, rebuild
from tests.unit.spark import checkpoints

RUNBOOK = FOLDER.parent / "docs" / "runbook.md"
JOB = "orders"
"""The job's name in the file of jobs."""
WAITS = {"DeferTask", "AwaitInputTask"}
"""How a task says that it waits; newer releases of Airflow tell a wait for a person apart."""
NEVER = "127.0.0.1:1"
"""An address where nothing listens."""
QUICK: Mapping[str, Mapping[str, float]] = {
    "stop_source": {"quiet_period": 0.05, "poll_interval": 0.02, "poke_interval": 0.02},
    "wait_replicated": {"poke_interval": 0.02},
    "wait_started": {"poke_interval": 0.02},
}
"""How often the tasks look; a job that is played answers at once."""


class TopicJob(Job):
    """A job that has read a topic up to some positions."""

    def __init__(self, folder: Path, topic: str, positions: Mapping[int, int]) -> None:
        super().__init__(folder, 0)
        self.topic = topic
        self.read_to(positions)

    def read_to(self, positions: Mapping[int, int]) -> None:
        """Let the job's last batch end at some positions."""
        start, end = (
            json.dumps({self.topic: {str(number): to(at) for number, at in positions.items()}})
            for to in (lambda _: 0, lambda at: at)
        )
        files = {"sources/0/0": checkpoints.start(start), "offsets/0": checkpoints.batch(end)}
        checkpoints.write(self.checkpoint, files)


class Night:
    """One run of a DAG, for the job of the file of jobs.

    Args:
        worker: Runs the tasks; several runs share it.
        source: The job, at the home where it runs.
        file: The DAG's.
        run_id: Of the run.
    """

    def __init__(
        self,
        worker: Worker,
        source: Job,
        *,
        file: Path = FOLDER / "mm2_failover.py",
        run_id: str = "manual__1",
    ) -> None:
        bag = parse(file)
        assert bag.import_errors == {}
        (self.dag,) = bag.dags.values()
        self.worker, self.source, self.run_id = worker, source, run_id
        self.conf: dict[str, Any] = {"job": JOB}
        self.xcoms: dict[tuple[str, str], Any] = {}
        self.states: dict[str, str] = {}
        """Of the tasks that have ended."""
        self.steps = [task.task_id.rpartition(".")[2] for task in self.dag.tasks]
        """The tasks in their order, without a group's prefix."""
        for name in QUICK.keys() & set(self.steps):
            task = vars(self.task(name))
            task.update({key: to for key, to in QUICK[name].items() if key in task})

    @property
    def job(self) -> SparkJob:
        """The job, as the file of jobs declares it now."""
        jobs, file = jobs_of_file()
        return find_job(jobs, JOB, file=file)

    @property
    def there(self) -> Home:
        """The home that the job goes to."""
        return self.job.homes[1]

    def give(self, **params: object) -> None:
        """Set params of the run."""
        self.conf |= params

    def task(self, name: str) -> BaseOperator:
        """Return a task by its id without a group's prefix."""
        (task,) = (each for each in self.dag.tasks if each.task_id.rpartition(".")[2] == name)
        assert isinstance(task, BaseOperator)
        return task

    def run(self, name: str) -> None:
        """Run a task to its end, with its waits."""
        task = self.task(name)
        self.states[task.task_id] = "failed"
        ended = self._run(task)
        while ended.type == "DeferTask":
            self.play(name)
            (event,) = events(rebuild(ended))
            ended = self._run(task, after=ended, event=event)
        assert ended.type not in WAITS, f"{name} asks a person"
        self.states[task.task_id] = str(getattr(ended, "state", "success"))

    def begin(self, name: str) -> None:
        """Run a task until it waits."""
        assert self._run(self.task(name)).type in WAITS

    def _run(self, task: BaseOperator, **resumed: Any) -> Any:  # noqa: ANN401 - Airflow's messages
        # The worker is told of this run: several share it.
        self.worker.run_id, self.worker.conf = self.run_id, self.conf
        self.worker.xcoms, self.worker.states = self.xcoms, self.states
        return self.worker.run(task, **resumed)

    def play(self, name: str) -> None:
        """Do what the job does while a task waits."""
        if name == "stop_source" and self.source.requested_stop():
            self.source.acknowledge()

    def run_from(self, first: str, until: str) -> None:
        """Run the tasks from one to before another."""
        for each in self.steps[self.steps.index(first) : self.steps.index(until)]:
            self.run(each)

    def waits_in_vain(self) -> str:
        """Run the wait for copies that do not come, and return its message."""
        task = vars(self.task("wait_replicated"))
        patience, task["timeout"] = task["timeout"], 2
        message = self.fails("wait_replicated", NotReplicatedError)
        task["timeout"] = patience
        return message

    def fails(self, name: str, error: type[Exception]) -> str:
        """Run a task that fails, and return its message, which the runbook must quote."""
        with pytest.raises(error) as raised:
            self.run(name)
        message = str(raised.value)
        assert quotes(message), message
        return message

    def report(self) -> dict[str, Any]:
        """Run the last task, which takes a failed move back, and return its report."""
        with suppress(AirflowFailException):
            self.run("report")
        report: dict[str, Any] = self.result("report")
        return report

    def result(self, name: str, key: str = "return_value") -> Any:  # noqa: ANN401 - plain JSON
        return self.xcoms[self.task(name).task_id, key]

    def checks(self, name: str) -> list[dict[str, Any]]:
        """Return the lines of a name in the report of ``check``."""
        return [each for each in self.result("check")["checks"] if each["name"] == name]

    def entries(self) -> list[Entry]:
        """Return the job's journal."""
        return Journal(UPath(self.job.journal)).entries()

    def is_untouched(self) -> bool:
        """Tell whether the job may run where it was, and was started nowhere."""
        entries, fence = self.entries(), self.source.fence()
        may_run = fence is None or fence.state is FenceState.OPEN
        is_home = not entries or entries[-1].state is State.HOME
        return may_run and is_home and self.fence_there() is None and not self.worker.triggered

    def fence_there(self) -> Fence | None:
        """Return what lets a driver run where the job goes; None: nothing does."""
        fence = read_fence(UPath(self.there.control))
        return fence if fence is not None and fence.state is FenceState.OPEN else None

    def starts(self) -> dict[int, int]:
        """Return where the job begins at the target, which its one DAG run was triggered for."""
        (conf,) = self.worker.triggered.values()
        assert conf["folder"] == self.there.folder
        fence = self.fence_there()
        assert fence is not None
        (partitions,) = json.loads(fence.starting_offsets or "").values()
        return {int(number): at for number, at in partitions.items()}


def quotes(message: str) -> list[str]:
    """Return the parts of messages in the runbook's tables that a message has."""
    tables = RUNBOOK.read_text().partition("## Messages")[2]
    rows = re.findall(r"^\| `([^`]+)`", tables, re.MULTILINE)
    return [row for row in rows if row in message]


def connect_airflow(
    patch: pytest.MonkeyPatch,
    made: Mirror,
    *,
    conn_id: str = "mm2_default",
    source: str | None = None,
    **extra: str,
) -> None:
    """Define the connections of a mirror as the variables of an environment do.

    Args:
        patch: Undoes it.
        made: The mirror, with its syncs on the source.
        conn_id: Of the connection of type mm2.
        source: Other bootstrap servers of the source.
        extra: Fields that replace those of the mirror.
    """
    naming = made.pair.naming
    fields = {
        "source_alias": naming.source_alias,
        "target_alias": naming.target_alias,
        "replication_policy": "identity",
        "offset_syncs_topic_location": "source",
        "connect_url": made.stack.connect_url,
    }
    sides = {"kafka_source": source or made.stack.source, "kafka_target": made.stack.target}
    for name, servers in sides.items():
        define(patch, name, conn_type="kafka", extra={"bootstrap.servers": servers})
    define(patch, conn_id, extra={**fields, **extra})


def declare(
    patch: pytest.MonkeyPatch,
    here: Home,
    there: Home,
    *,
    dag: str | None = "orders_stream",
    **more: Any,
) -> None:
    """Write the file of jobs that Airflow reads: one job, which runs at the first of its homes.

    Args:
        patch: Undoes it.
        here: Where the job runs; the file and the journal lie beside its folder.
        there: Where it goes.
        dag: The DAG that runs it.
        more: Further fields of the job.
    """
    folder = Path(here.folder).parent
    job = SparkJob(name=JOB, homes=(here, there), dag=dag, records=f"{folder}/records", **more)
    file = folder / "jobs.json"
    file.write_text(json.dumps({"jobs": [job.to_json()]}))
    patch.setenv("AIRFLOW__MM2_OFFSETS__JOBS_FILE", str(file))


def be_impatient(patch: pytest.MonkeyPatch) -> None:
    """Let hooks wait five seconds for what does not answer; a busy broker may need as long."""
    real = Mm2OffsetHook.__init__

    def init(hook: Mm2OffsetHook, *args: Any, **named: Any) -> None:
        real(hook, *args, **{**named, "timeout": 5.0})

    patch.setattr(Mm2OffsetHook, "__init__", init)
