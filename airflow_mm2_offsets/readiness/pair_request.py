"""What the checks of the two clusters share: the pair, what of it answers, and what was read."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Direction, Positions, TopicPartition, Watermarks
from airflow_mm2_offsets.core.policy import Policy
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.kafka.syncs import SyncsSnapshot
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.subscribe_pattern import JobPatterns
from airflow_mm2_offsets.readiness.thresholds import Thresholds
from airflow_mm2_offsets.spark.cluster_notes import ClusterNotes

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive.history import ArchivedSyncs
    from airflow_mm2_offsets.kafka.drain import Record

ValueT = TypeVar("ValueT")


class Part(StrEnum):
    """What a check needs an answer of."""

    SOURCE = "the source"
    TARGET = "the target"
    CONNECT = "Kafka Connect"
    SYNCS = "the cluster of the offset-syncs topic"


class Once(Generic[ValueT]):
    """Reads a thing at the first call; later calls, of any thread, get the same answer or error."""

    def __init__(self, read: Callable[[], ValueT]) -> None:
        """Keep how to read."""
        self._read, self._lock = read, Lock()
        self._values: list[ValueT] = []
        self._error: Mm2OffsetsError | None = None

    def __call__(self) -> ValueT:
        """Return what was read; raise the error of the read."""
        with self._lock:
            if self._error is None and not self._values:
                try:
                    self._values.append(self._read())
                except Mm2OffsetsError as error:
                    self._error = error
        if self._error is not None:
            raise self._error
        return self._values[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRequest:
    """A question about the pair; ``pair.connect`` is None if Connect does not answer."""

    pair: ClusterPair
    policy: Policy
    thresholds: Thresholds
    now: float
    """Milliseconds since 1970."""
    reached: Collection[Part]
    """What answers."""
    expected: Collection[Part]
    """What the settings name."""
    positions: Positions | None = None
    """The job's: of its checkpoint, or what stands in for that."""
    pending: Positions | None = None
    plan_options: PlanOptions = DEFAULT_OPTIONS
    """How the positions are to be translated, with the archive."""
    plan_problem: str | None = None
    """Why the plan that the job came by can't be read, on the way home."""
    notes: ClusterNotes = field(default_factory=ClusterNotes)
    """What says which cluster the positions are of."""
    patterns: JobPatterns = field(default_factory=JobPatterns)
    syncs: Once[SyncsSnapshot]
    """The offset-syncs topic."""
    newest_syncs: "Once[list[Record]]"
    """Its newest records."""
    archived: "Once[ArchivedSyncs] | None" = None
    """The archive's contents; None: no archive is given."""
    first_ends: "Once[dict[TopicPartition, Watermarks]]"
    """The watermarks of the job's topics on the source, read early."""

    @property
    def archive(self) -> SyncArchive | None:
        """The archive of offset syncs, if one is given."""
        return self.plan_options.archive

    @property
    def mirrored(self) -> "PairRequest":
        """The same question of the pair as MirrorMaker 2 copies, also where the job moves back."""
        if self.pair.direction is Direction.FORWARD:
            return self
        other = {Part.SOURCE: Part.TARGET, Part.TARGET: Part.SOURCE}
        positions = self.positions
        if positions is not None:
            naming = self.pair.naming
            positions = {naming.target_topic(topic): of for topic, of in positions.items()}
        return replace(
            self,
            pair=self.pair.mirrored,
            reached={other.get(part, part) for part in self.reached},
            positions=positions,
        )

    def age(self, milliseconds: float) -> float:
        """Return the seconds since a time; 0 for a time in the future."""
        return max(0.0, (self.now - milliseconds) / 1000)

    def topics(self) -> list[str]:
        """Return the topics that the check is about: the job's, else all that have syncs."""
        if self.positions is not None:
            return sorted(self.positions)
        if Part.SYNCS not in self.reached:
            return []
        try:
            return sorted({topic for topic, _ in self.syncs().index})
        except Mm2OffsetsError:
            return []
