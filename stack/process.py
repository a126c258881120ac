"""Programs that run beside us: each in a process group of its own, with a log file."""

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from stack.waiting import Progress, WaitTimeoutError, quiet, wait_until

LOG_LINES = 15


class ProgramError(RuntimeError):
    """A program ended, or did not become ready, when it was needed."""


class Program:
    """A program in a process group of its own, so that its children end with it.

    Args:
        name: What messages call it.
        command: The program and its arguments.
        log: The file that its output is appended to; its folder is made.
        env: Variables set beside those of this process.
        cwd: The folder it runs in.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | os.PathLike[str]],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        """Describe the program; nothing runs yet."""
        self.name = name
        self.command = [os.fspath(part) for part in command]
        self.log = log
        self._env = dict(env or {})
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether the program itself has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and return at once."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - the callers' own programs
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | self._env,
                cwd=self._cwd,
                start_new_session=True,
            )

    def wait_ready(
        self, ready: Callable[[], bool], *, seconds: float = 120, progress: Progress = quiet
    ) -> None:
        """Wait until a condition says that the program is ready.

        Raises:
            ProgramError: It ended, or the deadline passed; with the log's last lines.
        """
        try:
            wait_until(
                lambda: self._alive() and ready(), self.name, seconds=seconds, progress=progress
            )
        except WaitTimeoutError as error:
            raise ProgramError(f"{error}; {self._last_words()}") from error

    def wait_end(self, *, seconds: float = 60, progress: Progress = quiet) -> None:
        """Wait until the program has ended by itself.

        Raises:
            ProgramError: It failed, or still runs at the deadline; with the log's last lines.
        """
        try:
            wait_until(
                lambda: not self.running,
                f"{self.name} to end",
                seconds=seconds,
                progress=progress,
            )
        except WaitTimeoutError as error:
            raise ProgramError(f"{error}; {self._last_words()}") from error
        if self._process is not None and self._process.returncode:
            raise self._ended(self._process.returncode)

    def stop(self, *, grace: float = 10) -> None:
        """End the whole group: TERM, and KILL for what is left after `grace` seconds."""
        stop_all([self], grace=grace)

    def kill(self) -> None:
        """End the whole group at once, without a chance to tidy up."""
        if self.signal(signal.SIGKILL) and self._process is not None:
            self._process.wait()
            self._process = None

    def signal(self, number: int) -> bool:
        """Send a signal to the whole group (0: none, only look); tell whether any of it is left."""
        if self._process is None:
            return False
        self._process.poll()  # One that has ended would otherwise stay in its group.
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
            self._process = None  # All of it is gone: the id may become somebody else's.
            return False
        return True

    def _alive(self) -> bool:
        if self._process is not None and (code := self._process.poll()) is not None:
            raise self._ended(code)
        return self._process is not None

    def _ended(self, code: int) -> ProgramError:
        return ProgramError(f"{self.name} ended with code {code}; {self._last_words()}")

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        return f"the last lines of {self.log}:\n" + "\n".join(lines)


def stop_all(programs: Sequence[Program], *, grace: float = 10) -> None:
    """End several programs together: TERM to all, `grace` seconds for all, KILL to the rest."""
    for program in programs:
        program.signal(signal.SIGTERM)
    with suppress(WaitTimeoutError):
        wait_until(lambda: not any(p.signal(0) for p in programs), "an end", seconds=grace)
    for program in programs:
        program.kill()


def free_ports(count: int) -> list[int]:
    """Find loopback ports that nobody uses at this moment, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def accepts(address: str) -> bool:
    """Tell whether something listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1):
            return True
    except OSError:
        return False
