"""What a user does with a running Airflow, through its REST API."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from stack.waiting import Progress, quiet, wait_until

PAGE = 100
PARKED = {"deferred", "awaiting_input"}
"""The states of a task that waits for an answer; the second is of Airflow 3.3."""


class UnansweredError(RuntimeError):
    """A run waits for a person, and nobody is here who answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRun:
    """One task of a DAG run."""

    task_id: str
    state: str | None
    seconds: float | None
    """How long it took, its wait included; None while it has not ended."""
    pid: int | None
    """The process that runs it."""
    ended: datetime | None = None
    map_index: int = -1
    """Which of the tasks of this id it is, where a mapped group has several."""


class AirflowApi:
    """Triggers, watches and clears runs.

    Args:
        url: Where Airflow is served.
        token: A bearer's.
        check: Raises where Airflow has been given up.
        progress: Told what is being waited for.
    """

    def __init__(
        self, url: str, token: str, *, check: Callable[[], None], progress: Progress = quiet
    ) -> None:
        """Ask nothing yet."""
        self._check = check
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
            lambda: all(self._ask("GET", f"/dags/{each}").is_success for each in dag_ids),
            f"Airflow to read {', '.join(dag_ids)}",
            progress=self._progress,
        )

    def trigger(self, dag_id: str, conf: Mapping[str, Any]) -> str:
        """Start a run and return its id."""
        body = {"logical_date": None, "conf": dict(conf)}
        return str(self._post(f"/dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def state(self, dag_id: str, run_id: str) -> str | None:
        """Return the state of a run; None if the run does not exist."""
        answer = self._ask("GET", f"/dags/{dag_id}/dagRuns/{run_id}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        return str(answer.raise_for_status().json()["state"])

    def runs(self, dag_id: str) -> list[str]:
        """Return the ids of all runs of a DAG."""
        return [run["dag_run_id"] for run in self._get(f"/dags/{dag_id}/dagRuns")["dag_runs"]]

    def triggered_at(self, dag_id: str, run_id: str) -> datetime:
        """Return when a run was asked for."""
        return datetime.fromisoformat(self._get(f"/dags/{dag_id}/dagRuns/{run_id}")["queued_at"])

    def tasks(self, dag_id: str, run_id: str) -> dict[str, TaskRun]:
        """Return the tasks of a run by their ids."""
        return {each.task_id: each for each in self.instances(dag_id, run_id)}

    def instances(self, dag_id: str, run_id: str) -> list[TaskRun]:
        """Return the tasks of a run; those of a mapped group are several of one id."""
        found: list[TaskRun] = []
        while True:
            # Airflow gives no more than this on one page.
            page = {"limit": PAGE, "offset": len(found)}
            answer = self._get(f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances", **page)
            found += map(_task_run, answer["task_instances"])
            if len(found) >= answer["total_entries"] or not answer["task_instances"]:
                return found

    def xcom(
        self,
        dag_id: str,
        run_id: str,
        task_id: str,
        key: str = "return_value",
        *,
        map_index: int = -1,
    ) -> Any:  # noqa: ANN401 - any JSON
        """Return what a task has pushed."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/{key}"
        return self._get(path, deserialize=True, map_index=map_index)["value"]

    def change_connection(self, conn_id: str, connection: Mapping[str, Any]) -> None:
        """Replace what a connection of the database holds, as its form does."""
        fields = {
            name: json.dumps(to) if name == "extra" else to for name, to in connection.items()
        }
        body = {"connection_id": conn_id, **fields}
        self._ask("PATCH", f"/connections/{conn_id}", json=body).raise_for_status()

    def text(self, path: str) -> str:
        """Return what it answers to a request, whatever that is."""
        return self._ask("GET", path).text

    def clear(self, dag_id: str, run_id: str, *task_ids: str, downstream: bool = True) -> None:
        """Let tasks run again, with all that follow them or alone."""
        self._post(
            f"/dags/{dag_id}/clearTaskInstances",
            {
                "dry_run": False,
                "dag_run_id": run_id,
                "task_ids": list(task_ids),
                "include_downstream": downstream,
                "only_failed": False,
                "reset_dag_runs": True,
            },
        )

    def mark_failed(self, dag_id: str, run_id: str, task_id: str) -> None:
        """End a task as failed, whatever it does."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"
        self._ask("PATCH", path, json={"new_state": "failed"}).raise_for_status()

    def question(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any] | None:
        """Return what a task asks a person; None while it has not asked."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/-1/hitlDetails"
        answer = self._ask("GET", path)
        return dict(answer.json()) if answer.is_success else None

    def answer(self, dag_id: str, run_id: str, task_id: str, option: str) -> None:
        """Answer what a task asks."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/-1/hitlDetails"
        body = {"chosen_options": [option], "params_input": {}}
        self._ask("PATCH", path, json=body).raise_for_status()

    def refuse_questions(self) -> None:
        """See that no run waits for a person.

        Raises:
            UnansweredError: One does; with the task and its question.
        """
        details = self._get("/dags/~/dagRuns/~/hitlDetails", response_received=False)
        for question in details["hitl_details"]:
            task = question["task_instance"]
            if task["state"] in PARKED:
                raise UnansweredError(
                    f"task {task['task_id']} of run {task['dag_run_id']} of {task['dag_id']} "
                    f"asks a person, and nobody answers here: {question['subject']}. Trigger the "
                    "run with approve=never, or answer."
                )

    def _get(self, path: str, **params: int) -> Any:  # noqa: ANN401 - any JSON
        return self._ask("GET", path, params=params).raise_for_status().json()

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        return self._ask("POST", path, json=dict(body)).raise_for_status().json()

    def _ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Ask, and ask again while the API server is being started again."""
        # What may have been heard is said again only where that changes nothing.
        unheard = httpx.TransportError if method == "GET" else httpx.ConnectError
        answers: list[httpx.Response] = []

        def answered() -> bool:
            self._check()
            with suppress(unheard):
                answers.append(self._client.request(method, path, **request))
            return bool(answers)

        wait_until(answered, f"Airflow to answer {path}", progress=self._progress)
        return answers[0]


def _task_run(instance: Mapping[str, Any]) -> TaskRun:
    start, end = instance["start_date"], instance["end_date"]
    took = (
        (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
        if start and end
        else None
    )
    return TaskRun(
        task_id=instance["task_id"],
        state=instance["state"],
        seconds=took,
        pid=instance.get("pid"),
        ended=datetime.fromisoformat(end) if end else None,
        map_index=instance["map_index"],
    )
