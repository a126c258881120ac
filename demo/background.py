"""``up`` and ``down``: the demo in a background process that outlives the command."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stack.waiting import Progress, wait_until

READY = "READY"


class AlreadyUpError(RuntimeError):
    """Another process serves the demo already."""


class Background:
    """The one process that serves; it holds a lock on its pid file as long as it lives."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        """Keep its files in ``folder``."""
        folder.mkdir(parents=True, exist_ok=True)
        self._pid_file = folder / "serve.pid"
        self._log = folder / "serve.log"
        self._progress = progress

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        try:
            with self.locked():
                return False
        except AlreadyUpError:
            return True

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the one process that serves.

        Raises:
            AlreadyUpError: Another process holds it.
        """
        with self._pid_file.open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise AlreadyUpError(f"it is up already, see {self._log}") from error
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def up(self) -> bool:
        """Start the process and print its output until it is ready; return whether it is."""
        if self.running:
            self._progress(f"it is up already, see {self._log}; `make down` stops it")
            return False
        with self._log.open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "demo", "serve"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            return self._follow(process)
        except BaseException:
            process.terminate()
            process.wait()
            raise

    def _follow(self, process: subprocess.Popen[bytes]) -> bool:
        """Print the output of the process until it is ready; return whether it is."""
        with self._log.open() as log:
            while True:
                ended = process.poll() is not None  # Before the read: after its end no line comes.
                if line := log.readline():
                    print(line, end="", flush=True)  # noqa: T201 - the output of the other process
                    if line.strip().endswith(READY):
                        return True
                elif ended:
                    return False
                else:
                    time.sleep(0.1)

    def down(self) -> None:
        """Stop the process and everything it started; wait until it has ended."""
        if not self.running:
            self._progress("nothing is up")
            return
        os.kill(int(self._pid_file.read_text()), signal.SIGTERM)
        wait_until(
            lambda: not self.running, "the process to end", seconds=120, progress=self._progress
        )
        self._progress("all is down")
