"""Starts programs again that die, as a service manager would."""

import signal
import threading
import time
from collections import deque
from collections.abc import Iterable

from stack.process import Program, ProgramError
from stack.waiting import Progress, quiet

POLL_SECONDS = 0.5
DEATHS = 4
"""So many deaths of one program within the interval, and it is given up."""
INTERVAL_SECONDS = 120.0


class Supervisor:
    """Some programs, each started again when it ends, once what it left running has ended.

    Args:
        programs: What to keep running.
        interval: Within how many seconds four deaths of one program are too many.
        progress: Told of every death.
    """

    def __init__(
        self,
        programs: Iterable[Program],
        *,
        interval: float = INTERVAL_SECONDS,
        progress: Progress = quiet,
    ) -> None:
        """Watch nothing yet."""
        self._deaths = {program: deque[float](maxlen=DEATHS) for program in programs}
        self._interval = interval
        self._progress = progress
        self._failure: ProgramError | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)

    def start(self) -> None:
        """Watch the programs; they have been started."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more; the programs run on."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def kill(self, program: Program) -> None:
        """SIGKILL a program with all that it started; it did not die by itself, so none counts."""
        self._deaths[program].clear()
        program.signal(signal.SIGKILL)

    def check(self) -> None:
        """See that no program was given up.

        Raises:
            ProgramError: One died again and again; with the last lines of its log.
        """
        if self._failure is not None:
            raise self._failure

    def _watch(self) -> None:
        while self._failure is None and not self._stopping.wait(POLL_SECONDS):
            for program in self._deaths:
                if death := program.death:
                    self._revive(program, death)

    def _revive(self, program: Program, death: ProgramError) -> None:
        """Start a program again, or give it up."""
        deaths = self._deaths[program]
        deaths.append(time.monotonic())
        if len(deaths) == DEATHS and deaths[-1] - deaths[0] < self._interval:
            self._failure = ProgramError(f"{DEATHS} times in a row, {death}")
            return
        self._progress(f"{program.name} died and is started again; {program.log} says why")
        program.kill()
        program.start()
