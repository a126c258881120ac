"""The syncs of one partition, in log order, cut into epochs.

Within an epoch both offsets of the syncs rise. An upstream offset that steps back while the
downstream one rises is a rewind: MirrorMaker 2 was restarted and copied records again, so the
highest copy of those is in the newer epoch. A downstream offset that does not rise means that
the target topic was made again: every sync before it speaks of offsets that are gone.

A rewind to after the last sync steps back nowhere. Where the target grew by more than the source
between two syncs of an epoch, one may be hidden: a detour.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.core.stretch import Stretch, SyncPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """A run of syncs ``[start, stop)`` in the arrays of its partition."""

    start: int
    stop: int
    caught_up: bool
    """It has copied all that the earlier epochs may have copied, or there are none."""


class PartitionSyncs:
    """Every usable sync of one partition; immutable, 16 bytes each."""

    __slots__ = ("detours", "downstream", "epochs", "history_cut", "upstream")

    upstream: "array[int]"
    downstream: "array[int]"
    epochs: tuple[Epoch, ...]
    detours: tuple[int, ...]
    """The indexes of the syncs that start a detour which may have come further than the last
    sync, where no source offset is missing."""
    history_cut: bool
    """What was before the first sync is known to be unknown: a topic was made again, or older syncs
    were not kept."""

    def __init__(
        self, syncs: Iterable[tuple[int, int]], *, after: "PartitionSyncs | None" = None
    ) -> None:
        """Index ``syncs``.

        Args:
            syncs: Pairs of upstream and downstream offset, in log order.
            after: What is known already; ``syncs`` continue it.
        """
        self.upstream = array("q", after.upstream if after else ())
        self.downstream = array("q", after.downstream if after else ())
        self.history_cut = after is not None and after.history_cut
        self.detours = after.detours if after else ()
        starts = [epoch.start for epoch in after.epochs] if after else []
        self._extend(syncs, starts)
        self.epochs = self._cut(starts)

    @classmethod
    def of_columns(
        cls,
        upstream: bytes = b"",
        downstream: bytes = b"",
        *,
        starts: Sequence[int] = (),
        detours: Sequence[int] = (),
        history_cut: bool = False,
    ) -> "PartitionSyncs":
        """Take over what was indexed elsewhere; it must be what ``__init__`` makes of the pairs.

        Args:
            upstream: The upstream offsets, in log order, as int64 of this machine.
            downstream: The downstream offsets, likewise: each above the one before.
            starts: The index of the first sync of each epoch, from 0 on.
            detours: See ``detours``.
            history_cut: See ``history_cut``.
        """
        made = cls.__new__(cls)
        made.upstream, made.downstream = array("q", upstream), array("q", downstream)
        made.detours = tuple(detours)
        made.history_cut = history_cut
        made.epochs = made._cut(list(starts))  # noqa: SLF001 - its own
        return made

    def __len__(self) -> int:
        """Return the number of syncs kept."""
        return len(self.upstream)

    def __getitem__(self, index: int) -> SyncPoint:
        """Return the sync at ``index`` in log order."""
        return SyncPoint(self.upstream[index], self.downstream[index])

    def _extend(self, syncs: Iterable[tuple[int, int]], starts: list[int]) -> None:
        ups, downs = self.upstream, self.downstream
        up, down = (ups[-1], downs[-1]) if ups else (MAX_OFFSET, MAX_OFFSET)
        for upstream, downstream in syncs:
            # Nearly all go on from the last, with nothing hidden between: a call would cost more.
            if upstream > up and down < downstream <= down + upstream - up + 1 and not self.detours:
                ups.append(upstream)
                downs.append(downstream)
                up, down = upstream, downstream
            else:
                self._append(upstream, downstream, starts)
                up, down = ups[-1], downs[-1]

    def _append(self, upstream: int, downstream: int, starts: list[int]) -> None:
        ups, downs = self.upstream, self.downstream
        if not ups:
            starts.append(0)
        elif upstream > ups[-1] and downstream > downs[-1]:
            self._follow_detours(upstream, downstream)
        elif self._is_known(upstream, downstream):
            return
        elif downstream > downs[-1]:
            starts.append(len(ups))
        else:
            del ups[:], downs[:]
            starts[:] = [0]
            self.detours = ()
            self.history_cut = True
        ups.append(upstream)
        downs.append(downstream)

    def _is_known(self, upstream: int, downstream: int) -> bool:
        """Tell whether a sync is the last one again, or one that the last one overtook.

        MirrorMaker 2 sends syncs from two threads (``OffsetSyncWriter``); one that lies between
        the last two on both sides says nothing that those do not bound.
        """
        ups, downs = self.upstream, self.downstream
        if upstream == ups[-1] and downstream == downs[-1]:
            return True
        return len(ups) > 1 and ups[-2] < upstream < ups[-1] and downs[-2] < downstream < downs[-1]

    def _follow_detours(self, upstream: int, downstream: int) -> None:
        if self.detours:
            self.detours = tuple(each for each in self.detours if self._tip(each) > upstream)
        if downstream - self.downstream[-1] > upstream - self.upstream[-1] + 1:
            self.detours += (len(self) - 1,)

    def _tip(self, detour: int) -> int:
        """Return the highest source offset that a detour can have copied."""
        return self.upstream[detour] + self.downstream[detour + 1] - self.downstream[detour] - 1

    def _cut(self, starts: list[int]) -> tuple[Epoch, ...]:
        epochs: list[Epoch] = []
        unreached: list[int] = []  # The last syncs of the epochs that may have come further.
        for start, stop in pairwise([*starts, len(self)] if starts else []):
            unreached = [last for last in unreached if not self._outruns(start, stop, last)]
            epochs.append(Epoch(start=start, stop=stop, caught_up=not unreached))
            unreached.append(stop - 1)
        return tuple(epochs)

    def _outruns(self, start: int, stop: int, last: int) -> bool:
        """Tell whether an epoch has copied more records past an earlier epoch's last sync.

        More than lie between that sync and the next on the target, where it may have gone on.
        Between two syncs lie about as many records as the smaller step says: see ``recopies``.
        """
        ups, downs = self.upstream, self.downstream
        unsynced = downs[last + 1] - downs[last] - 1
        at = bisect_left(ups, ups[last], start, stop)
        if at == stop:
            return False
        # Records after the last sync, up to the sync ``at``.
        copied = min(1, ups[at] - ups[last])
        if copied and at > start:
            step = min(ups[at] - ups[at - 1], downs[at] - downs[at - 1])
            copied = max(1, step - (ups[last] - ups[at - 1]))
        while copied < unsynced and at + 1 < stop:
            copied += min(ups[at + 1] - ups[at], downs[at + 1] - downs[at])
            at += 1
        return copied >= unsynced

    @property
    def first(self) -> SyncPoint:
        """The first sync known."""
        return self[0]

    @property
    def last(self) -> SyncPoint:
        """The newest sync."""
        return self[-1]

    def stretches(self, position: int, *, caught_up: bool = False) -> tuple[Stretch, ...]:
        """Return the stretches that decide where ``position`` is, newest first.

        Usually one. While MirrorMaker 2 copies again and has not come as far as before, the
        records that it has yet to reach exist only in older epochs and in detours, so those
        count as well.

        Args:
            position: The next offset to read on the source.
            caught_up: See ``Evidence.caught_up``.
        """
        if caught_up:
            return (self._stretch(position, self.epochs),)
        found = []
        detoured = [each for each in self.detours if self.upstream[each] < position]
        for count in range(len(self.epochs), 0, -1):
            found.append(self._stretch(position, self.epochs[:count]))
            newest = self.epochs[count - 1]
            if newest.caught_up:
                break
            position = max(position, self.upstream[newest.stop - 1] + 1)
        found += (
            Stretch(position=position, floor=self[detour], ceiling=None) for detour in detoured
        )
        return tuple(found)

    def _stretch(self, position: int, epochs: tuple[Epoch, ...]) -> Stretch:
        rewind: SyncPoint | None = None
        for epoch in reversed(epochs):
            first = self[epoch.start]
            if first.upstream <= position:
                after = bisect_right(self.upstream, position, epoch.start, epoch.stop)
                ceiling = self[after] if after < epoch.stop else None
                return _stretch(position, self[after - 1], ceiling, rewind)
            if epoch.start > 0 and (rewind is None or first.upstream < rewind.upstream):
                rewind = first
        return _stretch(position, None, self.first, rewind)


def _stretch(
    position: int, floor: SyncPoint | None, ceiling: SyncPoint | None, rewind: SyncPoint | None
) -> Stretch:
    straddles = rewind and ceiling and ceiling.upstream >= rewind.upstream
    return Stretch(
        position=position, floor=floor, ceiling=ceiling, rewind=rewind if straddles else None
    )
