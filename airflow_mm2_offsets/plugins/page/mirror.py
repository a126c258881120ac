"""What the page shows of one connection: shift, density of the syncs and lag of each partition."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from airflow_mm2_offsets.api.pairs import ServedPair
from airflow_mm2_offsets.core import SyncIndex, TopicPartition, Watermarks
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.kafka.sync_times import TimedSync, read_sync_times
from airflow_mm2_offsets.planning.connect_claims import Claims, read_claims
from airflow_mm2_offsets.plugins.page.plots import Histogram, LinePlot, histogram, line_plot

PAGE_PARTITIONS = 50

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class MirroredPartition:
    """How one partition is copied."""

    partition: TopicPartition
    """By its name on the source."""
    sync_count: int
    """Its offset syncs."""
    last: tuple[int, int]
    """The newest sync: an offset on the source, and the one on the target."""
    last_at: int | None
    """When that was written, in milliseconds since 1970; None if it is not among the newest."""
    lag: int | None
    """The most records that are not copied; None where that is not known."""
    shift_plot: LinePlot | None = None
    sync_plot: Histogram | None = None

    @property
    def shift(self) -> int:
        """Target offset less source offset, at the newest sync."""
        return self.last[1] - self.last[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorPage:
    """Some of a connection's partitions, and what could not be read."""

    partitions: Sequence[MirroredPartition]
    number: int
    """The page's, from 1 on."""
    pages: int
    matches: int
    """The partitions of all pages."""
    problems: Sequence[str] = ()
    """What did not answer or can't be true, as sentences."""

    @property
    def most_lag(self) -> int:
        """The greatest lag of the page."""
        return max((each.lag or 0 for each in self.partitions), default=0)


@dataclass(slots=True)
class _Reads:
    """What the clusters say of a page's partitions; a read that fails leaves the others."""

    claims: Claims = field(default_factory=dict)
    ends: Mapping[TopicPartition, Watermarks] = field(default_factory=dict)
    timed: Mapping[TopicPartition, Sequence[TimedSync]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def ask(self, served: ServedPair, partitions: Sequence[TopicPartition]) -> None:
        """Ask both clusters and Connect, at the same time: each may take its whole timeout."""
        pair = served.pair

        def progress() -> None:
            # Before the ends: what is copied meanwhile must not make the lag too small.
            self.claims = self._attempt(lambda: read_claims(pair), {})
            self.ends = self._attempt(lambda: _read_ends(served, partitions), {})

        def times() -> None:
            read = lambda: read_sync_times(pair.syncs_cluster, pair.syncs_topic)  # noqa: E731
            self.timed = self._attempt(read, {})

        with ThreadPoolExecutor(2) as pool:
            for future in [pool.submit(progress), pool.submit(times)]:
                future.result()

    def _attempt(self, read: Callable[[], Read], otherwise: Read) -> Read:
        try:
            return read()
        except Mm2OffsetsError as error:
            self.problems.append(str(error))
            return otherwise

    def lag_of(self, partition: TopicPartition, synced: int) -> int | None:
        """Return the most records that are not copied; None, and a problem, where that is unknown.

        Args:
            partition: The partition.
            synced: The source offset of its newest sync.
        """
        if partition not in self.ends:
            return None
        end = self.ends[partition].high
        by_connector = self.claims.get(partition, {})
        # Where several connectors copy a partition, the one that is behind counts.
        copied = max(synced, min(by_connector.values(), default=synced))
        if copied >= end:
            self.problems.append(
                f"{partition}: offset {copied} was copied, and the source ends at {end}: the topic "
                f"was recreated or truncated, and its syncs are of the old one"
            )
            return None
        return end - copied - 1


def read_mirror(served: ServedPair, *, text: str = "", number: int = 1) -> MirrorPage:
    """Return a page of the partitions whose names hold a text; it asks both clusters.

    Args:
        served: The pair; its syncs are in memory, and newer ones are read.
        text: Part of a topic-partition's name, whatever its case.
        number: The page's, from 1 on; beyond the last it is the last.

    Raises:
        Problem: No sync has been read yet, or the pair has none.
    """
    reads = _Reads()
    index = _newest_index(served, reads)
    wanted = text.casefold()
    matches = sorted(
        partition
        for partition, syncs in index.partitions.items()
        if syncs and wanted in str(partition).casefold()
    )
    pages = max(1, -(-len(matches) // PAGE_PARTITIONS))
    number = min(max(1, number), pages)
    shown = matches[(number - 1) * PAGE_PARTITIONS : number * PAGE_PARTITIONS]
    if shown:
        reads.ask(served, shown)
    return MirrorPage(
        partitions=[_mirrored(index, partition, reads) for partition in shown],
        number=number,
        pages=pages,
        matches=len(matches),
        problems=reads.problems,
    )


def _newest_index(served: ServedPair, reads: _Reads) -> SyncIndex:
    """Return the syncs that the topic holds now; those in memory where it can't be read."""
    index = served.index  # first: without syncs in memory there is no page
    try:
        return served.latest()
    except Mm2OffsetsError as error:
        reads.problems.append(f"the offset syncs are those of the last read: {error}")
        return index


def _read_ends(
    served: ServedPair, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Watermarks]:
    """Return the source's watermarks of the partitions that exist: syncs outlive their topic."""
    partitions = list(partitions)
    topics = served.pair.source.topics({each.topic for each in partitions})
    there = [
        each
        for each in partitions
        if each.topic in topics and each.partition < topics[each.topic].partitions
    ]
    return served.source.watermarks(there)


def _mirrored(index: SyncIndex, partition: TopicPartition, reads: _Reads) -> MirroredPartition:
    syncs = index.partitions[partition]
    last = (syncs.last.upstream, syncs.last.downstream)
    timed = reads.timed.get(partition, ())
    times = [each.time for each in timed]
    is_timed = bool(timed) and (timed[-1].upstream, timed[-1].downstream) == last
    return MirroredPartition(
        partition=partition,
        sync_count=len(syncs),
        last=last,
        last_at=times[-1] if is_timed else None,
        lag=reads.lag_of(partition, last[0]),
        shift_plot=line_plot(times, [each.shift for each in timed]),
        sync_plot=histogram(times),
    )
