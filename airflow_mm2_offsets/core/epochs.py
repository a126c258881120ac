"""The syncs of one partition, in log order, cut into epochs; ``index`` holds them.

An epoch begins wherever MirrorMaker 2 went back on the source, or may have: where the target grows
by more than the source. If the upstream offset does not even rise, MirrorMaker 2 was restarted and
copies records again. If it rises, MirrorMaker 2 may have passed the second of two syncs, gone back,
and copied again unseen; or a transaction marker or another writer's record lies between.

If the downstream offset does not rise, the target topic was truncated or recreated, or an older
task wrote its sync late. No number shows which of these it was, so the syncs before it no longer
count: what was copied before it is not known. If the sync lies between the last two on both sides,
the later one of these was sent first, or the target lost a few records: only that one is removed.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

from airflow_mm2_offsets.core.bounds import begins_epoch
from airflow_mm2_offsets.core.bracket import BEGINNING, END, SyncPoint
from airflow_mm2_offsets.core.duplicates import RewindRun, densities_of, rewind_runs_of
from airflow_mm2_offsets.core.lows import NO_PROGRESS, Progress
from airflow_mm2_offsets.core.segments import Segments


class History(StrEnum):
    """What is known of the time before the first sync."""

    COMPLETE = "complete"
    """The first sync is the first that MirrorMaker 2 ever wrote."""
    UNKNOWN = "unknown"
    """Older syncs may be compacted away."""
    LATE = "late"
    """Older syncs may be missing, and positions before the first sync are refused: the archive
    began late, or the target topic was recreated."""
    CUT = "cut"
    """The archive has dropped older syncs, for their age or as those of another incarnation of the
    source topic. Positions before the first sync are refused."""

    @property
    def is_cut(self) -> bool:
        """Whether positions before the first sync are refused."""
        return self in {History.LATE, History.CUT}

    def refuses(self, low: int) -> bool:
        """Tell whether a position with this lower bound, maybe BEGINNING, is refused."""
        return low == BEGINNING and self.is_cut

    @property
    def is_complete(self) -> bool:
        """Whether no sync is missing at the beginning."""
        return self is History.COMPLETE


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """What is known of the time before the first sync of a partition."""

    history: History = History.UNKNOWN
    settled_below: int = 0
    """No position needs a copy below this target offset: 0, unless history is cut."""
    source_end: int = END
    """What was copied before the first sync lies below this source offset: the source's end, as an
    archive read it after that sync was written. END if it is not known."""


UNKNOWN_BEGINNING = Beginning()


class PartitionSyncs:
    """Every usable sync of one partition; immutable, 16 bytes each."""

    upstream: "array[int]"
    downstream: "array[int]"
    """Rises from sync to sync."""
    starts: "array[int]"
    """The index of the first sync of each epoch."""
    beginning: Beginning

    def __init__(
        self,
        syncs: Iterable[tuple[int, int]] = (),
        *,
        after: "PartitionSyncs | None" = None,
        beginning: Beginning = UNKNOWN_BEGINNING,
    ) -> None:
        """Index ``syncs``, pairs of upstream and downstream offset in log order.

        If ``after`` is set, they continue its syncs, and ``beginning`` does not count.
        """
        self.upstream = array("q", after.upstream if after else ())
        self.downstream = array("q", after.downstream if after else ())
        self.starts = array("q", after.starts if after else ())
        self.beginning = beginning if after is None else after.beginning
        self._extend(syncs)

    @classmethod
    def of_columns(
        cls, upstream: bytes, downstream: bytes, *, starts: Sequence[int], beginning: Beginning
    ) -> "PartitionSyncs":
        """Return the syncs of columns that were indexed elsewhere, exactly as ``__init__`` would.

        Args:
            upstream: The upstream offsets, in log order, as int64 of this machine.
            downstream: The downstream offsets, likewise; they rise.
            starts: See ``starts``.
            beginning: See ``beginning``.
        """
        syncs = cls(beginning=beginning)
        syncs.upstream, syncs.downstream = array("q", upstream), array("q", downstream)
        syncs.starts = array("q", starts)
        return syncs

    def with_source_end(self, source_end: int) -> "PartitionSyncs":
        """Return the same syncs with ``Beginning.source_end``, unless a lower one is known."""
        return PartitionSyncs.of_columns(
            self.upstream.tobytes(),
            self.downstream.tobytes(),
            starts=self.starts,
            beginning=replace(
                self.beginning, source_end=min(source_end, self.beginning.source_end)
            ),
        )

    def __len__(self) -> int:
        """Return the number of syncs kept."""
        return len(self.upstream)

    def __getitem__(self, index: int) -> SyncPoint:
        """Return the sync at ``index`` in log order."""
        return SyncPoint(self.upstream[index], self.downstream[index])

    @property
    def first(self) -> SyncPoint:
        """The first sync known."""
        return self[0]

    @property
    def last(self) -> SyncPoint:
        """The newest sync."""
        return self[-1]

    def until(self, sync: SyncPoint) -> "PartitionSyncs":
        """Return the syncs up to ``sync``, as they were known when it was the newest."""
        stop = bisect_right(self.downstream, sync.downstream)
        return PartitionSyncs.of_columns(
            self.upstream[:stop].tobytes(),
            self.downstream[:stop].tobytes(),
            starts=self.starts[: bisect_left(self.starts, stop)],
            beginning=self.beginning,
        )

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """Each epoch as the range of its syncs, oldest first."""
        return list(pairwise([*self.starts, len(self)])) if self.starts else []

    @cached_property
    def segments(self) -> Segments:
        """What the syncs say of all positions."""
        return Segments.of(self)

    def segments_with(self, progress: Progress) -> Segments:
        """Return what the syncs say if it is known how far MirrorMaker 2 has come."""
        known, segments = self._with_progress
        if known != progress:
            segments = Segments.of(self, progress)
            self._with_progress = progress, segments
        return segments

    @cached_property
    def _with_progress(self) -> tuple[Progress, Segments]:
        return NO_PROGRESS, self.segments

    @cached_property
    def rewinds(self) -> list[RewindRun]:
        """The rewinds before which records may have been copied again unseen, for all positions."""
        return rewind_runs_of(self)

    @cached_property
    def densities(self) -> list[float]:
        """How many copies the source's offsets have at least; see ``densities_of``."""
        return densities_of(self)

    def _extend(self, syncs: Iterable[tuple[int, int]]) -> None:
        ups, downs = self.upstream, self.downstream
        up, down = (ups[-1], downs[-1]) if ups else (END, END)
        for upstream, downstream in syncs:
            # Nearly all syncs take this branch; ``_append`` costs more.
            source_step, target_step = upstream - up, downstream - down
            if 0 < target_step <= source_step:  # not begins_epoch
                ups.append(upstream)
                downs.append(downstream)
            elif source_step or target_step:
                self._append(upstream, downstream)
            up, down = upstream, downstream

    def _append(self, upstream: int, downstream: int) -> None:
        ups, downs, starts = self.upstream, self.downstream, self.starts
        if ups and downstream <= downs[-1]:
            self._step_back(upstream, downstream)
        if not ups or begins_epoch(upstream - ups[-1], downstream - downs[-1]):
            starts.append(len(ups))
        ups.append(upstream)
        downs.append(downstream)

    def _step_back(self, upstream: int, downstream: int) -> None:
        """Remove the syncs that a lower target offset makes doubtful."""
        ups, downs, starts = self.upstream, self.downstream, self.starts
        if len(ups) > 1 and ups[-2] < upstream < ups[-1] and downs[-2] < downstream:
            del ups[-1], downs[-1]
            if starts[-1] == len(ups):
                del starts[-1]
        else:
            del ups[:], downs[:], starts[:]
            self.beginning = Beginning(history=History.LATE)
