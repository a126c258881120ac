"""Which records an epoch may not have copied, although older copies of them may exist.

An older epoch, or a rewind that no sync shows, may have copied records beyond its syncs
(``OlderCopies``). The job needs the older copy of such a record until a newer epoch has provably
copied it again. A newer epoch may lack a copy for one of two reasons:

- It has not come as far yet. The target offsets after the older syncs bound how many records the
  older copies can hold. Where a filter dropped some, these reach further on the source.
- It skipped the record: offsets were altered by Connect's REST API (KIP-875), or a batch was
  retried and landed after the next one. If the target grew by less than the source between two
  syncs, records are missing; if it grew by more, extras can hide that some are. So two things show
  that nothing was skipped: equal steps, or an older epoch that has copied all records between the
  same two source offsets with no more target offsets.

An example: the syncs 0 -> 0 and 100 -> 100, then a rewind 50 -> 121. The first epoch can have
copied 20 records after 100. The second one has copied them again once it comes to 100 and 20
records further.

Where the source's end was read after older copies were made, their records lie below that end: a
record from there on did not exist yet. No such record has one of these older copies.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, chain
from operator import sub
from typing import TYPE_CHECKING, NamedTuple

from airflow_mm2_offsets.core.bounds import lacks_records, lower_bound, may_lack_records

if TYPE_CHECKING:
    from airflow_mm2_offsets.core.epochs import PartitionSyncs

END = 2**63
"""Past the last position."""

Range = tuple[int, int]
"""The source offsets ``[begin, end)``."""


class OlderCopies(NamedTuple):
    """Records that may have been copied without a sync that shows it."""

    upstream: int
    """The records lie after this source offset."""
    offsets: int
    """The copies take at most so many target offsets."""
    reach: int = 0
    """The records lie up to about this source offset, if a filter dropped as large a part of the
    source offsets as before."""
    may_be_skipped: bool = True
    """Whether they may include records that the newer syncs skipped."""
    until: int = END
    """The records lie below this source offset: the source's end, read after they were copied."""


class HiddenRewind(NamedTuple):
    """A possible rewind between two syncs of one epoch, which the epoch has not caught up with."""

    copies: OlderCopies
    """What may have been copied before it."""
    low: int
    """Those copies lie at this target offset or above."""
    end: int
    """Positions from here on need none of those copies."""


class ConnectProgress(NamedTuple):
    """What Connect has committed as copied, when the source held no record after it."""

    upstream: int
    """The last source offset committed."""
    offsets: int
    """How many offsets the target had gained since the newest sync."""


class Epoch:
    """The syncs ``[start, stop)`` of a partition, and which records they may not have copied."""

    def __init__(
        self,
        syncs: "PartitionSyncs",
        bounds: tuple[int, int],
        *,
        older_copies: Sequence[OlderCopies] = (),
        older_epochs: Sequence["Epoch"] = (),
        progress: ConnectProgress | None = None,
    ) -> None:
        """Find which records the epoch may not have copied.

        Args:
            syncs: The syncs of the partition.
            bounds: ``start`` and ``stop``, indexes of syncs.
            older_copies: What was copied before this epoch, and by no epoch before it provably
                copied again.
            older_epochs: The epochs before this one, newest first.
            progress: What Connect has committed; only for the newest epoch.
        """
        self.start, self.stop = bounds
        self._ups, self._downs = syncs.upstream, syncs.downstream
        self._older_epochs = older_epochs
        self._progress = progress
        self.first, self.last = self._ups[self.start], self._ups[self.stop - 1]
        free_offsets = 0  # no epoch follows the newest one
        if self.stop < len(syncs):
            free_offsets = self._downs[self.stop] - self._downs[self.stop - 1] - 1
        self.unsynced = self._copies_after(self.stop - 1, free_offsets)
        """What it may have copied between its last sync and the next epoch's first one."""
        self.uncovered = self.uncovered_of(older_copies, self.start)
        """Ranges of source offsets, rising. Their records may have copies in older epochs only."""
        self.hidden_rewinds = list(self._hidden_rewinds(syncs.surplus_steps))
        """The possible rewinds within the epoch that it has not caught up with."""

    def _copies_after(self, at: int, offsets: int) -> OlderCopies:
        """Return what may have been copied to so many target offsets after a sync."""
        source, target = self._ups[at] - self.first, self._downs[at] - self._downs[self.start]
        dropped = offsets * max(0, source - target) // max(1, target)
        return OlderCopies(self._ups[at], offsets, self._ups[at] + offsets + dropped)

    def _hidden_rewinds(self, surplus_steps: Sequence[int]) -> Iterator[HiddenRewind]:
        first, last = (bisect_left(surplus_steps, at) for at in (self.start, self.stop))
        for at in surplus_steps[first:last]:
            copies = self._copies_after(at, self._downs[at + 1] - self._downs[at] - 1)
            if uncovered := self.uncovered_of([copies], at + 1):
                yield HiddenRewind(copies, lower_bound(self._downs[at]), uncovered[-1][1])

    def uncovered_of(self, older_copies: Sequence[OlderCopies], first: int) -> list[Range]:
        """Return where the syncs from ``first`` on may lack records that have older copies."""
        uncovered: dict[int, int] = {}
        for until in sorted({copies.until for copies in older_copies}):
            some = [copies for copies in older_copies if copies.until == until]
            for begin, end in self._uncovered_of(some, first):
                if begin < until:
                    # Each range begins after a sync, and ends before the next one at the latest.
                    uncovered[begin] = max(uncovered.get(begin, 0), min(end, until))
        return sorted(uncovered.items())

    def _uncovered_of(self, older_copies: Sequence[OlderCopies], first: int) -> Iterator[Range]:
        """Yield the ranges of ``uncovered_of``, wherever on the source the older copies end."""
        last, has_caught_up = first, True
        for copies in older_copies:
            covered = self.covered_at(copies, first)
            if covered is None:
                covered, has_caught_up = self.stop - 1, False
            if copies.may_be_skipped:
                last = max(last, self._after_next_skip(covered, copies))
        yield from self._skipped_ranges(first, last)
        if not has_caught_up:
            yield from self._after_last_sync()

    def covered_at(self, copies: OlderCopies, first: int) -> int | None:
        """Return the sync by which all records of older copies were copied again, if one is.

        The number of records between two syncs is estimated as the smaller one of their steps:
        source offsets without a record make the source's step larger, extras the target's.

        Args:
            copies: The older copies.
            first: The first sync that counts as newer.
        """
        at = bisect_left(self._ups, copies.upstream, first, self.stop)
        if at == self.stop:
            return None
        copied = min(1, self._ups[at] - copies.upstream)
        if copied and at > first:
            copied = max(1, self._records(at - 1) - (copies.upstream - self._ups[at - 1]))
        covered = at
        if copied < copies.offsets:
            counts = self._record_counts
            needed = counts[at - self.start] + copies.offsets - copied
            covered = self.start + bisect_left(counts, needed, at - self.start)
        covered = max(covered, bisect_left(self._ups, copies.reach, at, self.stop))
        return covered if covered < self.stop else None

    def has_copied_all(self, upstream: int, until: int, *, offsets: int) -> bool:
        """Tell whether all records between two source offsets were copied with few target offsets.

        Args:
            upstream: A source offset.
            until: Another one; both must have a sync, and none lies between.
            offsets: The most target offsets that the step may take.
        """
        at = bisect_left(self._ups, upstream, self.start, self.stop)
        if at + 1 >= self.stop or (self._ups[at], self._ups[at + 1]) != (upstream, until):
            return False
        if self._downs[at + 1] - self._downs[at] > offsets:
            return False
        hidden = ((rewind.copies.upstream + 1, rewind.end) for rewind in self.hidden_rewinds)
        open_ranges = chain(self.uncovered, hidden)
        return all(end <= upstream or begin >= until for begin, end in open_ranges)

    def _after_next_skip(self, covered: int, copies: OlderCopies) -> int:
        """Return the sync after the next step that lacks records; ``covered`` without one.

        Older copies may lie in it as well: as many records may have been skipped before they were
        copied, which no sync shows.
        """
        if not copies.offsets:
            return covered
        following = bisect_left(self._lacking, covered)
        return covered if following == len(self._lacking) else self._lacking[following] + 1

    def _skipped_ranges(self, first: int, last: int) -> Iterator[Range]:
        """Yield the source offsets between two syncs where records may have been skipped."""
        ups, downs = self._ups, self._downs
        for at in range(first, last):
            offsets = downs[at + 1] - downs[at]
            if may_lack_records(ups[at + 1] - ups[at], offsets) and not self._older_had_no_more(
                ups[at], ups[at + 1], offsets=offsets
            ):
                yield ups[at] + 1, ups[at + 1]

    def _older_had_no_more(self, upstream: int, until: int, *, offsets: int) -> bool:
        """Tell whether the last older epoch that copied from here took no more target offsets."""
        for older in self._older_epochs:
            if older.last >= until and older.first < until:
                return older.has_copied_all(upstream, until, offsets=offsets)
            if older.first < until and (older.last > upstream or older.unsynced.offsets):
                return False
        return False

    def _after_last_sync(self) -> Iterator[Range]:
        """Yield the source offsets after the last sync that Connect has not committed."""
        if self._progress is None:
            yield self.last + 1, END
        elif lacks_records(self._progress.upstream - self.last, self._progress.offsets):
            yield self.last + 1, self._progress.upstream + 1

    def _records(self, at: int) -> int:
        return min(self._ups[at + 1] - self._ups[at], self._downs[at + 1] - self._downs[at])

    def _steps(self) -> Iterator[Iterator[int]]:
        """Yield the source's steps from sync to sync, then the target's."""
        sides = (side[self.start : self.stop] for side in (self._ups, self._downs))
        return (map(sub, side[1:], side) for side in sides)

    @cached_property
    def _record_counts(self) -> list[int]:
        """About how many records lie between the first sync and each."""
        return list(accumulate(map(min, *self._steps()), initial=0))

    @cached_property
    def _lacking(self) -> list[int]:
        """The index of each sync before a step that lacks records."""
        lacks = map(lacks_records, *self._steps())
        return [at for at, lacking in enumerate(lacks, self.start) if lacking]
