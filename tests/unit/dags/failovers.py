"""A run of mm2_failover, with a job and clusters that are only played."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, BaseOperator
from upath import UPath

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.moves import move as moves
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.task_groups import STEPS
from tests.unit.dags.dags_folder import FOLDER, parse
from tests.unit.operators.mover import Mover
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import events, rebuild

STARTING = '{"orders":{"0":9,"1":6,"2":3,"3":2}}'
"""Where the job of ``mover`` continues."""


@dataclass(kw_only=True)
class Failover:
    """A run of the DAG, of which every task can be run again."""

    mover: Mover
    dag: DAG
    """Of this run alone: Airflow writes into its params what a run was given."""

    @classmethod
    def of(cls, mover: Mover, **conf: Any) -> "Failover":
        """Return a run of mm2_failover for the mover's job, which the file of jobs has."""
        dag = parse(FOLDER / "mm2_failover.py").dags["mm2_failover"]
        mover.worker.conf = {"job": "orders", **conf}
        run = cls(mover=mover, dag=dag)
        for task_id in ("wait_replicated", "wait_started"):
            vars(run.task(task_id)).update(poke_interval=0.02, timeout=5)
        vars(run.task("stop_source")).update(poll_interval=0.02, quiet_period=0.05)
        return run

    @property
    def worker(self) -> Any:  # noqa: ANN401 - a Worker
        return self.mover.worker

    @property
    def source(self) -> Job:
        return Job.at(Path(self.mover.job.homes[0].folder))

    @property
    def target(self) -> Path:
        return Path(self.mover.job.homes[1].folder)

    def task(self, task_id: str) -> BaseOperator:
        task = self.dag.get_task(task_id)
        assert isinstance(task, BaseOperator)
        return task

    def run(self, task_id: str) -> str:
        """Run a task to its end, while the job does its part; return how it ended."""
        has_begun = (self.target / "checkpoint").exists()
        if task_id == "wait_started" and self.worker.triggered and not has_begun:
            starts = json.loads(self.starting_offsets()[-1])["orders"]
            self.mover.begin(self.target, *(starts[str(number)] for number in range(4)))
        ended = self.worker.run(self.task(task_id))
        while ended.type == "DeferTask":
            if task_id == "stop_source":
                self.source.acknowledge()
            (event,) = events(rebuild(ended))
            ended = self.worker.run(self.task(task_id), after=ended, event=event)
        return str(getattr(ended, "state", "success")).rpartition(".")[2].upper()

    def run_until(self, task_id: str) -> None:
        """Run all tasks before one."""
        for each in [*STEPS][: [*STEPS].index(task_id)]:
            self.run(each)

    def run_all(self) -> None:
        """Run all tasks."""
        for each in STEPS:
            self.run(each)

    def note(self, **facts: Any) -> None:
        """Write a note of the run into the journal, as another task of it does."""
        carrier = moves.Mover(self.mover.job, f"mm2_failover:{self.worker.run_id}", PLANNED, UPath)
        carrier.record(carrier.find(), Event.NOTE, **facts)

    def plan(self) -> FailoverPlan:
        """Return the plan that the journal names."""
        return FailoverPlan.from_json(json.loads(self.plan_path().read_text()))

    def plan_path(self) -> Path:
        """Return where the plan lies."""
        *_, path = (each.facts["plan"] for each in self.mover.entries() if "plan" in each.facts)
        return Path(path)

    def starting_offsets(self) -> list[str]:
        """Return where the job was told to begin, at each of its hand-overs."""
        handed = (each for each in self.mover.entries() if each.event is Event.HAND_OVER)
        return [each.facts["starting_offsets"] for each in handed]


def write_jobs(mover: Mover, monkeypatch: pytest.MonkeyPatch) -> Mover:
    """Write the mover's job into a file of jobs, which Airflow's configuration names."""
    file = mover.folder / "jobs.json"
    file.write_text(json.dumps({"jobs": [mover.job.to_json()]}))
    monkeypatch.setenv("AIRFLOW__MM2_OFFSETS__JOBS_FILE", str(file))
    return mover
