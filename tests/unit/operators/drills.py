"""A drill beside a job that runs, as the tests of its start and of its tear-down play it."""

from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import DAG, BaseOperator

from airflow_mm2_offsets.operators.drill import StartDrillOperator
from airflow_mm2_offsets.operators.drill_teardown import TearDownDrillOperator
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker, events, rebuild

DRILL = "mm2_failover:manual__1"
"""The request id of the run's drill."""
RUN = ("orders_stream", "mm2_failover__manual__1")
"""The DAG run of its job."""
OFFSETS = '{"orders":{"0":4}}'
CONF = {"kafka_conn_id": "kafka_target", "topic": "orders", "starting_offsets": OFFSETS}


class Drill:
    """A run of mm2_failover in the mode drill."""

    def __init__(self, worker: Worker, folder: Path) -> None:
        self.worker = worker
        self.source = Job(folder / "source", 4)
        self.source.beat(1, bootstrap_servers=["source:9092"])
        self.target = folder / "target"
        self.folder = folder / "drills" / "orders"
        worker.conf = {"folder": str(folder)}

    def start_task(self, **settings: Any) -> StartDrillOperator:
        with DAG("mm2_failover", schedule=None):
            return StartDrillOperator(
                task_id="submit_target",
                **{
                    "trigger_dag_id": "orders_stream",
                    "folder": "{{ dag_run.conf.folder }}/drills/orders",
                    "control": "{{ dag_run.conf.folder }}/source/control",
                    "job_folders": {
                        "source folder": "{{ dag_run.conf.folder }}/source",
                        "target folder": "{{ dag_run.conf.folder }}/target",
                    },
                    "sinks": ["{{ dag_run.conf.folder }}/source/output"],
                    "conf": CONF,
                    **settings,
                },
            )

    def start(self, **settings: Any) -> Any:  # noqa: ANN401 - of many kinds
        """Start the drill's job; return the message that ends the task."""
        return self.worker.run(self.start_task(**settings))

    def run_job(self) -> Job:
        """Do what the drill's job does first."""
        self.folder.joinpath("output").mkdir()
        self.folder.joinpath("checkpoint.control.json").write_text("{}")
        return Job(self.folder, 4)

    def tear_down_task(self, **settings: Any) -> TearDownDrillOperator:
        with DAG("mm2_failover", schedule=None):
            return TearDownDrillOperator(
                task_id="tear_down",
                folder="{{ dag_run.conf.folder }}/drills/orders",
                **{
                    "quiet_period": 0.05,
                    "poll_interval": 0.02,
                    "deferrable": True,
                    "heartbeat_timeout": None,
                    **settings,
                },
            )

    def go_on(self, task: BaseOperator, deferred: Any) -> Any:  # noqa: ANN401 - of many kinds
        """Wait as the triggerer does, and go on; return the next message."""
        (event,) = events(rebuild(deferred))
        return self.worker.run(task, after=deferred, event=event)

    def result(self) -> Any:  # noqa: ANN401 - plain JSON
        return self.worker.xcoms["tear_down", "return_value"]
