"""A job that is moved task by task, in memory: for the tests of operators and of DAGs."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, BaseOperator
from airflow.sdk.definitions.mappedoperator import MappedOperator
from upath import UPath

from airflow_mm2_offsets.core.policy import parse_policy
from airflow_mm2_offsets.errors import NotReadyError
from airflow_mm2_offsets.moves import move as moves
from airflow_mm2_offsets.moves.fences import read_fence
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.journal import Entry, FenceState, Journal
from airflow_mm2_offsets.moves.request import MoveRequest
from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from airflow_mm2_offsets.operators.handover import TriggerTargetDagOperator
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.sensors.replication import Mm2ReplicatedSensor
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker, events, rebuild
from tests.unit.spark import checkpoints

WAITS = {"poke_interval": 0.02, "timeout": 5, "deferrable": True}


@dataclass(kw_only=True)
class Mover:
    """Runs the tasks of moves of one job, as Airflow does."""

    worker: Worker
    folder: Path
    policy: str = "planned"
    source_is_gone: bool = False
    more: dict[str, Any] = field(default_factory=dict)
    """Settings of the job."""
    to: str | None = None
    """The cluster that it is to go to; None: its other one."""
    homes: dict[str, dict[str, str]] = field(default_factory=dict)
    """Settings of its homes, by their clusters."""

    @property
    def job(self) -> SparkJob:
        homes = tuple(
            Home(**{"cluster": side, "folder": str(self.folder / side), **self.homes.get(side, {})})
            for side in ("source", "target")
        )
        settings = {"dag": "orders_stream", "records": str(self.folder / "records"), **self.more}
        return SparkJob(name="orders", homes=homes, **settings)

    @property
    def steps(self) -> moves.Mover:
        """What carries the run's steps out without an operator."""
        run = f"failover:{self.worker.run_id}"
        return moves.Mover(self.job, run, parse_policy(self.policy), UPath)

    @property
    def source(self) -> Job:
        """The job where it is before its first move."""
        return Job.at(self.folder / "source")

    def entries(self) -> list[Entry]:
        return Journal(UPath(self.job.journal)).entries()

    def events(self) -> list[str]:
        return [each.event.value for each in self.entries()]

    def fence(self, home: Home) -> FenceState | None:
        fence = read_fence(UPath(home.control))
        return None if fence is None else fence.state

    def task(self, operator: type[BaseOperator], **settings: Any) -> BaseOperator:
        with DAG("failover", schedule=None):
            move = MoveRequest(
                job=self.job, to=self.to, policy=self.policy, source_is_gone=self.source_is_gone
            )
            return operator(task_id=operator.__name__, move=move, **settings)

    def run_task(self, task: BaseOperator | MappedOperator) -> str:
        """Run a task of a group to its end; return how it ended."""
        ended = self.worker.run(task)
        while ended.type == "DeferTask":
            (event,) = events(rebuild(ended))
            ended = self.worker.run(task, after=ended, event=event)
        return str(getattr(ended, "state", "success")).rpartition(".")[2].upper()

    def run(self, operator: type[BaseOperator], **settings: Any) -> Any:  # noqa: ANN401
        """Run a task to its end; return what it returned."""
        ended = self.worker.run(self.task(operator, **settings))
        while ended.type == "DeferTask":
            (event,) = events(rebuild(ended))
            ended = self.worker.run(self.task(operator, **settings), after=ended, event=event)
        return self.worker.xcoms.get((operator.__name__, "return_value"))

    def stop(self, at: Path) -> dict[str, Any]:
        """Stop a job that answers."""
        settings = {"quiet_period": 0.05, "poll_interval": 0.02, "deferrable": True}
        deferred = self.worker.run(self.task(StopSparkStreamingOperator, **settings))
        Job.at(at).acknowledge()
        (event,) = events(rebuild(deferred))
        task = self.task(StopSparkStreamingOperator, **settings)
        self.worker.run(task, after=deferred, event=event)
        result: dict[str, Any] = self.worker.xcoms[
            StopSparkStreamingOperator.__name__, "return_value"
        ]
        return result

    def problems(self, **settings: Any) -> list[str]:
        """Run the check, which must fail; return what it lists."""
        with pytest.raises(NotReadyError) as caught:
            self.run(CheckFailoverOperator, **settings)
        head, *listed = str(caught.value).split("\n  - ")
        assert head.endswith(f"; {len(listed)} to mend:")
        return listed

    def lose_source(self) -> None:
        """Lose the storage of the job's first home in a disaster; nobody can look there."""
        self.policy, self.source_is_gone = "disaster", True
        home = self.source.folder
        home.rename(self.folder / "lost")
        home.write_text("no folder")

    def until_start(self, at: Path) -> None:
        """Take the steps up to the hand-over."""
        self.stop(at)
        self.run(Mm2ReplicatedSensor, **WAITS)
        self.run(TranslateOffsetsOperator)

    def arrive(self) -> Home:
        """Hand the job over, let it begin at its new home, and return that."""
        self.run(TriggerTargetDagOperator)
        home = self.steps.find().there
        assert home is not None
        fence = read_fence(UPath(home.control))
        assert fence is not None
        starts = json.loads(str(fence.starting_offsets))["orders"]
        self.begin(Path(home.folder), *starts.values())
        self.run(SparkStartedSensor, **WAITS)
        return home

    def begin(self, folder: Path, *offsets: int) -> None:
        """Let a job run at its new home, from the offsets that it was given."""
        starts = checkpoints.orders(*offsets)
        checkpoints.write(
            folder / "checkpoint",
            {
                "sources/0/0": checkpoints.start(starts),
                "offsets/0": checkpoints.batch(starts),
                "commits/0": checkpoints.commit(),
            },
        )
        Job.at(folder).beat(1)
