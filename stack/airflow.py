"""Airflow for a demo or a test: its parts on loopback alone, on PostgreSQL.

``airflow standalone`` serves its logs to every address of the machine, and does not start a part
again that has died.
"""

import json
import os
import secrets
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from stack.airflow_api import AirflowApi
from stack.postgres import Postgres
from stack.process import Program, free_ports, refuse_taken, stop_all
from stack.supervisor import Supervisor
from stack.waiting import Progress, quiet, wait_until

_PARTS: Mapping[str, tuple[str, ...]] = {
    "api-server": ("--host", "127.0.0.1"),
    "scheduler": ("--skip-serve-logs",),
    "dag-processor": (),
    "triggerer": ("--skip-serve-logs",),
}
ADMIN, VIEWER = "admin", "viewer"
"""The users, each with the role that its name says."""
LOG_LINES = 30


class Airflow:
    """An Airflow with its own home folder, an administrator, and a user with read access.

    Args:
        home: AIRFLOW_HOME; its database and logs are in it.
        dags: The folder of DAGs.
        connections: Connection ids and what each holds, as Airflow's JSON; given as variables.
        kept_connections: Likewise; kept in its database, encrypted.
        env: Variables for every part, and so for every task.
        port: The port of API and UI; a free one where None.
        parts: Which parts of it run.
        progress: Told what is being waited for.
    """

    def __init__(
        self,
        home: Path,
        dags: Path,
        *,
        connections: Mapping[str, Mapping[str, Any]],
        kept_connections: Mapping[str, Mapping[str, Any]] | None = None,
        env: Mapping[str, str],
        port: int | None = None,
        parts: Iterable[str] = tuple(_PARTS),
        progress: Progress = quiet,
    ) -> None:
        """Choose the port; nothing runs yet."""
        self.home = home
        self.progress = progress
        self.url = f"http://127.0.0.1:{port or free_ports(1)[0]}"
        self._postgres = Postgres(home / "postgres", progress=progress)
        self._env = {
            **_settings(home, dags, self.url, self._postgres.url),
            **{f"AIRFLOW_CONN_{name.upper()}": json.dumps(to) for name, to in connections.items()},
            **env,
        }
        self._migrate = self._program("migrate", "db", "migrate")
        self._kept_connections = kept_connections or {}
        self._parts = {part: self._program(part, part, *_PARTS[part]) for part in parts}
        watched = [self._postgres.program, *self._parts.values()]
        self._supervisor = Supervisor(watched, progress=progress)

    def start_database(self) -> None:
        """Begin to make the database, and return while its tables are still being made.

        Raises:
            ProgramError: The port is taken, or PostgreSQL does not start.
        """
        refuse_taken({"Airflow": self.url.removeprefix("http://")})
        self._postgres.start()
        self._migrate.start()

    def start(self) -> None:
        """Make the database, start every part, and wait until all are healthy."""
        if self._migrate.session is None:
            self.start_database()
        self._migrate.wait_end(progress=self.progress)
        if self._kept_connections:
            self._import_connections()
        for part in self._parts.values():
            part.start()
        self._supervisor.start()
        self._wait_healthy(since=datetime.now(UTC))

    def _import_connections(self) -> None:
        """Keep connections in the database, from a file that is removed then."""
        file = self.home / "connections.json"
        file.write_text(json.dumps(self._kept_connections))
        program = self._program("import", "connections", "import", str(file))
        program.start()
        try:
            program.wait_end(progress=self.progress)
        finally:
            file.unlink()

    def stop(self) -> None:
        """Stop every part, and the tasks and Spark drivers that they run."""
        if "api" in vars(self):
            self.api.close()
        self._supervisor.stop()
        stop_all([self._migrate, *self._parts.values()])
        self._postgres.program.stop()

    def check(self) -> None:
        """See that no part was given up.

        Raises:
            ProgramError: One died again and again; with the last lines of its log.
        """
        self._supervisor.check()

    def kill(self, part: str) -> None:
        """SIGKILL a part, with all that it runs, and wait until it is back.

        The scheduler dies with its workers and their tasks, as with a container. Workers that
        outlive it would keep its connection to the database, and with that its locks: the next
        scheduler then schedules nothing of a run that was locked.
        """
        killed = datetime.now(UTC)
        self._supervisor.kill(self._parts[part])
        self._wait_healthy(since=killed)

    @property
    def database(self) -> str:
        """The URL of its database; it holds the password."""
        return self._postgres.url

    def logs(self, dag_id: str, run_id: str) -> Path:
        """Return the folder of the logs of a run."""
        return self.home / "logs" / f"dag_id={dag_id}" / f"run_id={run_id}"

    def log(self, dag_id: str, run_id: str, task_id: str) -> str:
        """Return the last lines of a task's newest log."""
        folder = self.logs(dag_id, run_id) / f"task_id={task_id}"
        logs = sorted(folder.glob("attempt=*.log"), key=lambda path: path.stat().st_mtime)
        lines = logs[-1].read_text(errors="replace").splitlines() if logs else []
        return "\n".join(map(_readable, lines[-LOG_LINES:]))

    @property
    def login(self) -> tuple[str, str]:
        """User and password of the administrator."""
        return ADMIN, self.password(ADMIN)

    def token(self, user: str) -> str:
        """Log in, and return what a bearer presents."""
        answer = httpx.post(
            f"{self.url}/auth/token",
            json={"username": user, "password": self.password(user)},
            timeout=30,
        )
        return str(answer.raise_for_status().json()["access_token"])

    def password(self, user: str) -> str:
        """Return the password that Airflow has made for a user."""
        file = self.home / "simple_auth_manager_passwords.json.generated"
        return str(json.loads(file.read_text())[user])

    @cached_property
    def api(self) -> AirflowApi:
        """Its REST API, as the administrator."""
        return AirflowApi(self.url, self.token(ADMIN), check=self.check, progress=self.progress)

    def _wait_healthy(self, since: datetime) -> None:
        """Wait until every part has given a sign of life since a moment."""

        def healthy() -> bool:
            self.check()
            return self._healthy(since)

        what = f"Airflow, whose logs are in {self.home}"
        wait_until(healthy, what, progress=self.progress)

    def _healthy(self, since: datetime) -> bool:
        try:
            health = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=10).json()
        except (httpx.HTTPError, ValueError):
            return False
        return health.get("metadatabase", {}).get("status") == "healthy" and all(
            _alive(health, part.replace("-", "_"), since)
            for part in self._parts
            if part != "api-server"
        )

    def _program(self, name: str, *command: str) -> Program:
        return Program(
            f"Airflow's {name}",
            [sys.executable, "-m", "airflow", *command],
            log=self.home / "parts" / f"{name}.log",
            env=self._env,
        )


def _alive(health: Mapping[str, Any], part: str, since: datetime) -> bool:
    beat = health.get(part, {}).get(f"latest_{part}_heartbeat")
    return beat is not None and datetime.fromisoformat(beat) >= since


def _settings(home: Path, dags: Path, url: str, database: str) -> dict[str, str]:
    programs = Path(sys.executable).parent
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database,
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{ADMIN}:admin,{VIEWER}:viewer",
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__PORT": url.rpartition(":")[2],
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        # A file that changes is parsed at once. All, each 30 seconds, take a third of a core.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "120",
        # A run that waits five minutes for its retry holds up the next of the same DAG.
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "10",
        # The tasks of a killed scheduler run again after a minute, not after five.
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "60",
        # spark-submit of the same environment comes first.
        "PATH": f"{programs}:{os.environ['PATH']}",
    }


def _readable(line: str) -> str:
    """Return what a line of a task's log says, and the error that it bears."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line
    errors = [f"{each['exc_type']}: {each['exc_value']}" for each in entry.get("error_detail", ())]
    return "\n".join([str(entry.get("event", line)), *errors])
