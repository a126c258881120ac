"""Finds out whether a storage answers at all, before it is asked for anything.

A storage may take requests and answer none. Its library then waits for a minute, asks again and
again, and does so for each file. A silent storage is found once for all, in seconds.

A mount that hangs is not found: the kernel holds whoever asks for it.
"""

import threading
import time
from contextlib import suppress

from upath import UPath

from airflow_mm2_offsets.locations import LOCAL

ANSWER_SECONDS = 30.0
"""A storage that is slow, or asks its clients to slow down, answers earlier."""
FRESH_SECONDS = 60.0
"""For so long an answer, or that there was none, holds for this process."""

_asked: dict[tuple[str, str], tuple[float, bool]] = {}
"""When each bucket was asked, in seconds of the monotonic clock, and whether it answered."""


def check_answers(location: UPath) -> None:
    """See that the storage of a location answers; an error is an answer, too.

    Raises:
        TimeoutError: It does not answer, or did not a moment ago.
    """
    if (location.protocol or "file") in LOCAL:
        return
    # The token stands for address and credentials, the anchor for the bucket.
    bucket = (str(getattr(location.fs, "_fs_token", id(location.fs))), location.anchor)
    asked, answered = _asked.get(bucket, (float("-inf"), False))
    if time.monotonic() - asked > FRESH_SECONDS:
        answered = _answers(location)
        _asked[bucket] = time.monotonic(), answered
    if not answered:
        raise TimeoutError(f"the storage has not answered within {ANSWER_SECONDS:g} s")


def _answers(location: UPath) -> bool:
    """Ask in a thread that may be left behind: not every library can be told to give up."""
    has_answered = threading.Event()

    def ask() -> None:
        with suppress(Exception):
            location.exists()
        has_answered.set()

    threading.Thread(target=ask, name="storage-answers", daemon=True).start()
    return has_answered.wait(ANSWER_SECONDS)
