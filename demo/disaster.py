"""Loses the source in mid-stream, fails over from what is left, and gathers forecast and truth."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow_mm2_offsets.core import FailoverPlan, SyncsLocation
from airflow_mm2_offsets.core.summary import table
from demo.environment import TOPIC, Demo
from demo.failover import ARCHIVE, CATCHING_UP, FAILOVER, MOVING, STREAMING, Failover
from demo.steps import Steps
from demo.timeline import Timeline
from demo.truth import Comparison, read_truth
from stack.s3 import S3Storage
from stack.waiting import Progress

READING = "read the truth"
STEPS = (STREAMING, MOVING, CATCHING_UP, READING)
UNARCHIVED = 150
"""Numbers that are written after the archive's last run and before the source is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisasterReport:
    """What was told before the job was started on the target, and what was true."""

    plan: FailoverPlan
    forecast: Mapping[str, Any]
    """The XCom ``forecast`` of the task ``translate``."""
    comparison: Comparison
    timeline: Timeline
    seconds: Mapping[str, float]

    @property
    def holds(self) -> bool:
        """Nothing was lost or read again beyond the forecast, and nothing copied was skipped."""
        return self.comparison.holds

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        return {
            "plan": self.plan.to_json(),
            "forecast": dict(self.forecast),
            "truth": self.comparison.to_json(),
            "first_record": self.timeline.to_json(),
            "seconds": dict(self.seconds),
        }

    def write(self, path: Path) -> None:
        """Write the report as a JSON file."""
        path.write_text(json.dumps(self.to_json(), indent=1) + "\n")

    def __str__(self) -> str:
        """Return the report as tables."""
        steps = [(step, f"{took:.1f}") for step, took in self.seconds.items()]
        told, truth = self.comparison.totals, self.comparison.truth.totals
        verdict = (
            f"{truth.lost} lost ({told.at_risk} at risk), {truth.read_again} read again "
            f"({told.read_again} told). {'PROVEN' if self.holds else 'FAILED'}"
        )
        parts = (self.comparison, table(("step", "seconds"), steps), self.timeline, verdict)
        return "\n\n".join(map(str, parts))


class Disaster:
    """One disaster of a demo whose offset-syncs topic lies on the source.

    Args:
        demo: The programs, which run.
        steps: Told of each step; None: they are counted from here.
    """

    def __init__(self, demo: Demo, *, steps: Steps | None = None) -> None:
        """Prepare it; nothing is lost yet."""
        self.demo = demo
        self.failover = Failover(demo, steps=steps or Steps(STEPS, demo.progress))
        if demo.storage:
            demo.write_jobs(saved_positions=str(demo.folder / "saved-positions"))
        self.lost_at: datetime | None = None

    def run(self, *, unarchived: int = UNARCHIVED, wait: float = 0.0) -> DisasterReport:
        """Lose the source, carry out the failover and return forecast and truth.

        Args:
            unarchived: Numbers written between the archive's last run and the loss.
            wait: Further seconds before the loss: it may come at any moment of a batch.

        Raises:
            FailedRunError: A DAG run failed.
            WaitTimeoutError: A step did not end in time.
        """
        failover, steps = self.failover, self.failover.steps
        with steps.step(STREAMING):
            self.prepare(unarchived=unarchived)
            time.sleep(wait)
        self.lose_source()
        with steps.step(MOVING):
            self.trigger()
            self.finish()
        with steps.step(CATCHING_UP):
            failover.catch_up()
        with steps.step(READING):
            return self.report()

    def prepare(
        self, *, unarchived: int = UNARCHIVED, start: Callable[[], object] | None = None
    ) -> None:
        """Start the job on the source, let the archive's DAG run, and write more after that.

        Args:
            unarchived: Numbers written after the archive's last run.
            start: Starts the job in another way than by its DAG.
        """
        (start or self.failover.start_stream)()
        self.keep_archive()
        self.write_more(unarchived)

    def keep_archive(self) -> None:
        """Let the archive's DAG run once; it keeps the positions of a job on a storage, too."""
        run_id = self.demo.airflow.api.trigger(ARCHIVE, {"job": TOPIC})
        self.demo.wait("the archive", lambda: self.failover.has_ended(ARCHIVE, run_id))

    def write_more(self, numbers: int) -> None:
        """Wait until the producer has written more to the source."""
        producer = self.demo.producer
        goal = producer.produced + numbers
        self.demo.wait("more records on the source", lambda: producer.produced >= goal)

    def lose_source(self) -> None:
        """SIGKILL the source's broker, which holds the offset-syncs topic, and Kafka Connect."""
        self.demo.progress("== the source and Kafka Connect are killed")
        self.lost_at = datetime.now(UTC)
        self.demo.stack.stop_broker("source")
        self.demo.stack.kill_connect()
        self.demo.producer.abandon()

    def trigger(self, **params: object) -> None:
        """Trigger the failover DAG for a disaster."""
        told = {"lost_at": self.lost_at.isoformat()} if self.lost_at else None
        self.failover.trigger(policy="disaster", options=told, approve="never", **params)

    def finish(self) -> None:
        """Let the producer go on on the target once the job is handed over; wait for the end."""
        self.failover.wait_for_task("start_target")
        self.demo.producer.start(self.demo.stack.target)
        self.failover.wait_for_end()

    def report(self) -> DisasterReport:
        """Read the truth from the source, which is started again, and compare."""
        failover = self.failover
        forecast = self.demo.airflow.api.xcom(FAILOVER, failover.run_id, "translate", "forecast")
        return DisasterReport(
            plan=failover.plan(),
            forecast=forecast,
            comparison=Comparison.of(read_truth(self.demo, failover.sink), forecast),
            timeline=failover.timeline(),
            seconds=failover.steps.seconds,
        )


def make_demo(folder: Path, progress: Progress, *, storage: S3Storage | None = None) -> Demo:
    """Return a demo whose offset-syncs topic is lost with the source, as by MM2's default."""
    return Demo(folder, progress, syncs_location=SyncsLocation.SOURCE, storage=storage)
