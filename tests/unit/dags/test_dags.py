"""The DAGs that users copy: what Airflow makes of the folder."""

import ast
import shutil
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, conf

import airflow_mm2_offsets
from airflow_mm2_offsets.operators.polling import DeferrablePolling
from airflow_mm2_offsets.task_groups import STEPS
from tests.unit.dags.dags_folder import FILES, FOLDER, DagBag, parse

ON_THE_FLOOR = {
    # Airflow 3.1.8, seen there; what it moved since comes through common.compat.
    "airflow.sdk": {"DAG", "Asset", "AssetWatcher", "Context", "Param", "task"},
    "airflow.timetables.assets": {"AssetOrTimeSchedule"},
    "airflow.timetables.trigger": {"CronTriggerTimetable"},
    "airflow.sdk.exceptions": {"AirflowRuntimeError", "ErrorType"},
    "airflow.sdk.execution_time": {"task_runner"},
    "airflow.sdk.execution_time.comms": {"ErrorResponse", "TriggerDagRun"},
    "airflow.sdk.execution_time.task_runner": {"RuntimeTaskInstance"},
    "airflow.sdk.io": {"has_fs"},
    "airflow.sdk.log": {"mask_secret"},
    "airflow.triggers.base": {"BaseEventTrigger", "BaseTrigger", "TriggerEvent"},
    "airflow.api_fastapi.app": {"get_auth_manager"},
    "airflow.api_fastapi.auth.managers.models.resource_details": {
        *("AccessView", "ConnectionDetails", "DagAccessEntity", "DagDetails"),
    },
    "airflow.api_fastapi.core_api.security": {"GetUserDep"},
    # Its tables, which the page reads in the API server.
    "airflow.models.connection": {"Connection"},
    "airflow.models.dag": {"DagModel"},
    "airflow.models.dagrun": {"DagRun"},
    "airflow.models.taskinstance": {"TaskInstance"},
    "airflow.models.taskinstancehistory": {"TaskInstanceHistory"},
    "airflow.models.xcom": {"XComModel"},
    "airflow.utils.session": {"create_session"},
}
"""What may be taken from Airflow itself: Airflow 3.1, the oldest that we declare, has all of it."""
PROVIDERS = "airflow.providers."
"""Providers have versions and floors of their own; common.compat hides what Airflow has moved."""
PACKAGE = sorted(Path(airflow_mm2_offsets.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize(
    "path", [*FILES, *PACKAGE], ids=lambda path: f"{path.parent.name}.{path.stem}"
)
def test_the_oldest_airflow_can_import_it(path: Path) -> None:
    """A name that a later release has moved or added would fail where users run the floor.

    Airflow 3.1 has AirflowSkipException in ``airflow.exceptions``, and 3.2 in ``airflow.sdk``.
    """
    modules = [
        node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
    ]
    taken = {
        (node.module, alias.name)
        for node in modules
        if (node.module or "").partition(".")[0] == "airflow"
        and not (node.module or "").startswith(PROVIDERS)
        for alias in node.names
    }
    assert not [each for each in taken if each[1] not in ON_THE_FLOOR.get(each[0] or "", ())]


def test_every_file_is_imported(bag: DagBag) -> None:
    """No file of the folder fails, and each is one DAG of the same name."""
    assert bag.import_errors == {}
    assert {Path(dag.fileloc).stem: dag.dag_id for dag in bag.dags.values()} == {
        path.stem: path.stem for path in FILES
    }


def test_spark_code_is_no_dag(bag: DagBag) -> None:
    """What runs inside Spark is left alone by Airflow's parser."""
    assert (FOLDER / "jobs" / "orders_stream.py").exists()
    assert "jobs/" in (FOLDER / ".airflowignore").read_text().split()
    assert not [each for each in bag.dagbag_stats if "jobs" in each.file]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_of_the_demo_is_in_a_dag(path: Path) -> None:
    """DAGs import nothing of this repository but the package, and name no path of it."""
    text = path.read_text()
    imported = {
        name
        for node in ast.walk(ast.parse(text))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    assert not [name for name in imported if name.partition(".")[0] in {"demo", "stack", "tests"}]
    assert not [word for word in ("demo", "build/", "127.0.0.1", "localhost") if word in text]


@pytest.mark.parametrize("name", [path.stem for path in FILES])
def test_the_trigger_form_explains_itself(bag: DagBag, name: str) -> None:
    """Each param has a title and a description, and its default is valid."""
    dag = bag.dags[name]
    assert dag.doc_md
    assert dag.description
    for key in dag.params:
        param = dag.params.get_param(key)
        assert param.description, key
        assert param.schema["title"], key
        assert param.resolve() == param.value


PARAMS = {"mm2_failover": 9, "mm2_fleet": 8, "mm2_drill": 4, "mm2_readiness": 6}
"""How many params a DAG has at most: its form fits on a screen."""


@pytest.mark.parametrize("name", PARAMS)
def test_the_form_is_short(bag: DagBag, name: str) -> None:
    """All else is in the file of jobs."""
    assert len(bag.dags[name].params) <= PARAMS[name]


def test_the_seldom_params_are_folded(failover: DAG) -> None:
    """Airflow's form then fits on a screen of 1400 x 950: three params, and one section."""
    sections = {name: failover.params.get_param(name).schema.get("section") for name in SHOWN}
    assert sections == dict.fromkeys(SHOWN)
    folded = set(failover.params) - set(SHOWN)
    assert len({failover.params.get_param(name).schema["section"] for name in folded}) == 1


SHOWN = ("job", "policy", "dry_run")
"""The params that each move needs."""


def test_the_failover_is_a_line(failover: DAG) -> None:
    """Each step waits for the one before it: nothing is stopped before all is checked."""
    edges = {(task.task_id, after) for task in failover.tasks for after in task.downstream_task_ids}
    assert [task.task_id for task in failover.tasks] == [*STEPS]
    assert edges == {*pairwise(STEPS)}
    assert len(failover.tasks) <= 8
    assert len(edges) <= 12


def test_a_failed_step_ends_the_failover(failover: DAG) -> None:
    """A step that a dry run skips is passed; after a failed one only the report runs."""
    rules = {task.task_id: task.trigger_rule.value for task in failover.tasks}
    assert rules == dict.fromkeys(STEPS, "none_failed") | {"report": "all_done"}


def test_a_lost_worker_does_not_end_the_failover(failover: DAG) -> None:
    """Each task is tried again, after a while: each finds in the journal what it has done."""
    tries = {task.task_id: (task.retries, task.retry_delay) for task in failover.tasks}
    assert tries == dict.fromkeys(STEPS, (2, timedelta(seconds=30)))


def test_the_failover_waits_in_the_triggerer(failover: DAG) -> None:
    """With Airflow's own defaults, where other sensors wait in a worker's slot."""
    assert not conf.getboolean("operators", "default_deferrable")
    waits = {
        task.task_id: task.deferrable
        for task in failover.tasks
        if isinstance(task, DeferrablePolling)
    }
    assert waits == dict.fromkeys(("stop_source", "wait_replicated", "wait_started"), True)


def test_several_jobs_are_moved_at_a_time(failover: DAG) -> None:
    """No drill and no other job delays a failover; the journal keeps one job's runs apart."""
    assert failover.max_active_runs == 16
    assert not failover.max_active_tasks < 16
    assert failover.catchup is False
    assert failover.schedule is None


def test_the_job_outlives_a_lost_worker(bag: DagBag) -> None:
    """Airflow starts it again; StopControl refuses a second driver beside a first that lives."""
    stream = bag.dags["orders_stream"].get_task("stream")
    assert (stream.retries, stream.retry_delay) == (2, timedelta(seconds=30))
    script = (FOLDER / "jobs" / "orders_stream.py").read_text()
    assert "StopControl(" in script


def test_a_copy_of_the_folder_needs_nothing_else(tmp_path: Path) -> None:
    """The DAGs import from any folder, as users will copy them."""
    copy = shutil.copytree(FOLDER, tmp_path / "dags")
    assert parse(copy).import_errors == {}


@pytest.mark.parametrize(("output", "expected"), [(None, "/job/output"), ("/lake", "/lake")])
def test_the_job_writes_where_its_conf_says(bag: DagBag, output: str | None, expected: str) -> None:
    """Without ``output`` in its conf, it writes in its folder."""
    stream = bag.dags["orders_stream"].get_task("stream")
    arguments = vars(stream)["application_args"]
    template = arguments[arguments.index("--output") + 1]
    context: Any = {"params": {"folder": "/job", "output": output}}
    assert stream.render_template(template, context) == expected


@pytest.mark.parametrize(
    ("folder", "file"), [(None, ""), ("/etc/kafka/job", "/etc/kafka/job/kafka_target.properties")]
)
def test_the_job_gets_the_file_of_its_connection(folder: str | None, file: str) -> None:
    """The variable names a folder with a file for each connection; without it there is none."""
    task: Any = parse(FOLDER / "orders_stream.py").dags["orders_stream"].get_task("stream")
    arguments = task.application_args
    template = arguments[arguments.index("--kafka-properties") + 1]
    variables = {"kafka_properties_folder": folder} if folder else {}
    context = {"params": {"kafka_conn_id": "kafka_target"}, "var": {"value": variables}}
    assert task.render_template(template, context) == file
