"""A job that is moved to the target and home again, under writes; see test_failback.py."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from upath import UPath

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.moves.move import job_at
from airflow_mm2_offsets.moves.overview import overview_of
from airflow_mm2_offsets.moves.stop_job import stop_job
from airflow_mm2_offsets.planning.plan import still_copying
from demo.environment import TOPIC, Demo
from demo.failover import ARCHIVE, FAILOVER, STREAM, Failover
from demo.producer import PARTITIONS
from demo.sink import Sink
from stack.reverse import turn_round

REVERSE = "mm2_reverse"
"""The demo's connection of the mirror from target to source."""
NUMBERS = 300
"""Numbers that the job must deliver from each cluster before it is moved on."""


class Journey:
    """One job on its way; its journal says where it is."""

    def __init__(self, demo: Demo) -> None:
        """Begin nothing yet."""
        self.demo = demo
        self.failover = Failover(demo)
        self.folders = [demo.job_folder("source")]
        self._runs: list[str] = []
        self._sinks: list[Sink] = []

    @property
    def folder(self) -> Path:
        """Where the job stays now."""
        return self.folders[-1]

    def start(self) -> None:
        """Start the job on the source, and archive the offset syncs, which both ways then have."""
        self.failover.start_stream(NUMBERS)
        self._archive()

    def move(self, **params: object) -> None:
        """Move the job to the other cluster while the producer writes, and let it deliver there."""
        # On a busy machine the batch that is read again is above the thresholds.
        conf = {"job": TOPIC, "approve": "never", **params}
        run_id = self.demo.airflow.api.trigger(FAILOVER, conf)
        self.failover.run_id = run_id
        self._runs.append(run_id)
        self.demo.wait("the move to end", lambda: self.failover.has_ended(FAILOVER, run_id))
        self.folders.append(Path(overview_of(self.demo.job, UPath).home.folder))
        goal = len(self.numbers()) + NUMBERS
        self.demo.wait("new numbers", lambda: len(self.numbers()) >= goal)

    def turn_round(self) -> None:
        """Let the producer write to the target from now on, and MirrorMaker 2 copy from there."""
        demo = self.demo
        demo.producer.stop()
        ends = demo.pair.source.watermarks(_partitions())
        positions = {TOPIC: {each.partition: marks.high for each, marks in ends.items()}}
        demo.wait("the last copies", lambda: not still_copying(demo.pair, positions))
        copies = demo.pair.target.watermarks(_partitions())
        last = {each.partition: marks.high for each, marks in copies.items()}
        turn_round(demo.stack, f"{TOPIC}.*", {TOPIC: last})
        demo.producer.start(demo.stack.target)
        demo.write_jobs(mm2_back_conn_id=REVERSE)
        self._wait_for_more("the new numbers")
        # The runbook: archive once after the turn, and let the job read past that moment.
        self._archive()
        self._wait_for_more("the numbers after the archive")

    def _archive(self) -> None:
        run_id = self.demo.airflow.api.trigger(ARCHIVE, {"job": TOPIC})
        self.demo.wait("the archive", lambda: self.failover.has_ended(ARCHIVE, run_id))

    def _wait_for_more(self, what: str) -> None:
        goal = self.demo.producer.produced + NUMBERS
        self.demo.wait(what, lambda: max(self.numbers()) >= goal)

    def end(self) -> None:
        """End the producer, wait until the job has delivered all, and end the job."""
        producer = self.demo.producer
        producer.stop()
        due = set(producer.due)
        self.demo.wait("every number", lambda: due <= self.numbers().keys())
        stop_job(job_at(str(self.folder), UPath), by="journey", open_path=UPath)
        (run_id,) = (run for run in self.demo.airflow.api.runs(STREAM) if self._runs[-1] in run)
        self.demo.wait("the job's end", lambda: self.failover.has_ended(STREAM, run_id))

    def numbers(self) -> Counter[int]:
        """Return how often each number was delivered, at all stays together."""
        for folder in self.folders[len(self._sinks) :]:
            self._sinks.append(Sink([folder / "output"]))
        return sum((sink.refresh() for sink in self._sinks), Counter())


def _partitions() -> Iterator[TopicPartition]:
    return (TopicPartition(TOPIC, number) for number in range(PARTITIONS))
