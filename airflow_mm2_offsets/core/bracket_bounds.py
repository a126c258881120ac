"""The bounds of the positions of one bracket, and how older and newer copies change them.

``rules`` asks for one position, ``rows`` and ``bulk`` for all.
"""

from typing import NamedTuple

from airflow_mm2_offsets.core.bounds import (
    begins_epoch,
    high_rises_until,
    low_rises_from,
    lower_bound,
)
from airflow_mm2_offsets.core.bracket import SyncBracket, SyncPoint
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.core.result import Basis, Strategy

NEVER_RISES = MAX_OFFSET
"""``low_rises_from`` of a lower bound that is the same for all positions."""


class BracketBounds(NamedTuple):
    """The bounds of a sync's position, or of all positions between two syncs.

    ``low + max(0, p - low_rises_from) <= g(p) <= high - max(0, high_rises_until - p)``; see
    ``bounds``.
    """

    low: int
    """A target offset; BEGINNING if older copies may lie anywhere."""
    low_rises_from: int
    high: int | None
    """None if only the target's end bounds the answer."""
    high_rises_until: int
    basis: Basis

    @classmethod
    def of(cls, bracket: SyncBracket, *, extras: bool) -> "BracketBounds":
        """Return the bounds by the syncs of a bracket.

        Args:
            bracket: The syncs, and the position of ``before`` or any position between the two.
            extras: Whether extras are possible between them; see ``bounds``.
        """
        _, before, after, rewind = bracket
        if before and bracket.is_sync:
            return cls.fixed(before.downstream, before.downstream, Basis.SYNC)
        if after is None:
            # Without any sync there are no segments, so one of the two is always there.
            assert before is not None  # noqa: S101
            return cls.fixed(lower_bound(before.downstream), None, Basis.AFTER_LAST_SYNC)
        if before:
            bounds = cls.between(before, after, extras=extras or begins_epoch(*bracket.steps))
        else:
            # If the target has deleted its beginning, 0 becomes a refusal: the copy may be gone.
            rises_from = NEVER_RISES if extras else low_rises_from(0, *after)
            bounds = cls(0, rises_from, after.downstream, 0, Basis.BEFORE_FIRST_SYNC)
        # If the record of ``after`` was copied again, only the newer copy bounds from above.
        return bounds._replace(high=rewind.downstream, high_rises_until=0) if rewind else bounds

    @classmethod
    def between(cls, before: SyncPoint, after: SyncPoint, *, extras: bool) -> "BracketBounds":
        """Return the bounds of the positions between two syncs, of ints or of numpy arrays.

        Args:
            before: The earlier sync.
            after: The later one.
            extras: Whether extras are possible or proven between them.
        """
        low = lower_bound(before.downstream)
        if extras:
            return cls.fixed(low, after.downstream, Basis.BETWEEN_SYNCS)
        rises_from = low_rises_from(low, *after)
        rises_until = high_rises_until(*before, after.downstream)
        return cls(low, rises_from, after.downstream, rises_until, Basis.BETWEEN_SYNCS)

    @classmethod
    def fixed(cls, low: int, high: int | None, basis: Basis) -> "BracketBounds":
        """Return bounds that are the same for all positions."""
        return cls(low, NEVER_RISES, high, 0, basis)

    def lowered(self, older: int | None) -> "BracketBounds":
        """Return the bounds if ``older`` is the lower bound by older copies; None without any."""
        if older is None:
            return self
        # The upper bound stays: the records may have been copied again since the last sync.
        return BracketBounds(
            min(self.low, older), NEVER_RISES, self.high, self.high_rises_until, Basis.COPYING_AGAIN
        )

    def raised(self, rewind: SyncPoint | None) -> "BracketBounds":
        """Return the bounds if records may have been copied again unseen before a rewind."""
        if rewind is None or self.high is None or self.high > rewind.downstream:
            return self
        return self._replace(high=rewind.downstream, high_rises_until=0)

    def at(self, position: int) -> tuple[int, int | None]:
        """Return the lower and the upper bound of one position."""
        low = max(0, self.low) + max(0, position - self.low_rises_from)
        if self.high is None:
            return low, None
        return low, self.high - max(0, self.high_rises_until - position)


def unsafe_offset(before: SyncPoint, position: int, strategy: Strategy) -> int:
    """Return the answer of strategy linear or kafka at or after a sync; ints, or numpy arrays."""
    past = position - before.upstream
    return before.downstream + (past if strategy is Strategy.LINEAR else past > 0)
