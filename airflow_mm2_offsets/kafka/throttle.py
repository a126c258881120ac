"""Slows a reader down, so that other threads of its process can run.

``kafka.drain`` and ``kafka.syncs`` use it for the REST server.
"""

import time

_MIN_WORK_SECONDS = 0.001
_MAX_SLEEP_SECONDS = 0.02


class Throttle:
    """Sleeps in proportion to the time that the caller has worked.

    Decoding holds Python's lock. While many records are read, each answer of a server would wait
    for the lock several times. A shorter switch interval makes each wait shorter, but not rarer.
    While the reader sleeps, no answer waits.

    Args:
        ratio: How long to sleep, as a multiple of the time worked; 0: never.
    """

    def __init__(self, ratio: float) -> None:
        """Begin to measure the work."""
        self._ratio = ratio
        self._since = time.perf_counter()

    def pause(self) -> None:
        """Sleep, if enough work was done: call it after each piece of work, however small."""
        worked = time.perf_counter() - self._since
        if self._ratio and worked >= _MIN_WORK_SECONDS:
            time.sleep(min(worked * self._ratio, _MAX_SLEEP_SECONDS))
            self._since = time.perf_counter()
