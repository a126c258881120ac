"""A run of mm2_failover in the mode drill, with a job and clusters that are only played."""

from airflow.providers.common.compat.sdk import DAG

from tests.unit.dags.failovers import Failover
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker

BEFORE = ("check", "read_positions", "wait_replicated", "translate", "forecast")
"""The tasks of a drill before its job starts."""


class DrillRun(Failover):
    """A drill, of which every task can be run again."""

    def __init__(self, worker: Worker, dag: DAG, source: Job) -> None:
        super().__init__(worker, dag, source)
        self.folder = source.folder.parent / "target-drill"
        self.give(mode="drill")
        source.beat(1, bootstrap_servers=["source:9092"])

    def give(self, **params: object) -> None:
        """Set params of the run."""
        self.worker.conf = {**self.worker.conf, **params}

    def run_all(self, *task_ids: str) -> None:
        """Run tasks, one after the other."""
        for each in task_ids:
            self.run(each)

    def files_beside(self) -> dict[str, bytes]:
        """Return all files but those in the drill's folder."""
        root = self.source.folder.parent
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file() and not path.is_relative_to(self.folder)
        }
