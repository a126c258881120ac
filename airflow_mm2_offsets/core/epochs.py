"""The syncs of one partition, in log order, cut into epochs; ``index`` holds them.

Within an epoch both offsets of the syncs rise. An upstream offset that steps back while the
downstream one rises is a rewind: MirrorMaker 2 was restarted and copies records again. If the
downstream offset does not rise, the target topic was recreated: the offsets of all earlier syncs
are gone.

Where the target grows by more than the source between two syncs of an epoch, a rewind may be
hidden: MirrorMaker 2 may have passed the second sync, gone back, and copied again.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

from airflow_mm2_offsets.core.bounds import is_rewind, may_hide_rewind
from airflow_mm2_offsets.core.bracket import BEGINNING, SyncBracket, SyncPoint
from airflow_mm2_offsets.core.coverage import END
from airflow_mm2_offsets.core.duplicates import RewindRun, rewind_runs_of
from airflow_mm2_offsets.core.evidence import RecordWindow
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.core.segments import SearchRange, Segments


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


class PartitionSyncs:
    """Every usable sync of one partition; immutable, 16 bytes each."""

    upstream: "array[int]"
    downstream: "array[int]"
    starts: "array[int]"
    """The index of the first sync of each epoch."""
    surplus_steps: "array[int]"
    """The index of each sync after which a rewind may be hidden; see ``may_hide_rewind``."""
    history: History
    settled_below: int
    """No position needs a copy below this target offset: 0, unless history is cut."""
    last_cut: SyncPoint | None
    """The last sync that an archive has cut before the first one, where it may be of the same
    topics: it tells of a rewind between the two."""
    older_copies_until: int
    """What was copied before the first sync lies below this source offset: the source's end, as an
    archive read it after that sync was written. END if it is not known."""

    def __init__(
        self,
        syncs: Iterable[tuple[int, int]] = (),
        *,
        after: "PartitionSyncs | None" = None,
        history: History = History.UNKNOWN,
        settled_below: int = 0,
        last_cut: SyncPoint | None = None,
        older_copies_until: int = END,
    ) -> None:
        """Index ``syncs``, pairs of upstream and downstream offset in log order.

        If ``after`` is set, they continue its syncs, and the other arguments do not count.
        """
        self.upstream = array("q", after.upstream if after else ())
        self.downstream = array("q", after.downstream if after else ())
        self.starts = array("q", after.starts if after else ())
        self.surplus_steps = array("q", after.surplus_steps if after else ())
        self.history = after.history if after is not None else history
        self.settled_below = after.settled_below if after is not None else settled_below
        self.last_cut = after.last_cut if after is not None else last_cut
        self.older_copies_until = (
            after.older_copies_until if after is not None else older_copies_until
        )
        self._extend(syncs)

    @classmethod
    def of_columns(
        cls,
        upstream: bytes,
        downstream: bytes,
        *,
        starts: Sequence[int],
        surplus_steps: Sequence[int],
        beginning: "PartitionSyncs",
    ) -> "PartitionSyncs":
        """Return the syncs of columns that were indexed elsewhere, exactly as ``__init__`` would.

        Args:
            upstream: The upstream offsets, in log order, as int64 of this machine.
            downstream: The downstream offsets, likewise; they rise.
            starts: See ``starts``.
            surplus_steps: See ``surplus_steps``.
            beginning: Tells what was before the first sync; its own syncs do not count.
        """
        syncs = cls(
            history=beginning.history,
            settled_below=beginning.settled_below,
            last_cut=beginning.last_cut,
            older_copies_until=beginning.older_copies_until,
        )
        syncs.upstream, syncs.downstream = array("q", upstream), array("q", downstream)
        syncs.starts, syncs.surplus_steps = array("q", starts), array("q", surplus_steps)
        return syncs

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
            surplus_steps=self.surplus_steps[: bisect_left(self.surplus_steps, stop - 1)],
            beginning=self,
        )

    def step_range(self, bracket: SyncBracket) -> SearchRange | None:
        """Return the offsets to read between two syncs, to see which records were copied there.

        None if no older epoch has come as far: then no record there has an older copy.
        """
        before, after = bracket.before, bracket.after
        if before is None or after is None:
            return None
        lasts = (self[stop - 1] for _, stop in self.epochs)
        older = (last.upstream for last in lasts if last.downstream < before.downstream)
        if max(older, default=-1) <= bracket.position:
            return None
        return SearchRange(bracket.position, before, after)

    def extend_range(
        self, search: SearchRange, source: RecordWindow, target: RecordWindow
    ) -> SearchRange:
        """Extend a range to the last sync of its epoch that was read and is the same record."""
        at = bisect_left(self.downstream, search.end.downstream)
        epoch = bisect_right(self.starts, at)
        stop = self.starts[epoch] if epoch < len(self.starts) else len(self)
        stop = min(
            bisect_right(self.downstream, target.last, at, stop),
            bisect_right(self.upstream, source.last, at, stop),
        )
        for number in range(stop - 1, at, -1):
            content = source.content_at(self.upstream[number])
            if content is not None and content == target.content_at(self.downstream[number]):
                return search._replace(end=self[number])
        return search

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """Each epoch as the range of its syncs, oldest first."""
        return list(pairwise([*self.starts, len(self)])) if self.starts else []

    @cached_property
    def segments(self) -> Segments:
        """What the syncs say of all positions."""
        return Segments.of(self)

    @cached_property
    def rewinds(self) -> list[RewindRun]:
        """The rewinds before which records may have been copied again unseen, for all positions."""
        return rewind_runs_of(self)

    def _extend(self, syncs: Iterable[tuple[int, int]]) -> None:
        ups, downs = self.upstream, self.downstream
        up, down = (ups[-1], downs[-1]) if ups else (MAX_OFFSET, MAX_OFFSET)
        for upstream, downstream in syncs:
            # Nearly all syncs take this branch; ``_append`` costs more.
            source_step, target_step = upstream - up, downstream - down
            is_forward = source_step > 0 and target_step > 0
            if is_forward and not may_hide_rewind(source_step, target_step):
                ups.append(upstream)
                downs.append(downstream)
                up, down = upstream, downstream
            else:
                self._append(upstream, downstream)
                up, down = ups[-1], downs[-1]

    def _append(self, upstream: int, downstream: int) -> None:
        ups, downs = self.upstream, self.downstream
        if not ups:
            self.starts.append(0)
        elif self._is_known(upstream, downstream):
            return
        elif downstream <= downs[-1]:
            del ups[:], downs[:], self.starts[:], self.surplus_steps[:]
            self.starts.append(0)
            self.history, self.settled_below, self.last_cut = History.LATE, 0, None
            self.older_copies_until = END
        elif is_rewind(upstream - ups[-1], downstream - downs[-1]):
            self.starts.append(len(ups))
        elif may_hide_rewind(upstream - ups[-1], downstream - downs[-1]):
            self.surplus_steps.append(len(ups) - 1)
        ups.append(upstream)
        downs.append(downstream)

    def _is_known(self, upstream: int, downstream: int) -> bool:
        """Tell whether a sync repeats the last one, or was overtaken by it.

        MirrorMaker 2 sends syncs from two threads (``OffsetSyncWriter``). A sync that lies between
        the last two on both sides adds nothing to what those two bound.
        """
        ups, downs = self.upstream, self.downstream
        if upstream == ups[-1] and downstream == downs[-1]:
            return True
        return len(ups) > 1 and ups[-2] < upstream < ups[-1] and downs[-2] < downstream < downs[-1]
