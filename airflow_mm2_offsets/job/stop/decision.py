"""Decides whether a job carries out a requested stop: one decision for all its queries.

The lease makes it; each query's thread asks it.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_SECONDS = 1.0
"""How often queries that wait for the end of a batch look whether the stop still counts."""


class StopDecision:
    """Decides once: every query stops, or every query runs on.

    The job announces a stop before its last look at the fence. A withdrawal writes an open fence
    before it looks for the announcement. So in any order, at least one of the two sees the other.

    Args:
        look: Reads from the control location whether the stop is still asked for; None if the
            location can't be read.
        announce: Writes to the control location that the job stops (True), or runs on (False);
            returns whether it could.
    """

    def __init__(self, look: Callable[[], bool | None], announce: Callable[[bool], bool]) -> None:
        """Begin undecided, directly after a look."""
        self._look = look
        self._announce = announce
        self._decided: bool | None = None
        self._looked = time.monotonic()
        self._deciding = threading.Lock()
        self._cancelled = threading.Event()

    def is_valid(self) -> bool:
        """Return whether the stop still counts; look at the storage only now and then."""
        with self._deciding:
            is_due = time.monotonic() - self._looked >= LOOK_SECONDS
            if self._decided is None and is_due:
                self._looked = time.monotonic()
                if self._look() is False:
                    self._decided = False
            return self._decided is not False

    def cancel(self) -> None:
        """Let queries stop waiting for their last batch: the job ends in another way."""
        self._cancelled.set()
        with self._deciding:
            self._decided = False

    def carry_out(self) -> bool:
        """Decide once, before the first query ends, and return whether all queries stop.

        As long as the storage fails, nothing is decided, and no query ends: a stop that could not
        be announced may have been withdrawn.
        """
        with self._deciding:
            while self._decided is None:
                self._decide()
            return self._decided

    def _decide(self) -> None:
        is_announced = self._announce(True)  # noqa: FBT003 - a callable has no keywords
        is_asked = self._look()
        if is_asked and is_announced:
            self._decided = True
        elif is_asked is False or self._cancelled.wait(LOOK_SECONDS):
            self._announce(False)  # noqa: FBT003
            self._decided = False
