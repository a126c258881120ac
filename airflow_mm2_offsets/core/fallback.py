"""Where a job starts on a partition whose translation is refused; ``planning`` chooses."""

from dataclasses import dataclass
from enum import StrEnum


class OnUnmapped(StrEnum):
    """What to do with a partition whose translation is refused."""

    FAIL = "fail"
    """Refuse the plan."""
    EARLIEST = "earliest"
    """Start at the target's first offset: repeats records, and loses those the target deleted."""
    LATEST = "latest"
    """Start at the target's end: loses every record that the job had yet to read."""
    TIMESTAMP = "timestamp"
    """Start where the target's records are as old as the position, less a margin: may do both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """A target position that was chosen, not proven."""

    kind: OnUnmapped
    position: int
    """The next offset to read on the target."""
    reason: str
    """How it was chosen, with the numbers."""
