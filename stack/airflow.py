"""Airflow for a demo or a test: the parts of ``airflow standalone``, on loopback alone.

``airflow standalone`` itself also serves its logs to every address of the machine.
"""

import json
import os
import secrets
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from stack.airflow_api import AirflowApi
from stack.process import Program, free_ports, stop_all
from stack.waiting import Progress, quiet

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
    """An Airflow with a home of its own, an administrator, and a user who may only look.

    Args:
        home: AIRFLOW_HOME; its database and logs are in it.
        dags: The folder of DAGs.
        connections: Connection ids and what each holds, as Airflow's JSON.
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
        env: Mapping[str, str],
        port: int | None = None,
        parts: Iterable[str] = tuple(_PARTS),
        progress: Progress = quiet,
    ) -> None:
        """Choose the port; nothing runs yet."""
        self.home = home
        self.progress = progress
        self.url = f"http://127.0.0.1:{port or free_ports(1)[0]}"
        self._env = {
            **_settings(home, dags, self.url),
            **{f"AIRFLOW_CONN_{name.upper()}": json.dumps(to) for name, to in connections.items()},
            **env,
        }
        self._programs = {part: self._program(part, part, *_PARTS[part]) for part in parts}

    def start(self) -> None:
        """Make the database, start every part, and wait until all are healthy."""
        migrate = self._program("migrate", "db", "migrate")
        migrate.start()
        migrate.wait_end(seconds=180, progress=self.progress)
        _let_readers_be(self.home / "airflow.db")
        for program in self._programs.values():
            program.start()
        self._programs["api-server"].wait_ready(self._healthy, seconds=180, progress=self.progress)

    def stop(self) -> None:
        """Stop every part, and the tasks and Spark drivers that they run."""
        if "api" in vars(self):
            self.api.close()
        stop_all(list(self._programs.values()))

    def log(self, dag_id: str, run_id: str, task_id: str) -> str:
        """Return the last lines of a task's newest log."""
        folder = self.home / "logs" / f"dag_id={dag_id}" / f"run_id={run_id}" / f"task_id={task_id}"
        logs = sorted(folder.glob("attempt=*.log"), key=lambda path: path.stat().st_mtime)
        lines = logs[-1].read_text(errors="replace").splitlines() if logs else []
        return "\n".join(map(_readable, lines[-LOG_LINES:]))

    @property
    def login(self) -> tuple[str, str]:
        """User and password of the administrator."""
        return ADMIN, self._password(ADMIN)

    def token(self, user: str) -> str:
        """Log in, and return what a bearer presents."""
        answer = httpx.post(
            f"{self.url}/auth/token",
            json={"username": user, "password": self._password(user)},
            timeout=30,
        )
        return str(answer.raise_for_status().json()["access_token"])

    def _password(self, user: str) -> str:
        file = self.home / "simple_auth_manager_passwords.json.generated"
        return str(json.loads(file.read_text())[user])

    @cached_property
    def api(self) -> AirflowApi:
        """Its REST API, as the administrator."""
        return AirflowApi(self.url, self.token(ADMIN), progress=self.progress)

    def _healthy(self) -> bool:
        try:
            health = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=10).json()
        except (httpx.HTTPError, ValueError):
            return False
        asked = ("metadatabase", *(part.replace("-", "_") for part in self._programs))
        return all(
            health.get(part, {}).get("status") == "healthy"
            for part in asked
            if part != "api_server"
        )

    def _program(self, name: str, *command: str) -> Program:
        return Program(
            f"Airflow's {name}",
            [sys.executable, "-m", "airflow", *command],
            log=self.home / "parts" / f"{name}.log",
            env=self._env,
        )


def _settings(home: Path, dags: Path, url: str) -> dict[str, str]:
    programs = Path(sys.executable).parent
    return {
        "AIRFLOW_HOME": str(home),
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
        # spark-submit of the same environment comes first.
        "PATH": f"{programs}:{os.environ['PATH']}",
    }


def _let_readers_be(database: Path) -> None:
    """Let a writer of the database wait for other writers alone; the file remembers it."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")


def _readable(line: str) -> str:
    """Return what a line of a task's log says, and the error that it bears."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line
    errors = [f"{each['exc_type']}: {each['exc_value']}" for each in entry.get("error_detail", ())]
    return "\n".join([str(entry.get("event", line)), *errors])
