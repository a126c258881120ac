"""Lets a reader rest, for the sake of what its process does beside reading."""

import time

_LEAST_SECONDS = 0.001
_MOST_SECONDS = 0.02


class Pace:
    """Works for a moment, rests for a moment.

    To decode holds Python's lock: a server's answers, each of which needs the lock several times,
    would wait for it again and again while many records are read. A shorter switch interval makes
    each wait shorter, but not rarer; a rest makes none.

    Args:
        rest: How long to rest, as a multiple of the time worked; 0: never.
    """

    def __init__(self, rest: float) -> None:
        """Begin to work."""
        self._rest = rest
        self._since = time.perf_counter()

    def pause(self) -> None:
        """Rest, where that is due: call it after each bit of work, however small."""
        worked = time.perf_counter() - self._since
        if self._rest and worked >= _LEAST_SECONDS:
            time.sleep(min(worked * self._rest, _MOST_SECONDS))
            self._since = time.perf_counter()
