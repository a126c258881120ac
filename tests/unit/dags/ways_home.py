"""A run of mm2_failover that brings home a job which an earlier run has moved away."""

from tests.unit.dags.dags_folder import FOLDER, parse
from tests.unit.dags.failovers import Failover
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker


class JobOnTarget(Job):
    """The job that the first run has started; its folder is there already."""

    def __init__(self, folder: "Failover", position: int = 15) -> None:
        self.folder = folder.target
        self.checkpoint, self.control = self.folder / "checkpoint", self.folder / "control"
        self.control.mkdir()
        self.commit(0, position, 10, 10, 10)
        self.beat(1)


def way_home(worker: Worker, away: Failover, run_id: str, **conf: object) -> Failover:
    """Return the run, after ``away`` has moved the job."""
    worker.run_id = run_id
    worker.xcoms.clear()
    dag = parse(FOLDER / "mm2_failover.py").dags["mm2_failover"]
    job = getattr(away, "job_on_target", None) or JobOnTarget(away)
    vars(away)["job_on_target"] = job
    run = Failover(worker, dag, job, "source")
    worker.conf = {**worker.conf, "mode": "failback", **conf}
    return run
