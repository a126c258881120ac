"""What a user does with a running Airflow, through its REST API."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from stack.waiting import Progress, quiet, wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRun:
    """One task of a DAG run."""

    task_id: str
    state: str | None
    seconds: float | None
    """How long it took, its wait included; None while it has not ended."""
    pid: int | None
    """The process that runs it."""


class AirflowApi:
    """Triggers, watches and clears runs.

    Args:
        url: Where Airflow is served.
        token: A bearer's.
        progress: Told what is being waited for.
    """

    def __init__(self, url: str, token: str, *, progress: Progress = quiet) -> None:
        """Ask nothing yet."""
        self._progress = progress
        self._client = httpx.Client(
            base_url=f"{url}/api/v2", headers={"Authorization": f"Bearer {token}"}, timeout=60
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def wait_dags(self, *dag_ids: str) -> None:
        """Wait until the DAGs have been read from their folder."""
        wait_until(
            lambda: all(self._client.get(f"/dags/{each}").is_success for each in dag_ids),
            f"Airflow to read {', '.join(dag_ids)}",
            seconds=120,
            progress=self._progress,
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
        answer = self._client.get(f"/dags/{dag_id}/dagRuns/{run_id}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        return str(answer.raise_for_status().json()["state"])

    def runs(self, dag_id: str) -> list[str]:
        """Return the ids of all runs of a DAG."""
        answer = self._client.get(f"/dags/{dag_id}/dagRuns").raise_for_status()
        return [run["dag_run_id"] for run in answer.json()["dag_runs"]]

    def tasks(self, dag_id: str, run_id: str) -> dict[str, TaskRun]:
        """Return the tasks of a run by their ids."""
        answer = self._client.get(f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances")
        found = answer.raise_for_status().json()["task_instances"]
        return {each["task_id"]: _task_run(each) for each in found}

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> Any:  # noqa: ANN401 - any JSON
        """Return what a task has pushed."""
        answer = self._client.get(
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

    def _post(self, path: str, body: Mapping[str, Any]) -> None:
        """Ask for a change until it is made: on SQLite, requests may lock each other out (500)."""

        def made() -> bool:
            answer = self._client.post(path, json=body)
            if answer.is_server_error:
                self._progress(f"Airflow answered {answer.status_code} to {path}: {answer.text}")
                return False
            if answer.status_code != httpx.codes.CONFLICT:  # made, though its answer was lost
                answer.raise_for_status()
            return True

        wait_until(made, f"Airflow to take {path}", seconds=60, progress=self._progress)


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
