"""What a disaster has really cost: the lost source's log is read once it is back."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.summary import table
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.drain import drain
from demo.environment import TOPIC, Demo
from demo.producer import PARTITIONS
from demo.sink import Sink
from stack.waiting import wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """How many records a forecast told; no upper end means unknown."""

    at_least: int
    at_most: int | None

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """Read a range of the forecast's JSON."""
        most = told["at_most"]
        return cls(at_least=int(told["at_least"]), at_most=None if most is None else int(most))

    def __contains__(self, count: int) -> bool:
        """Tell whether a count lies within."""
        return self.at_least <= count and (self.at_most is None or count <= self.at_most)

    def __str__(self) -> str:
        """Return both ends."""
        return f"{self.at_least} to {'?' if self.at_most is None else self.at_most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What happened to the records of one partition, or of all."""

    on_source: int
    """Committed records that the source held when it was lost."""
    uncopied: int
    """Of them, those without a copy on the target."""
    lost: int
    """Records of the source that no job has put out."""
    skipped: int
    """Records that are on the target and that no job has put out: there must be none."""
    read_again: int
    """Rows in the sinks beyond the first of each record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The records of both clusters and of the sinks, by their numbers."""

    on_source: frozenset[int]
    on_target: frozenset[int]
    delivered: Mapping[int, int]
    """How often each number is in the sinks."""

    @property
    def totals(self) -> Counts:
        """What happened to all records."""
        delivered = frozenset(self.delivered)
        return Counts(
            on_source=len(self.on_source),
            uncopied=len(self.on_source - self.on_target),
            lost=len(self.on_source - delivered),
            skipped=len(self.on_target - delivered),
            read_again=sum(self.delivered.values()) - len(delivered),
        )

    @property
    def partitions(self) -> dict[int, Counts]:
        """What happened to the records of each partition."""
        return {number: self._of_partition(number).totals for number in range(PARTITIONS)}

    def _of_partition(self, partition: int) -> "Truth":
        def of(numbers: Iterable[int]) -> frozenset[int]:
            return frozenset(each for each in numbers if each % PARTITIONS == partition)

        return Truth(
            on_source=of(self.on_source),
            on_target=of(self.on_target),
            delivered={number: self.delivered[number] for number in of(self.delivered)},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A forecast's two ranges, of one partition or of all."""

    at_risk: Range
    read_again: Range

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """Read both ranges of the forecast's JSON."""
        return cls(
            at_risk=Range.from_json(told["at_risk"]),
            read_again=Range.from_json(told["read_again"]),
        )

    def covers(self, true: Counts) -> bool:
        """Tell whether the truth lies within what was told."""
        as_told = true.lost in self.at_risk and true.read_again in self.read_again
        return as_told and not true.skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The forecast of a disaster beside its truth."""

    truth: Truth
    totals: Told
    partitions: Mapping[int, Told]

    @classmethod
    def of(cls, truth: Truth, forecast: Mapping[str, Any]) -> Self:
        """Compare a truth with the XCom of the task ``forecast``.

        Raises:
            KeyError: The forecast does not name each partition.
        """
        told = {int(each["partition"]): Told.from_json(each) for each in forecast["partitions"]}
        return cls(
            truth=truth,
            totals=Told.from_json(forecast["totals"]),
            partitions={number: told[number] for number in range(PARTITIONS)},
        )

    @property
    def rows(self) -> dict[str, tuple[Told, Counts]]:
        """What was told and what was true, of each partition and of all."""
        true = self.truth.partitions
        rows = {
            f"{TOPIC}[{number}]": (told, true[number]) for number, told in self.partitions.items()
        }
        return {**rows, "all": (self.totals, self.truth.totals)}

    @property
    def broken(self) -> list[str]:
        """What was not as told, each as a sentence; empty if the forecast holds."""
        return [
            f"{name}: {true.lost} lost ({told.at_risk} told), "
            f"{true.read_again} read again ({told.read_again} told), "
            f"{true.skipped} of the target were skipped"
            for name, (told, true) in self.rows.items()
            if not told.covers(true)
        ]

    @property
    def holds(self) -> bool:
        """Whether the truth lies within the forecast, and no record of the target was skipped."""
        return not self.broken

    def __str__(self) -> str:
        """Return forecast and truth as a table."""
        rows = [
            (
                name,
                true.on_source,
                true.uncopied,
                told.at_risk,
                true.lost,
                told.read_again,
                true.read_again,
                true.skipped,
            )
            for name, (told, true) in self.rows.items()
        ]
        header = ("partition", "on source", "not copied", "at risk (told)", "lost")
        return table((*header, "read again (told)", "read again", "skipped"), rows)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        rows = {name: _row(told, true) for name, (told, true) in self.rows.items()}
        return {**rows.pop("all"), "partitions": rows, "broken": self.broken}


def _row(told: Told, true: Counts) -> dict[str, Any]:
    return {**asdict(true), "told": asdict(told)}


def read_truth(demo: Demo, sink: Sink) -> Truth:
    """Start the lost source again on its data, and read what was on both clusters.

    The sinks are read first: a driver that wakes with the source must not make good what is lost.
    """
    delivered = Counter(sink.refresh())
    demo.producer.wait_abandoned()
    demo.stack.start_broker("source")
    demo.producer.abort_open(demo.stack.source)
    return Truth(
        on_source=_numbers(demo.pair.source),
        on_target=_numbers(demo.pair.target),
        delivered=delivered,
    )


def _numbers(cluster: KafkaCluster) -> frozenset[int]:
    """Return the numbers of all committed records that a cluster holds."""
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]

    def is_settled() -> bool:
        committed = cluster.watermarks(partitions, isolation="read_committed")
        return committed == cluster.watermarks(partitions)

    # An open transaction hides what was committed after its beginning, until it is aborted.
    wait_until(is_settled, f"open transactions on {cluster.name} to end")
    batches = drain(cluster, dict.fromkeys(partitions, 0), isolation="read_committed")
    numbers = (json.loads(record.value() or b"")["number"] for batch in batches for record in batch)
    return frozenset(number for number in numbers if number >= 0)
