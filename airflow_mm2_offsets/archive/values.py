"""The values of an archive: its pair of clusters, runs, and where each history starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.core.epochs import Beginning, History
from airflow_mm2_offsets.errors import ArchiveError

COMPACT_OVER = 20
"""To read so many files takes a tenth of the time that the topic takes."""

TopicIds: TypeAlias = tuple[str | None, str | None]
"""The ids of a topic on the source and on the target (KIP-516). None: not known. ``GONE``: the
cluster has no such topic."""

NO_IDS: TopicIds = (None, None)

GONE = ""
"""Instead of an id: the topic was copied and no longer exists. A later one is another topic."""

WatermarkPair: TypeAlias = tuple[Watermarks | None, Watermarks | None]
"""A partition's watermarks on the source and on the target; None where it did not exist."""


class TopicIncarnation(NamedTuple):
    """The offset-syncs topic from its creation to its deletion; the next one has other offsets."""

    number: int
    """1 for the first that the archive saw; later ones follow it in log order."""
    topic_id: str
    """Kafka's id of the topic; empty where it is not known."""


class HistoryStart(NamedTuple):
    """Where the usable syncs of a partition begin: those before are cut."""

    incarnation: TopicIncarnation
    offset: int
    """An offset on the offset-syncs topic."""
    settled_below: int | None = None
    """No position from there on needs a copy below this target offset. None if that is not known:
    a recreated target topic may hold copies older than the first sync."""

    @property
    def beginning(self) -> Beginning:
        """What is known of the time before the first sync."""
        if self.settled_below is None:
            return Beginning(history=History.LATE)
        return Beginning(history=History.CUT, settled_below=self.settled_below)


BEGINNING = HistoryStart(TopicIncarnation(0, ""), 0)
"""Before every sync."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairIdentity:
    """The two clusters of an archive."""

    source: str | None
    """Kafka's id of the source cluster; None where it is not known."""
    target: str | None
    syncs_topic: str
    """The name of the offset-syncs topic: it tells apart two mirrors between the same clusters."""

    def check(self, archived: "PairIdentity", location: object) -> None:
        """Compare with the identity that an archive at ``location`` names.

        Raises:
            ArchiveError: It is another pair.
        """
        for what, ours, theirs in (
            ("source cluster", self.source, archived.source),
            ("target cluster", self.target, archived.target),
            ("syncs topic", self.syncs_topic, archived.syncs_topic),
        ):
            if ours is not None and theirs is not None and ours != theirs:
                raise ArchiveError(
                    f"{location} is the archive of another pair: its {what} is {theirs}, and here "
                    f"it is {ours}; give each mm2 connection its own archive location"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One read of the offset-syncs topic: the offsets ``[first, stop)``."""

    first: int
    stop: int
    time: int
    """When it began, in milliseconds since 1970."""
    whole: bool
    """Each of the offsets had a record: compaction had removed none."""
    topics: Mapping[str, TopicIds] = field(default_factory=dict)
    """The ids of the replicated topics before the read, by the source's names."""


ArchivedRun: TypeAlias = tuple[TopicIncarnation, Run]
"""A run, and the incarnation that it read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A file's metadata."""

    pair: PairIdentity
    incarnation: TopicIncarnation
    runs: tuple[Run, ...]
    history_starts: Mapping[TopicPartition, HistoryStart] = field(default_factory=dict)

    @property
    def first(self) -> int:
        """The first offset of the syncs topic that the file covers."""
        return min(run.first for run in self.runs)

    @property
    def stop(self) -> int:
        """The offset after the last."""
        return max(run.stop for run in self.runs)


def was_recreated(before: TopicIds, now: TopicIds) -> bool:
    """Tell whether a topic's id has changed on either cluster."""
    return any(
        old is not None and new not in {None, GONE, old}
        for old, new in zip(before, now, strict=True)
    )


def newer_ids(before: TopicIds, now: TopicIds) -> TopicIds:
    """Return ``now``, with the ids from before where it has None.

    A topic that is gone keeps its last id: a recreated one is recognized by it.
    """
    source, target = (
        new if new or old is None else old for old, new in zip(before, now, strict=True)
    )
    return source, target
