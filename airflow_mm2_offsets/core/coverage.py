"""Which records an epoch may not have copied of those that older copies may exist of.

An older epoch, or a rewind that no sync shows, may have copied records that the syncs since have
not provably copied again, for one of two reasons:

- They have not come as far. How many records may lie beyond the older syncs is told by the target
  offsets that follow those (``Threat``).
- They jumped: offsets were altered by Connect's REST API (KIP-875), or a batch was retried and
  landed after the next one. Where the target grew by less than the source from one sync to the
  next, records are missing; where it grew by more, that can hide it. So only equal growth shows
  that nothing was jumped over; or an older epoch that jumped over nothing, and needed no more
  target offsets between the same two neighbouring syncs.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from operator import sub
from typing import TYPE_CHECKING, NamedTuple

from airflow_mm2_offsets.core.bounds import lacks_records, lower_bound, may_lack_records

if TYPE_CHECKING:
    from airflow_mm2_offsets.core.epochs import PartitionSyncs

Range = tuple[int, int]
"""The source offsets ``[begin, end)``."""


class Threat(NamedTuple):
    """Records that may have older copies only."""

    upstream: int
    """They lie after this source offset."""
    offsets: int
    """They took at most so many offsets on the target."""
    may_be_jumped: bool = True
    """Whether those may have been copied that the syncs since have jumped over."""


class HiddenRewind(NamedTuple):
    """What a rewind between two syncs may have copied that those since have not."""

    threat: Threat
    low: int
    """Its copies lie here on the target, or above."""
    end: int
    """Positions from here on need none of them."""


class Copied(NamedTuple):
    """What Connect has noted as copied: all that the source held after the syncs were read."""

    upstream: int
    """The last source offset noted."""
    offsets: int
    """How many offsets the target had gained since the newest sync, when that was noted."""


class Epoch:
    """The syncs ``[start, stop)`` of a partition, and what they leave open."""

    def __init__(
        self,
        syncs: "PartitionSyncs",
        bounds: Range,
        *,
        threats: Sequence[Threat] = (),
        older: Sequence["Epoch"] = (),
        copied: Copied | None = None,
    ) -> None:
        """Look at an epoch.

        Args:
            syncs: Those of the partition.
            bounds: ``start`` and ``stop``.
            threats: What the older epochs leave open.
            older: The older epochs, newest first.
            copied: What Connect has noted, of the newest epoch.
        """
        self.start, self.stop = bounds
        self._ups, self._downs = syncs.upstream, syncs.downstream
        self._older = older
        self._copied = copied
        self._counts: list[int] | None = None
        self.first, self.last = self._ups[self.start], self._ups[self.stop - 1]
        self.unsynced = 0
        """How many offsets lie on the target between its last sync and the next epoch."""
        if self.stop < len(syncs):
            self.unsynced = self._downs[self.stop] - self._downs[self.stop - 1] - 1
        self.exposed = self.exposed_to(threats, self.start)
        """The source offsets whose records may have copies in older epochs only, rising."""
        self.hidden = list(self._hidden_rewinds(syncs.leaps))
        """The rewinds within the epoch that may have copied what it has not."""

    def _hidden_rewinds(self, leaps: Sequence[int]) -> Iterator[HiddenRewind]:
        for at in leaps[bisect_left(leaps, self.start) : bisect_left(leaps, self.stop)]:
            offsets = self._downs[at + 1] - self._downs[at] - 1
            threat = Threat(self._ups[at], offsets)
            if exposed := self.exposed_to([threat], at + 1):
                yield HiddenRewind(threat, lower_bound(self._downs[at]), exposed[-1][1])

    def exposed_to(self, threats: Sequence[Threat], first: int) -> list[Range]:
        """Return which records of ``threats`` the syncs from ``first`` on may not have copied."""
        reached = {threat: self.reaches(threat, first) for threat in threats}
        ends = [
            self.stop - 1 if at is None else at
            for threat, at in reached.items()
            if threat.may_be_jumped
        ]
        jumped = self._jumps(first, max(ends, default=first))
        return [*jumped, *(self._beyond() if None in reached.values() else ())]

    def reaches(self, threat: Threat, first: int) -> int | None:
        """Return the sync by which all that a threat speaks of was copied again, if it was.

        About as many records lie between two syncs as the smaller of their two steps says: source
        offsets without a record make the source's step the larger one, target offsets that copy
        nothing the target's.

        Args:
            threat: The records.
            first: The first sync that counts.
        """
        at = bisect_left(self._ups, threat.upstream, first, self.stop)
        if at == self.stop:
            return None
        copied = min(1, self._ups[at] - threat.upstream)
        if copied and at > first:
            copied = max(1, self._records(at - 1) - (threat.upstream - self._ups[at - 1]))
        if copied >= threat.offsets:
            return at
        counts = self._count()
        needed = counts[at - self.start] + threat.offsets - copied
        reached = self.start + bisect_left(counts, needed, at - self.start)
        return reached if reached < self.stop else None

    def needed_at_most(self, offsets: int, upstream: int, until: int) -> bool:
        """Tell whether it copied all between two neighbouring syncs, with so few target offsets."""
        one = bisect_left(self._ups, upstream, self.start, self.stop)
        if one + 1 >= self.stop or (self._ups[one], self._ups[one + 1]) != (upstream, until):
            return False
        if self._downs[one + 1] - self._downs[one] > offsets:
            return False
        hidden = ((each.threat.upstream + 1, each.end) for each in self.hidden)
        return not any(
            begin < until and end > upstream for begin, end in chain(self.exposed, hidden)
        )

    def _jumps(self, first: int, last: int) -> Iterator[Range]:
        """Yield the source offsets between two syncs where records may have been jumped over."""
        ups, downs = self._ups, self._downs
        for at in range(first, last):
            offsets = downs[at + 1] - downs[at]
            if may_lack_records(ups[at + 1] - ups[at], offsets) and not self._is_known_to_lack(
                offsets, ups[at], ups[at + 1]
            ):
                yield ups[at] + 1, ups[at + 1]

    def _is_known_to_lack(self, offsets: int, upstream: int, until: int) -> bool:
        """Tell whether the last epoch that came by here has found no more records either."""
        for older in self._older:
            if older.last >= until and older.first < until:
                return older.needed_at_most(offsets, upstream, until)
            if older.first < until and (older.last > upstream or older.unsynced):
                return False
        return False

    def _beyond(self) -> Iterator[Range]:
        """Yield the source offsets after the last sync, unless they are known to be copied."""
        last = self._ups[self.stop - 1]
        if self._copied is None:
            yield last + 1, END
        elif lacks_records(self._copied.upstream - last, self._copied.offsets):
            yield last + 1, self._copied.upstream + 1

    def _records(self, at: int) -> int:
        return min(self._ups[at + 1] - self._ups[at], self._downs[at + 1] - self._downs[at])

    def _count(self) -> list[int]:
        """Return about how many records lie from the first sync to each."""
        if self._counts is None:
            sides = [each[self.start : self.stop] for each in (self._ups, self._downs)]
            source, target = (map(sub, side[1:], side) for side in sides)
            self._counts = list(accumulate(map(min, source, target), initial=0))
        return self._counts


END = 2**63
"""Past the last position."""
