"""The steps of a failover between secured clusters, and all that they answer and leave."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx

from airflow_mm2_offsets.core import FailoverPlan
from demo.environment import TOPIC
from demo.failover import ARCHIVE, FAILOVER, STREAM, VERIFY, VERIFY_DAG, Failover
from demo.report import Report
from tests.e2e import sweep
from tests.e2e.canaries import Canaries
from tests.e2e.secured import WRONG, SecuredDemo

PLANTED = "planted"
"""A canary that is put where it must be found."""
FAILED = {"failed", "up_for_retry"}
PLAN = "/api/v1/offsets/plan"
COMMANDS = {"check": (), "doctor": ("--topic", "orders")}
"""They read the archive, too, and so have the rights of its row."""
EVENT_LOGS = "/eventLogs?limit=1000"


@dataclass(frozen=True, kw_only=True)
class SecuredRun:
    """A failover that has ended."""

    report: Report
    answers: dict[str, dict[str, Any]]
    """What each command and each REST service answered."""
    verified: str | None
    """How the task verify ended with the rights of a reconciliation alone."""
    watch: sweep.ProcessWatch
    files: sweep.Findings
    tables: sweep.Findings
    texts: sweep.Findings

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Carry out the failover, ask every service, and look for the canaries."""
        canaries = Canaries()
        secured = SecuredDemo(folder, canaries)
        with sweep.ProcessWatch(canaries) as watch, secured.demo as demo:
            steps = _Steps(secured, canaries.make(PLANTED))
            report = steps.move()
            answers = steps.ask_services(report.plan) | steps.run_commands()
            verified = steps.verify_again()
            steps.read_airflow()
            for number, token in enumerate(secured.stack.tokens.issued):
                canaries.add(f"access token {number}", token)
            tables = sweep.in_database(canaries, demo.airflow.database)
        return cls(
            report=report,
            answers=answers,
            verified=verified,
            watch=watch,
            files=sweep.in_files(canaries, [folder], secured.secret_places),
            tables=tables,
            texts=sweep.in_texts(canaries, steps.texts.items()),
        )


class _Steps:
    """The steps, in their order."""

    def __init__(self, secured: SecuredDemo, planted: str) -> None:
        self.secured = secured
        self.demo = secured.demo
        self.api = self.demo.airflow.api
        self.failover = Failover(self.demo)
        self.planted = planted
        self.texts: dict[str, str] = {}
        """What was answered, by what was asked."""

    def move(self) -> Report:
        """Carry out the failover with the rights of its rows; its first try has a wrong login."""
        failover = self.failover
        self.secured.let_do_only("failover", "archive")
        self._start_wrong_job()
        failover.start_stream()
        archived = self.api.trigger(ARCHIVE, {"job": TOPIC})
        self.demo.wait("the archive", lambda: failover.has_ended(ARCHIVE, archived))
        self.api.change_connection("kafka_source", self.secured.wrong_login())
        failover.trigger(approve="never")
        self.demo.wait(
            "the failed try", lambda: self.api.state(FAILOVER, failover.run_id) == "failed"
        )
        self.api.change_connection("kafka_source", self.secured.right_login())
        self.api.clear(FAILOVER, failover.run_id, "check")
        failover.wait_for_task("translate")
        failover.move_producer()
        failover.wait_for_end()
        failover.catch_up()
        failover.verify()
        return failover.report()

    def _start_wrong_job(self) -> None:
        """Let a job fail whose file of properties has a wrong password."""
        folder = self.demo.folder / "wrong-job"
        conf = {"kafka_conn_id": WRONG, "folder": str(folder), "output": str(folder / self.planted)}
        run_id = self.api.trigger(STREAM, conf)
        self._wait_failed(STREAM, run_id, "stream")
        self.api.mark_failed(STREAM, run_id, "stream")

    def _wait_failed(self, dag_id: str, run_id: str, task_id: str) -> None:
        self.demo.wait(
            f"{task_id} to fail",
            lambda: self.api.tasks(dag_id, run_id)[task_id].state in FAILED,
        )

    def ask_services(self, plan: FailoverPlan) -> dict[str, dict[str, Any]]:
        """Let the plugin, and then ``serve`` with its rights alone, translate the positions."""
        airflow = self.demo.airflow
        headers = {"Authorization": f"Bearer {airflow.token('admin')}"}
        url = f"{airflow.url}/mm2-offsets"
        with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
            answers = {"plugin": self._ask_plan(client, plan), "pages": self._open_pages(client)}
        self.secured.let_do_only("serve")
        with self.secured.serving() as client:
            answers["serve"] = self._ask_plan(client, plan)
        return answers

    def _ask_plan(self, client: httpx.Client, plan: FailoverPlan) -> dict[str, Any]:
        positions = {
            topic: {str(partition): at for partition, at in partitions.items()}
            for topic, partitions in plan.source_positions().items()
        }
        for path in ("/openapi.json", "/api/v1/offsets/status"):
            self.texts[f"{client.base_url}{path}"] = client.get(path).text
        answer = client.post(PLAN, json={"positions": positions})
        self.texts[f"{client.base_url}{PLAN}"] = answer.text
        return dict(answer.raise_for_status().json())

    def _open_pages(self, client: httpx.Client) -> dict[str, str]:
        """Return the pages of the failover and its connection, as the administrator sees them."""
        run = {"dag_id": FAILOVER, "run_id": self.failover.run_id}
        pages: dict[str, dict[str, str]] = {
            "": {},
            "connection": {"conn_id": "mm2_default"},
            "translate": {"topic": "orders", "partition": "0", "position": "1"},
            "run": run,
            "readiness": run | {"task_id": "check"},
            "plan": run | {"task_id": "translate"},
        }
        for page, query in pages.items():
            answer = client.get(f"/page/{page}", params=query).raise_for_status()
            self.texts[f"page {page}"] = answer.text
        return {page: self.texts[f"page {page}"] for page in pages}

    def run_commands(self) -> dict[str, dict[str, Any]]:
        """Run each command with the rights of its row and the archive's alone."""
        answers = {}
        for command, arguments in COMMANDS.items():
            self.secured.let_do_only(command, "archive")
            ended = self.secured.run(command, *arguments)
            self.texts[f"command {command}"] = ended.stdout + ended.stderr
            answers[command] = {"exit_code": ended.returncode, "output": ended.stdout}
        return answers

    def verify_again(self) -> str | None:
        """Compare again with the rights of a reconciliation alone."""
        run_id = self.failover.verify_id
        self.secured.let_do_only("reconcile")
        self.api.clear(VERIFY_DAG, run_id, VERIFY, downstream=False)
        self.demo.wait(
            "the second reconciliation",
            lambda: self.api.state(VERIFY_DAG, run_id) in {"success", "failed"},
        )
        return self.api.tasks(VERIFY_DAG, run_id)[VERIFY].state

    def read_airflow(self) -> None:
        """Read what Airflow shows of connections and of every run."""
        paths = ["/connections", EVENT_LOGS]
        for dag_id in (FAILOVER, STREAM, ARCHIVE, VERIFY_DAG):
            for run_id in self.api.runs(dag_id):
                run = f"/dags/{dag_id}/dagRuns/{run_id}"
                paths += [run, f"{run}/taskInstances"]
                for task_id in self.api.tasks(dag_id, run_id):
                    task = f"{run}/taskInstances/{task_id}"
                    paths += [f"{task}/xcomEntries", f"{task}/xcomEntries/return_value"]
                    paths += [f"{task}/logs/1?full_content=true"]
        self.texts |= {path: self.api.text(path) for path in paths}
