"""The DAGs that users copy: what Airflow makes of the folder."""

import ast
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, conf

import airflow_mm2_offsets
from airflow_mm2_offsets.operators.polling import DeferrablePolling
from tests.unit.dags.dags_folder import FILES, FOLDER, OTHERS, STEPS, DagBag, parse, templated_reads

ON_THE_FLOOR = {
    # Airflow 3.1.8, seen there; what it moved since comes through common.compat.
    "airflow.sdk": {"DAG", "Asset", "AssetWatcher", "Context", "Param", "task"},
    "airflow.timetables.assets": {"AssetOrTimeSchedule"},
    "airflow.timetables.trigger": {"CronTriggerTimetable"},
    "airflow.sdk.exceptions": {"AirflowRuntimeError"},
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


def test_the_steps_of_the_failover(failover: DAG) -> None:
    """Each step waits for the one before it, so that nothing is stopped before all is checked."""
    for task_id in STEPS:
        before = set(STEPS[: STEPS.index(task_id)])
        upstream = failover.get_task(task_id).get_flat_relative_ids(upstream=True)
        assert upstream - set(OTHERS) == before
    assert set(failover.task_ids) == {*STEPS, *OTHERS}


def test_the_steps_of_the_other_modes(failover: DAG) -> None:
    """A drill starts after the approval's place, and ends before the report."""
    upstream = {
        name: failover.get_task(name).get_flat_relative_ids(upstream=True) for name in OTHERS
    }
    assert upstream["start_drill"] == set(STEPS[: STEPS.index("submit_target")])
    assert {"start_drill", "verify"} <= upstream["tear_down"]
    assert "wait_started" not in upstream["roll_back"]
    assert "submit_target" in upstream["roll_back"]


def test_each_task_waits_itself_for_what_it_reads(failover: DAG) -> None:
    """Cleared together with a task whose XCom it reads, it does not run before that one has."""
    read = templated_reads(failover)
    assert read["verify"] == {"wait_started"}
    assert not {
        task_id: missing
        for task_id, names in read.items()
        if (missing := names - failover.get_task(task_id).upstream_task_ids)
    }


def test_a_failed_step_ends_the_failover(failover: DAG) -> None:
    """A skipped step belongs to another mode, and the next one runs; after a failed one, none."""
    rules = {task.task_id: task.trigger_rule.value for task in failover.tasks}
    assert rules == dict.fromkeys((*STEPS, *OTHERS), "none_failed") | {
        "tear_down": "all_done",
        "roll_back": "one_failed",
        "report": "all_done",
    }
    assert vars(failover.get_task("submit_target"))["skip_when_already_exists"]


NO_SECOND_HARM = {
    "check": "reads",
    "stop_source": "the request of a run is asked once, and its fence raised once",
    "read_positions": "reads",
    "wait_replicated": "reads",
    "translate": "the plan is made once and kept, and a kept one is checked",
    "forecast": "reads, and is kept",
    "approve": "asks again, and starts nothing",
    "start_drill": "marks the folder once, and finds the run that it triggered",
    "tear_down": "stops what runs, and removes what is there",
    "roll_back": "undoes what is there, and restarts the job under one run id",
    "submit_target": "looks again, and the run that it triggers has an id that derives from this",
    "wait_started": "reads",
    "report": "writes what it is given to the same files",
}
"""Why a task may be tried again, whatever the worker had done when it was lost."""


def test_a_lost_worker_does_not_end_the_failover(failover: DAG) -> None:
    """Each task is tried again, after a while; all but the comparison, whose driver lives on."""
    tries = {
        task_id: (failover.get_task(task_id).retries, failover.get_task(task_id).retry_delay)
        for task_id in (*STEPS, *OTHERS)
    }
    again = (2, timedelta(seconds=30))
    assert {task_id: tries.pop(task_id) for task_id in NO_SECOND_HARM} == dict.fromkeys(
        NO_SECOND_HARM, again
    )
    assert {task_id: retries for task_id, (retries, _) in tries.items()} == {"verify": 0}


def test_the_failover_waits_in_the_triggerer(failover: DAG) -> None:
    """With Airflow's own defaults, where other sensors wait in a worker's slot."""
    assert not conf.getboolean("operators", "default_deferrable")
    waits = {
        task.task_id: task.deferrable
        for task in failover.tasks
        if isinstance(task, DeferrablePolling)
    }
    names = ("stop_source", "wait_replicated", "wait_started", "tear_down")
    assert waits == dict.fromkeys(names, True)


def test_several_jobs_are_moved_at_a_time(failover: DAG) -> None:
    """No drill and no other job delays a failover; fence and lock keep one job's runs apart."""
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
