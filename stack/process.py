"""Programs that run beside us, each in its own session and with a log file."""

import os
import socket
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from stack import guard, sessions
from stack.waiting import PATIENCE, Progress, WaitTimeoutError, quiet, wait_until

LOG_LINES = 15


class ProgramError(RuntimeError):
    """A program ended, or did not become ready, when it was needed."""


class Program:
    """A program in its own session, so that its children end with it, and it ends with us.

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
        guard.watch(self._process.pid)

    def wait_ready(
        self, ready: Callable[[], bool], *, seconds: float = PATIENCE, progress: Progress = quiet
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

    def wait_end(self, *, seconds: float = PATIENCE, progress: Progress = quiet) -> None:
        """Wait until the program has ended by itself, and end what it left running.

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
        code = self._process and self._process.returncode
        self.kill()
        if code:
            raise self._ended(code)

    def stop(self, *, grace: float = 10) -> None:
        """End it and all that it started: TERM, and KILL for what is left after `grace` seconds."""
        stop_all([self], grace=grace)

    def kill(self) -> None:
        """End it and all that it started at once, without a chance to tidy up."""
        stop_all([self], grace=0)

    def signal(self, number: int) -> None:
        """Send a signal to it and all that it started."""
        if (session := self.session) is not None:
            sessions.send(number, [session])

    @property
    def session(self) -> int | None:
        """The id of its session; None where it was not started, or has ended whole."""
        process = self._process  # A supervisor's thread may change it meanwhile.
        return None if process is None else process.pid

    def forget(self) -> None:
        """Forget its processes: all have ended, and their ids may be reused."""
        if self._process is not None:
            self._process.wait()
            guard.forget(self._process.pid)
            self._process = None

    @property
    def death(self) -> ProgramError | None:
        """How it ended, with the log's last lines; None while it runs, or does not know."""
        process = self._process  # Another thread may change it meanwhile.
        code = None if process is None else process.poll()
        return None if code is None else self._ended(code)

    def _alive(self) -> bool:
        if death := self.death:
            raise death
        return self._process is not None

    def _ended(self, code: int) -> ProgramError:
        return ProgramError(f"{self.name} ended with code {code}; {self._last_words()}")

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        return f"the last lines of {self.log}:\n" + "\n".join(lines)


def stop_all(programs: Iterable[Program], *, grace: float = 10) -> None:
    """End several programs together: TERM to all, `grace` seconds for all, KILL to the rest."""
    started = {each.session: each for each in programs}
    sessions.end({session for session in started if session is not None}, grace=grace)
    for program in started.values():
        program.forget()


def free_ports(count: int) -> list[int]:
    """Find different loopback ports that are free at this moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def refuse_taken(addresses: Mapping[str, str]) -> None:
    """See that nothing listens where servers are to listen.

    Args:
        addresses: What is to listen, and its HOST:PORT.

    Raises:
        ProgramError: Something does; each address is named.
    """
    taken = [f"{address} ({name})" for name, address in addresses.items() if accepts(address)]
    if taken:
        raise ProgramError(
            f"something listens already at {', '.join(taken)}: stop it, or what was left of an "
            "earlier run; `ss -ltnp` names it"
        )


def accepts(address: str) -> bool:
    """Tell whether something listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1):
            return True
    except OSError:
        return False
