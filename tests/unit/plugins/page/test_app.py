"""The pages as Airflow's API server answers them: by a file of jobs, journals and a database."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from airflow import settings
from airflow.api_fastapi.app import create_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.core_api.security import get_user
from airflow.models import import_all_models
from airflow.models.base import Base
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from fastapi.testclient import TestClient
from sqlalchemy import Engine, create_engine, insert
from sqlalchemy.orm import scoped_session, sessionmaker
from upath import UPath

from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.jobs_file import parse_jobs
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.moves.move import Mover
from airflow_mm2_offsets.operators.links import PROBLEM, PageLink
from airflow_mm2_offsets.plugins.page.app import make_page

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
DAG, RUN = "mm2_failover", "manual__1"
MARKUP = "<script>alert(1)</script>"
WORD = "hunter2"


@dataclass(frozen=True, kw_only=True)
class Pages:
    """The page's app, with the job ``orders``, which a run moves, and ``clicks``."""

    client: TestClient
    engine: Engine
    folder: Path
    orders: SparkJob

    def get(self, page: str = "", status: int = 200, **query: str) -> str:
        """Return what a browser shows of a page, and the addresses of its links."""
        answer = self.client.get(f"/{page}?{urlencode(query)}")
        assert answer.status_code == status, answer.text
        assert WORD not in answer.text
        assert answer.text.count("<script") == 1  # our own
        links = re.sub(r'<a [^>]*href="([^"]*)"[^>]*>(.*?)</a>', r"\2 <\1>", answer.text)
        text = re.sub(r"<(?!\.\./\.\.|[a-z]+\?)[^>]*>", " ", links)
        return " ".join(text.replace("&amp;", "&").replace("&#39;", "'").split())

    def row(self, text: str, name: str, after: str) -> str:
        """Return the part of a page's text about one job of two."""
        return text.partition(f"{name} <")[2].partition(f"{after} <")[0]

    def move(self) -> Mover:
        """Stop the job, and ask a person."""
        mover = Mover(self.orders, f"{DAG}:{RUN}", PLANNED, UPath)
        mover.record(mover.ask(), Event.PROVE, proof="acknowledged")
        numbers = {"lost_at_most": 3, "read_again_at_most": 12, "refused": 0}
        mover.record(mover.find(), Event.NOTE, numbers=numbers, plan="/plan.json")
        asked = {"asked_of": "x", "asked_in": "approve", "waits_for": "a person's answer"}
        mover.record(mover.find(), Event.NOTE, **asked, until="2099-01-01T02:00:00+00:00")
        return mover

    def insert(self, model: Any, **values: Any) -> None:  # noqa: ANN401 - a table
        with self.engine.begin() as connection:
            connection.execute(insert(model.__table__).values(**values))

    def add_run(self, dag_id: str = DAG, run_id: str = RUN) -> None:
        self.insert(DagRun, dag_id=dag_id, run_id=run_id, run_type="manual", run_after=BEGAN)

    def add_task(self, task_id: str, state: str | None, page: str = "", **xcoms: object) -> None:
        """Add a task of the run, its link to a page, and other XComs."""
        run = {"dag_id": DAG, "run_id": RUN, "task_id": task_id}
        ended = BEGAN + timedelta(minutes=1)
        self.insert(
            TaskInstance,
            **{**run, "pool": "default", "state": state, "try_number": 1, "map_index": -1},
            start_date=BEGAN if state else None,
            end_date=ended if state else None,
        )
        if page:
            key = type("Key", (), {**run, "map_index": -1})
            task = type("Task", (), {"move": {"job": "orders", "policy": "planned"}})
            xcoms[f"mm2_offsets_link_{page}"] = PageLink(page).get_link(task, ti_key=key)
        for name, value in xcoms.items():
            more = {"map_index": -1, "dag_run_id": 1, "key": name, "value": value}
            self.insert(XComModel, **run, **more, timestamp=ended)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return an empty database of Airflow."""
    file = tmp_path_factory.mktemp("database") / "airflow.db"
    import_all_models()
    engine = create_engine(f"sqlite:///{file}")
    Base.metadata.create_all(engine)
    engine.dispose()
    return file.read_bytes()


@pytest.fixture
def pages(tables: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pages]:
    (tmp_path / "airflow.db").write_bytes(tables)
    engine = create_engine(f"sqlite:///{tmp_path}/airflow.db")
    monkeypatch.setattr(settings, "Session", scoped_session(sessionmaker(bind=engine)))
    homes = {side: f"{tmp_path}/{side}/{{name}}" for side in ("east", "west")}
    defaults = {"homes": homes, "dag": "stream", "records": f"{tmp_path}/records"}
    text = json.dumps({"defaults": defaults, "jobs": [{"name": "orders"}, {"name": "clicks"}]})
    (tmp_path / "jobs.json").write_text(text)
    monkeypatch.setenv("AIRFLOW__MM2_OFFSETS__JOBS_FILE", f"{tmp_path}/jobs.json")
    create_auth_manager()
    app = make_page(None)  # type: ignore[arg-type] # no page of a connection is asked for
    admin = SimpleAuthManagerUser(username="anna", role="admin")
    app.dependency_overrides[get_user] = lambda: admin
    orders, _ = parse_jobs(text, "jobs.json")
    with TestClient(app) as client:
        yield Pages(client=client, engine=engine, folder=tmp_path, orders=orders)
    engine.dispose()


class TestJobs:
    """The first page."""

    def test_each_job_with_its_last_move(self, pages: Pages) -> None:
        """Where it is, since when, what the move cost, and what it waits for."""
        mover = pages.move()
        row = pages.row(pages.get(), "orders", "clicks")
        assert f"east {pages.folder}/east/orders" in row
        assert "stopped waits for a person's answer, until 2099-01-01 02:00:00 UTC" in row
        assert "lost at most 3, read again at most 12" in row
        mover.record(mover.find(), Event.HAND_OVER, starting_offsets="{}")
        mover.record(mover.find(), Event.ARRIVE)
        row = pages.row(pages.get(), "orders", "clicks")
        assert f"west {pages.folder}/west/orders" in row
        assert "at home moved planned" in row
        assert "downtime" in row
        text = pages.get()
        assert "never moved" in text.partition("clicks <")[2]

    def test_what_tasks_have_found_stands_beside_it(self, pages: Pages) -> None:
        """The last readiness report with its lag; nothing of a job that no task has checked."""
        checks = [{"name": "replication_lag", "status": "ok", "value": "7 records"}]
        report = {"verdict": "ready", "checks": checks}
        pages.add_task("check", "success", "readiness", return_value=report)
        text = pages.get()
        row = pages.row(text, "orders", "clicks")
        assert "ready" in row
        assert "ok 7 records" in row
        assert "no report found not known" in text.partition("clicks <")[2]

    def test_a_broken_journal_hides_no_other_job(self, pages: Pages) -> None:
        """Its row says why it was not read, on the job's own page, too."""
        pages.move()
        entry = Path(pages.orders.journal) / "000002.json"
        entry.write_text(entry.read_text().replace("acknowledged", f"s3://a:{WORD}@b"))
        (Path(pages.orders.journal) / "000003.json").unlink()
        text = pages.get()
        assert "not known" in pages.row(text, "orders", "clicks")
        assert "000003.json" in pages.row(text, "orders", "clicks")
        assert f"east {pages.folder}/east/clicks" in text.partition("clicks <")[2]
        assert "000003.json" in pages.get("job", 502, name="orders")

    def test_without_a_file_of_jobs_it_says_what_to_set(
        self, pages: Pages, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The other pages can still be reached."""
        monkeypatch.delenv("AIRFLOW__MM2_OFFSETS__JOBS_FILE")
        text = pages.get()
        assert "set [mm2_offsets] jobs_file" in text
        assert "Connections" in text

    def test_one_job_with_its_history(self, pages: Pages) -> None:
        """The move under way with its next step; markup and logins of a journal stay harmless."""
        mover = pages.move()
        by = f"s3://anna:{WORD}@bucket {MARKUP}"
        mover.record(mover.find(), Event.NOTE, approval={"approved": True, "by": by})
        pages.add_run()
        text = pages.get("job", name="orders")
        assert f"The move under way: {DAG}:{RUN} <../../dags/{DAG}/runs/{RUN}>" in text
        assert "Next: orders runs nowhere since" in text
        assert "Approved by s3://anna:***@bucket" in text
        assert "lost at most: 3" in text
        assert "The newest 5 of 5 entries" in text
        assert "has never moved" in pages.get("job", name="clicks")
        assert "has no job nothing" in pages.get("job", 404, name="nothing")


class TestRun:
    """The tab of a DAG run."""

    def test_a_move_that_waits_for_a_person(self, pages: Pages) -> None:
        """It leads to the question, and says until when; skipped tasks have no row."""
        pages.move()
        pages.add_run()
        pages.add_task("check", "success", "readiness")
        pages.add_task("approve", "deferred")
        pages.add_task("verify", "skipped")
        text = pages.get("run", dag_id=DAG, run_id=RUN)
        answer = f"<../../dags/{DAG}/runs/{RUN}/tasks/approve/required_actions>"
        assert "Waits for a person's answer, until 2099-01-01 02:00:00 UTC" in text
        assert f"Answer here {answer}" in text
        assert "Down so far" in text
        assert "Lost at most 3" in text
        assert "Answer in task approve of this move's run" in text
        assert "verify" not in text

    def test_a_failed_move(self, pages: Pages) -> None:
        """The message of the task that failed first, with its log and what to do."""
        mover = pages.move()
        answer = {"approved": True, "by": "anna"}
        mover.record(mover.find(), Event.NOTE, approval=answer)
        pages.add_task("stop_source", "success", "run")
        why = f"orders[2]: no answer; see s3://key:{WORD}@bucket"
        pages.add_task("start_target", "failed", "run", **{PROBLEM: why})
        pages.add_task("report", "failed", "report")
        text = pages.get("run", dag_id=DAG, run_id=RUN)
        log = f"../../dags/{DAG}/runs/{RUN}/tasks/start_target?try_number=1"
        assert f"start_target: orders[2]: no answer; see s3://key:***@bucket Log <{log}>" in text
        assert "Approved by anna" in text
        assert "Correct what the failed task names" in text
        assert "Answer here" not in text

    def test_a_move_that_has_arrived(self, pages: Pages) -> None:
        """Its downtime, and the run of the job, which Airflow has."""
        mover = pages.move()
        mover.record(mover.find(), Event.HAND_OVER, starting_offsets="{}")
        move = mover.record(mover.find(), Event.ARRIVE)
        pages.add_task("wait_started", "success", "run")
        pages.add_run("stream", move.job_run())
        text = pages.get("run", dag_id=DAG, run_id=RUN)
        assert f"{move.job_run()} <../../dags/stream/runs/" in text
        assert f"{pages.folder}/west/orders" in text
        assert "Downtime" in text

    def test_a_run_that_is_in_no_journal(self, pages: Pages) -> None:
        """A drill, or a job that is not in the file: what its report says."""
        status: dict[str, Any] = {
            "job": "orders",
            "policy": "drill",
            "state": "drilled",
            "here": "east",
        }
        status |= {"there": "west", "next": "A move would work.", "numbers": {"refused": 0}}
        report = {"status": status, "remarks": [f"the run: {MARKUP}"]}
        pages.add_task("report", "success", "report", return_value=report)
        text = pages.get("run", dag_id=DAG, run_id=RUN)
        assert "drilled drill, east → west" in text
        assert "A move would work." in text
        assert "alert(1)" in text

    def test_a_run_of_any_dag(self, pages: Pages) -> None:
        """Airflow shows the tab on all runs."""
        pages.add_task("extract", "success")
        assert "No task of this package has ended" in pages.get("run", dag_id=DAG, run_id=RUN)
        assert "has no run" in pages.get("run", 404, dag_id=DAG, run_id="other")


def test_connections_are_listed(pages: Pages) -> None:
    """Those of the file of jobs, beside Airflow's own."""
    assert "mm2_default <connection?conn_id=mm2_default>" in pages.get("connections")
