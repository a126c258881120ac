"""The two neighbouring offset syncs that a position lies between; ``segments`` finds them."""

from typing import NamedTuple

from airflow_mm2_offsets.core.bounds import lower_bound

BEGINNING = -1
"""A lower bound: the target's beginning. The answer is 0, or a refusal where history is cut."""


END = 2**63
"""Past the last position."""


class SyncPoint(NamedTuple):
    """Source record ``upstream`` was written to target offset ``downstream``."""

    upstream: int
    downstream: int


def steps_between(before: SyncPoint, after: SyncPoint) -> tuple[int, int]:
    """Return by how many offsets source and target grow from one sync to another."""
    return after.upstream - before.upstream, after.downstream - before.downstream


class SyncBracket(NamedTuple):
    """The syncs around a position: ``before.upstream <= position < after.upstream``.

    Without ``before`` the position lies before the first known sync, without ``after`` it lies
    after the last one.
    """

    position: int
    """The next offset to read on the source."""
    before: SyncPoint | None
    after: SyncPoint | None
    rewind: SyncPoint | None = None
    """The first sync of the newer epoch that copied the record of ``after`` again, if any."""

    @property
    def is_sync(self) -> bool:
        """Whether the record at the position has a sync: then it is ``before``."""
        return self.before is not None and self.before.upstream == self.position

    @property
    def steps(self) -> tuple[int, int]:
        """By how many offsets source and target grow between the two syncs; both must exist."""
        assert self.before is not None  # noqa: S101
        assert self.after is not None  # noqa: S101
        return steps_between(self.before, self.after)

    @property
    def low(self) -> int:
        """The lower bound by ``before`` alone: a target offset, or BEGINNING without it."""
        if self.before is None:
            return BEGINNING
        return self.before.downstream if self.is_sync else lower_bound(self.before.downstream)

    @property
    def begin(self) -> SyncPoint:
        """The first source and target offset that may hold the record at the position."""
        if self.before is None:
            return SyncPoint(0, 0)
        past = 0 if self.is_sync else 1
        return SyncPoint(self.before.upstream + past, self.before.downstream + past)

    @property
    def end(self) -> SyncPoint | None:
        """The first sync from the position on whose record was not copied again by ``rewind``."""
        return self.before if self.is_sync else self.rewind or self.after
