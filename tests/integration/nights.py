"""A failover by mm2_failover on real clusters: the DAG's own tasks, run in the test's process.

The job alone is played: its folder holds the files that a Spark job under StopControl leaves.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import NotReplicatedError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.spark.fence import read_fence
from tests.integration.mirrors import Mirror
from tests.unit.dags.dags_folder import FOLDER, STEPS, parse
from tests.unit.dags.failovers import Failover
from tests.unit.operators.clusters import define
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker
from tests.unit.spark import checkpoints

RUNBOOK = FOLDER.parent / "docs" / "runbook.md"
WAITS = {"DeferTask", "AwaitInputTask"}
"""How a task says that it waits; newer releases of Airflow tell a wait for a person apart."""
NEVER = "127.0.0.1:1"
"""An address where nothing listens."""


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


class Night(Failover):
    """One run of the DAG."""

    def __init__(self, worker: Worker, job: TopicJob, *, run_id: str = "manual__1") -> None:
        dag = parse(FOLDER / "mm2_failover.py").dags["mm2_failover"]
        super().__init__(worker, dag, job, f"target-{run_id}")
        self.run_id, self.conf, self.job = run_id, dict(worker.conf), job
        self.xcoms: dict[tuple[str, str], Any] = {}

    def give(self, **params: object) -> None:
        """Set params of the run."""
        self.conf |= params

    def run(self, task_id: str) -> None:
        """Run a task to its end, with its wait."""
        self._be_the_workers()
        super().run(task_id)

    def begin(self, task_id: str) -> None:
        """Run a task until it waits."""
        self._be_the_workers()
        assert self.worker.run(self.task(task_id)).type in WAITS

    def _be_the_workers(self) -> None:
        """Let the worker know this run: several share it."""
        self.worker.run_id, self.worker.conf, self.worker.xcoms = self.run_id, self.conf, self.xcoms

    def run_from(self, first: str, until: str) -> None:
        """Run the tasks from one to before another, without those that the mode skips."""
        skipped = {"wait_replicated"} if self.conf.get("mode") == "disaster" else set()
        for each in STEPS[STEPS.index(first) : STEPS.index(until)]:
            if each not in skipped:
                self.run(each)

    def waits_in_vain(self) -> str:
        """Run the wait for copies that do not come, and return its message."""
        task = vars(self.task("wait_replicated"))
        patience, task["timeout"] = task["timeout"], 2
        message = self.fails("wait_replicated", NotReplicatedError)
        task["timeout"] = patience
        return message

    def fails(self, task_id: str, error: type[Exception]) -> str:
        """Run a task that fails, and return its message, which the runbook must quote."""
        with pytest.raises(error) as raised:
            self.run(task_id)
        message = str(raised.value)
        assert quotes(message), message
        return message

    def result(self, task_id: str) -> Any:  # noqa: ANN401 - plain JSON
        return self.xcoms[task_id, "return_value"]

    def checks(self, name: str) -> list[dict[str, Any]]:
        """Return the lines of a name in the report of ``check``."""
        return [each for each in self.result("check")["checks"] if each["name"] == name]

    def is_untouched(self) -> bool:
        """Tell whether nothing was stopped, and nothing started."""
        is_fenced = read_fence(UPath(self.job.control)) is not None
        return not (is_fenced or self.job.requested_stop() or self.worker.triggered)


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


def be_impatient(patch: pytest.MonkeyPatch) -> None:
    """Let hooks wait five seconds for what does not answer; a busy broker may need as long."""
    real = Mm2OffsetHook.__init__

    def init(hook: Mm2OffsetHook, *args: Any, **named: Any) -> None:
        real(hook, *args, **{**named, "timeout": 5.0})

    patch.setattr(Mm2OffsetHook, "__init__", init)
