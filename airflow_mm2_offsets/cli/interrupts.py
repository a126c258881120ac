"""Ends the process at Ctrl-C also while its main thread waits within a library; for ``process``.

Python handles a signal when the main thread comes back from C code. librdkafka may keep it there
for half of ``--timeout``.
"""

import signal
import socket
from collections.abc import Callable
from threading import Event, Thread
from types import FrameType
from typing import NoReturn

_PATIENCE = 0.5
"""Seconds that the main thread has to come back."""


def watch_interrupts(end: Callable[[], object]) -> None:
    """Call ``end`` where an interrupt finds the main thread in C code, and it does not come back.

    It does nothing if SIGINT has another handler: now, as a job that a shell has put into the
    background, or later, as a server. It ends the process at the first interrupt or not at all.

    Args:
        end: Ends the process; another thread calls it.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    came_back = Event()

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        came_back.set()
        raise KeyboardInterrupt

    def watch() -> None:
        while numbers := reading.recv(1):
            is_ours = numbers[0] == signal.SIGINT and signal.getsignal(signal.SIGINT) is interrupt
            if is_ours and not came_back.wait(_PATIENCE):
                end()

    reading, writing = socket.socketpair()
    writing.settimeout(0)  # as Python demands of it
    signal.signal(signal.SIGINT, interrupt)
    # Python's own handler writes the number there at once, whatever the main thread does.
    signal.set_wakeup_fd(writing.detach(), warn_on_full_buffer=False)
    Thread(target=watch, name="interrupts", daemon=True).start()
