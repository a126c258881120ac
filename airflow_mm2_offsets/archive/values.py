"""What an archive is given and holds, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.core.bracket import SyncPoint
from airflow_mm2_offsets.errors import ArchiveError

TopicIds: TypeAlias = tuple[str | None, str | None]
"""The ids of a topic on the source and on the target (KIP-516); None where one is not known, and
``GONE`` where the cluster was asked and has no such topic."""

GONE = ""
"""Instead of an id: the topic was copied and does not exist. One that appears later is another."""

Marks: TypeAlias = tuple[Watermarks | None, Watermarks | None]
"""What a partition held on the source and on the target; None where it did not exist."""


class Generation(NamedTuple):
    """One life of the offset-syncs topic: offsets of two lives have nothing in common."""

    number: int
    """1 for the first that the archive saw; later ones follow it in log order."""
    topic_id: str
    """Kafka's id of the topic; empty where it is not known."""


class Floor(NamedTuple):
    """Where the usable syncs of a partition begin: what lies before is cut."""

    generation: Generation
    offset: int
    """An offset on the offset-syncs topic."""
    settled_below: int | None = None
    """Target offsets below this copy nothing that a position from there on needs; None where that
    is not known: where the target topic was recreated, what it has held since may be older than
    the first sync."""
    last_cut: SyncPoint | None = None
    """The last sync that was cut because a topic was recreated, which may be of the new topic
    already; None if no sync was cut, or if that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairIdentity:
    """Which two clusters an archive is of."""

    source: str | None
    """Kafka's id of the source cluster; None where it is not known."""
    target: str | None
    syncs_topic: str
    """The name of the offset-syncs topic: it tells apart what mirrors between the same two."""

    def check(self, archived: "PairIdentity", location: object) -> None:
        """Raise unless ``archived``, read from ``location``, is of the same pair.

        Raises:
            ArchiveError: It is of another.
        """
        for what, mine, its in (
            ("source cluster", self.source, archived.source),
            ("target cluster", self.target, archived.target),
            ("syncs topic", self.syncs_topic, archived.syncs_topic),
        ):
            if mine is not None and its is not None and mine != its:
                raise ArchiveError(
                    f"{location} is the archive of another pair: its {what} is {its}, and here it "
                    f"is {mine}; give each mm2 connection an archive location of its own"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One reading of the offset-syncs topic: the offsets ``[first, stop)``."""

    first: int
    stop: int
    time: int
    """When, in milliseconds since 1970."""
    whole: bool
    """There was a record at each of the offsets: compaction had removed none."""
    topics: Mapping[str, TopicIds] = field(default_factory=dict)
    """The ids of the replicated topics before the reading, by the source's names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a file says beside its rows."""

    pair: PairIdentity
    generation: Generation
    runs: tuple[Run, ...]
    floors: Mapping[TopicPartition, Floor] = field(default_factory=dict)

    @property
    def first(self) -> int:
        """The first offset of the syncs topic that the file covers."""
        return min(run.first for run in self.runs)

    @property
    def stop(self) -> int:
        """The offset after the last."""
        return max(run.stop for run in self.runs)


def was_recreated(before: TopicIds, now: TopicIds) -> bool:
    """Tell whether a topic's id is another one than before on either side."""
    return any(
        old is not None and new not in {None, GONE, old}
        for old, new in zip(before, now, strict=True)
    )


def newer_ids(before: TopicIds, now: TopicIds) -> TopicIds:
    """Return ``now``, with what was known before where it does not know.

    A topic that is gone keeps its last id: one that takes its place is found by it.
    """
    source, target = (
        new if new or old is None else old for old, new in zip(before, now, strict=True)
    )
    return source, target
