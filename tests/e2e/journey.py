"""A job that is moved to the target and home again, under writes; see test_failback.py."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.planning.plan import still_copying
from airflow_mm2_offsets.spark.stopping import request_stop
from demo.environment import TOPIC, Demo
from demo.failover import ARCHIVE, FAILOVER, STREAM, Failover
from demo.producer import PARTITIONS
from demo.sink import Sink
from stack.reverse import turn_round

REVERSE = "mm2_reverse"
"""The demo's connection of the mirror from target to source."""
NUMBERS = 300
"""Numbers that the job must deliver from each cluster before it is moved on."""


def stay(demo: Demo, number: int) -> Path:
    """Return the job's folder after so many moves."""
    return demo.folder / "orders" / f"stay-{number}"


class Journey:
    """One job on its way; each stay has a folder of its own.

    Batch numbers begin again with each stay. In the folder of an earlier one, the job would
    overwrite the batches that it wrote there before.
    """

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
        """Start the job on the source."""
        self.failover.start_stream(NUMBERS)

    def move(self, mode: str, **params: object) -> None:
        """Move the job to the other cluster while the producer writes, and let it deliver there."""
        here = self.folder
        self.folders.append(stay(self.demo, len(self.folders)))
        folders = {"source_folder": str(here), "target_folder": str(self.folder)}
        # On a busy machine the batch that is read again is above the thresholds.
        conf = {**folders, "mode": mode, "approve": "never", **params}
        run_id = self.demo.airflow.api.trigger(FAILOVER, conf)
        self.failover.run_id = run_id
        self._runs.append(run_id)
        self.demo.wait(f"{mode} to end", lambda: self.failover.has_ended(FAILOVER, run_id))
        goal = len(self.numbers()) + NUMBERS
        self.demo.wait("new numbers", lambda: len(self.numbers()) >= goal)

    @property
    def first_plan(self) -> str:
        """Where the last move has kept its plan."""
        return str(self.folder / "plans" / f"{self._runs[-1]}.json")

    def come_home(self) -> None:
        """Go back to the source; the producer has stayed there, MirrorMaker 2 copies one way."""
        self.move("failback", first_plan=self.first_plan)

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
        self._wait_for_more("the new numbers")
        # The runbook: archive once after the turn, and let the job read past that moment.
        conf = {"mm2_conn_id": REVERSE, "archive": self.home["archive"]}
        run_id = demo.airflow.api.trigger(ARCHIVE, conf)
        demo.wait("the archive", lambda: self.failover.has_ended(ARCHIVE, run_id))
        self._wait_for_more("the numbers after the archive")

    @property
    def home(self) -> dict[str, str]:
        """Which params bring the job home by the mirror that was turned round."""
        return {"reverse_mm2_conn_id": REVERSE, "archive": str(self.demo.folder / "archive-home")}

    def _wait_for_more(self, what: str) -> None:
        goal = self.demo.producer.produced + NUMBERS
        self.demo.wait(what, lambda: max(self.numbers()) >= goal)

    def end(self) -> None:
        """End the producer, wait until the job has delivered all, and end the job."""
        producer = self.demo.producer
        producer.stop()
        due = set(producer.due)
        self.demo.wait("every number", lambda: due <= self.numbers().keys())
        request_stop(str(self.folder / "control"), "journey-end")
        run_id = f"{FAILOVER}__{self._runs[-1]}"
        self.demo.wait("the job's end", lambda: self.failover.has_ended(STREAM, run_id))

    def numbers(self) -> Counter[int]:
        """Return how often each number was delivered, at all stays together."""
        for folder in self.folders[len(self._sinks) :]:
            self._sinks.append(Sink([folder / "output"]))
        return sum((sink.refresh() for sink in self._sinks), Counter())


def _partitions() -> Iterator[TopicPartition]:
    return (TopicPartition(TOPIC, number) for number in range(PARTITIONS))
