"""Waiting by condition: with a deadline, and with a word now and then on what is awaited."""

import time
from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str], None]
"""Takes one line of text about what is being waited for and for how long."""

POLL_SECONDS = 0.1
PATIENCE = 600.0
"""Seconds: on a busy machine nothing is quick, and a deadline is for what never comes."""
REPORT_SECONDS = 5.0


class WaitTimeoutError(TimeoutError):
    """A condition did not come true before its deadline."""


def quiet(_line: str) -> None:
    """Report nothing."""


def wait_until(
    condition: Callable[[], bool],
    what: str,
    *,
    seconds: float = PATIENCE,
    progress: Progress = quiet,
) -> float:
    """Poll a condition until it is true.

    Args:
        condition: Asked every 0.1 s; what it raises ends the wait.
        what: The thing awaited, as in "waiting for WHAT".
        seconds: The deadline.
        progress: Called every 5 s while the wait lasts.

    Returns:
        The seconds it took.

    Raises:
        WaitTimeoutError: The deadline passed.
    """
    begin = time.monotonic()
    reported = begin
    while not condition():
        now = time.monotonic()
        if now - begin > seconds:
            raise WaitTimeoutError(f"waited {seconds:.0f} s in vain for {what}")
        if now - reported >= REPORT_SECONDS:
            progress(f"waiting for {what}: {now - begin:.0f} s")
            reported = now
        time.sleep(POLL_SECONDS)
    return time.monotonic() - begin
