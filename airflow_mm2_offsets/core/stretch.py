"""Where a position lies between the syncs of its partition."""

from dataclasses import dataclass
from typing import NamedTuple


class SyncPoint(NamedTuple):
    """Source record ``upstream`` was written to target offset ``downstream``."""

    upstream: int
    downstream: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The two neighbouring syncs that a position lies between.

    ``floor.upstream <= position < ceiling.upstream``; a missing floor means that the position
    lies before the first known sync, a missing ceiling that it lies after the last.
    """

    position: int
    floor: SyncPoint | None
    ceiling: SyncPoint | None
    rewind: SyncPoint | None = None
    """The first sync of a newer epoch that copied the ceiling again, where there is one."""

    @property
    def is_sync(self) -> bool:
        """The record at the position has a sync of its own, the floor."""
        return self.floor is not None and self.floor.upstream == self.position

    @property
    def begin(self) -> SyncPoint:
        """The first offset on either side that may hold what the position is known by."""
        if self.floor is None:
            return SyncPoint(0, 0)
        past = 0 if self.is_sync else 1
        return SyncPoint(self.floor.upstream + past, self.floor.downstream + past)

    @property
    def end(self) -> SyncPoint | None:
        """The first sync from the position on whose record is not known to be copied again."""
        return self.floor if self.is_sync else self.rewind or self.ceiling
