"""Ends the programs of a process that has died without ending them, by ``kill -9`` for instance.

The guard is a process of its own. It reads the programs' sessions from a pipe that ends when the
process at its other end does, however that comes about.
"""

import atexit
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from stack import sessions

GRACE_SECONDS = 10
_ROOT = Path(__file__).parent.parent
_lock = threading.Lock()
_guards: list["subprocess.Popen[str]"] = []


def watch(session: int) -> None:
    """Let a session end with this process."""
    _tell(f"+{session}")


def forget(session: int) -> None:
    """Stop watching a session: it has ended, and its id may be reused."""
    _tell(f"-{session}")


def _tell(line: str) -> None:
    with _lock:
        if not _guards:
            _guards.append(_start())
        pipe = _guards[0].stdin
        if pipe is not None:
            with suppress(BrokenPipeError):  # Somebody has killed the guard.
                print(line, file=pipe, flush=True)


def _start() -> "subprocess.Popen[str]":
    guard = subprocess.Popen(
        [sys.executable, "-m", "stack.guard"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=_ROOT,
        text=True,
        start_new_session=True,
    )
    atexit.register(_dismiss, guard)
    return guard


def _dismiss(guard: "subprocess.Popen[str]") -> None:
    """Let the guard end what is left, and wait for it."""
    with suppress(BrokenPipeError):
        guard.communicate()


def main() -> None:
    """Take sessions until the pipe ends, then end those that are left."""
    watched: set[int] = set()
    for line in sys.stdin:
        session = int(line)
        (watched.add if session > 0 else watched.discard)(abs(session))
    sessions.end(watched, grace=GRACE_SECONDS)


if __name__ == "__main__":
    main()
