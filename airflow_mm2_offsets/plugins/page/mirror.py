"""What the page shows of one connection: shift, density of the syncs and lag of each partition."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from airflow_mm2_offsets.api.pairs import ServedPair
from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.kafka.sync_times import TimedSync, read_sync_times
from airflow_mm2_offsets.planning.connect_claims import read_claims

PAGE_PARTITIONS = 100

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class MirroredPartition:
    """How one partition is copied."""

    partition: TopicPartition
    """By its name on the source."""
    sync_count: int
    """The offset syncs in memory."""
    last: tuple[int, int]
    """The newest sync: an offset on the source, and the one on the target."""
    lag: int | None
    """The most records that are not copied; None where the source does not answer."""
    timed: Sequence[TimedSync] = ()
    """The newest syncs with their times."""

    @property
    def shift(self) -> int:
        """Target offset less source offset, at the newest sync."""
        return self.last[1] - self.last[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorPage:
    """Some of a connection's partitions, and what could not be read."""

    partitions: Sequence[MirroredPartition]
    found: int
    """The partitions of all pages."""
    problems: Sequence[str] = ()
    """What did not answer, as sentences."""

    @property
    def most_lag(self) -> int:
        """The greatest lag of the page."""
        return max((each.lag or 0 for each in self.partitions), default=0)


@dataclass(slots=True)
class _Reads:
    """Reads that may fail alone: the page shows the others."""

    problems: list[str] = field(default_factory=list)

    def attempt(self, read: Callable[[], dict[TopicPartition, Read]]) -> dict[TopicPartition, Read]:
        """Return what was read by topic-partition; nothing if the read fails."""
        try:
            return read()
        except Mm2OffsetsError as error:
            self.problems.append(str(error))
            return {}


def read_mirror(served: ServedPair, *, text: str = "", page: int = 1) -> MirrorPage:
    """Return a page of the partitions whose names hold a text; it asks both clusters.

    Args:
        served: The pair; its syncs are in memory.
        text: Part of a topic-partition's name.
        page: From 1 on.

    Raises:
        Problem: No sync has been read yet, or the pair has none.
    """
    index = served.index
    names = sorted(each for each in index if text in str(each) and len(index.partitions[each]))
    shown = names[(page - 1) * PAGE_PARTITIONS : page * PAGE_PARTITIONS]
    reads = _Reads()
    ends = reads.attempt(lambda: served.source.watermarks(shown))
    pair = served.pair
    timed = reads.attempt(lambda: read_sync_times(pair.syncs_cluster, pair.syncs_topic))
    claims = reads.attempt(lambda: read_claims(pair))

    def partitions() -> Iterator[MirroredPartition]:
        for name in shown:
            syncs = index.partitions[name]
            copied = max(syncs.last.upstream, min(claims.get(name, {"": -1}).values()))
            lag = max(0, ends[name].high - copied - 1) if name in ends else None
            yield MirroredPartition(
                partition=name,
                sync_count=len(syncs),
                last=(syncs.last.upstream, syncs.last.downstream),
                lag=lag,
                timed=timed.get(name, ()),
            )

    return MirrorPage(partitions=list(partitions()), found=len(names), problems=reads.problems)
