"""Whether a job carries out the stop that it was asked for: one decision for all its queries."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_SECONDS = 1.0
"""How often queries that wait for the end of a batch look whether the stop is still wanted."""


class StopDecision:
    """Decides once: every query stops, or every query runs on.

    The job announces a stop before its last look at the request. A withdrawal takes the request
    away before it looks for the announcement. So one of the two sees the other, in any order.

    Args:
        is_wanted: Looks at the control location: whether the stop is still asked for.
        announce: Writes to the control location that the job stops (True), or runs on (False).
    """

    def __init__(self, is_wanted: Callable[[], bool], announce: Callable[[bool], None]) -> None:
        """Begin undecided, directly after a look."""
        self._look = is_wanted
        self._announce = announce
        self._decided: bool | None = None
        self._looked = time.monotonic()
        self._deciding = threading.Lock()

    def is_wanted(self) -> bool:
        """Return whether the stop is still wanted; look at the storage only now and then."""
        with self._deciding:
            is_due = time.monotonic() - self._looked >= LOOK_SECONDS
            if self._decided is None and is_due:
                self._looked = time.monotonic()
                if not self._look():
                    self._decided = False
            return self._decided is not False

    def cancel(self) -> None:
        """Let no query wait for its last batch any more: the job ends in another way."""
        with self._deciding:
            self._decided = False

    def carry_out(self) -> bool:
        """Decide, unless that is done: return whether all queries stop. Call it before one ends."""
        with self._deciding:
            if self._decided is None:
                self._announce(True)  # noqa: FBT003 - a callable has no keywords
                self._decided = self._look()
                if not self._decided:
                    self._announce(False)  # noqa: FBT003
            return self._decided
