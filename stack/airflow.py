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
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from stack.process import Program, free_ports, stop_all
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRun:
    """One task of a DAG run."""

    task_id: str
    state: str | None
    seconds: float | None
    """How long it took, its wait included; None while it has not ended."""
    pid: int | None
    """The process that runs it."""


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
        if "_api" in vars(self):
            self._api.close()
        stop_all(list(self._programs.values()))

    def wait_dags(self, *dag_ids: str) -> None:
        """Wait until the DAGs have been read from their folder."""
        wait_until(
            lambda: all(self._api.get(f"/dags/{each}").is_success for each in dag_ids),
            f"Airflow to read {', '.join(dag_ids)}",
            seconds=120,
            progress=self.progress,
        )

    def trigger(self, dag_id: str, conf: Mapping[str, Any]) -> str:
        """Start a run and return its id; the id is ours, so asking again starts no second run."""
        run_id = f"manual__{datetime.now(UTC).isoformat()}"
        self._post(
            f"/dags/{dag_id}/dagRuns",
            {"dag_run_id": run_id, "logical_date": None, "conf": dict(conf)},
        )
        return run_id

    def state(self, dag_id: str, run_id: str) -> str | None:
        """Return the state of a run; None where there is no such run."""
        answer = self._api.get(f"/dags/{dag_id}/dagRuns/{run_id}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        return str(answer.raise_for_status().json()["state"])

    def runs(self, dag_id: str) -> list[str]:
        """Return the ids of all runs of a DAG."""
        answer = self._api.get(f"/dags/{dag_id}/dagRuns").raise_for_status()
        return [run["dag_run_id"] for run in answer.json()["dag_runs"]]

    def tasks(self, dag_id: str, run_id: str) -> dict[str, TaskRun]:
        """Return the tasks of a run by their ids."""
        answer = self._api.get(f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances")
        found = answer.raise_for_status().json()["task_instances"]
        return {each["task_id"]: _task_run(each) for each in found}

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> Any:  # noqa: ANN401 - any JSON
        """Return what a task has pushed."""
        answer = self._api.get(
            f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/{key}",
            params={"deserialize": True},
        )
        return answer.raise_for_status().json()["value"]

    def clear(self, dag_id: str, run_id: str, *task_ids: str) -> None:
        """Let tasks, and all that follow them, run again."""
        self._post(
            f"/dags/{dag_id}/clearTaskInstances",
            {
                "dry_run": False,
                "dag_run_id": run_id,
                "task_ids": list(task_ids),
                "include_downstream": True,
                "only_failed": False,
                "reset_dag_runs": True,
            },
        )

    def log(self, dag_id: str, run_id: str, task_id: str) -> str:
        """Return the last lines of a task's newest log."""
        folder = self.home / "logs" / f"dag_id={dag_id}" / f"run_id={run_id}" / f"task_id={task_id}"
        logs = sorted(folder.glob("attempt=*.log"), key=lambda path: path.stat().st_mtime)
        lines = logs[-1].read_text(errors="replace").splitlines() if logs else []
        return "\n".join(map(_readable, lines[-LOG_LINES:]))

    def _post(self, path: str, body: Mapping[str, Any]) -> None:
        """Ask for a change until it is made: on SQLite, requests may lock each other out (500)."""

        def made() -> bool:
            answer = self._api.post(path, json=body)
            if answer.is_server_error:
                self.progress(f"Airflow answered {answer.status_code} to {path}: {answer.text}")
                return False
            if answer.status_code != httpx.codes.CONFLICT:  # made, though its answer was lost
                answer.raise_for_status()
            return True

        wait_until(made, f"Airflow to take {path}", seconds=60, progress=self.progress)

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
    def _api(self) -> httpx.Client:
        return httpx.Client(
            base_url=f"{self.url}/api/v2",
            headers={"Authorization": f"Bearer {self.token(ADMIN)}"},
            timeout=60,
        )

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


def _task_run(found: Mapping[str, Any]) -> TaskRun:
    start, end = found["start_date"], found["end_date"]
    took = (
        (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
        if start and end
        else None
    )
    return TaskRun(
        task_id=found["task_id"], state=found["state"], seconds=took, pid=found.get("pid")
    )


def _readable(line: str) -> str:
    """Return what a line of a task's log says, and the error that it bears."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line
    errors = [f"{each['exc_type']}: {each['exc_value']}" for each in entry.get("error_detail", ())]
    return "\n".join([str(entry.get("event", line)), *errors])
