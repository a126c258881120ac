"""Wrong settings of a failover: the first task refuses them, and nothing was stopped."""

import inspect
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import (
    DAG,
    AirflowException,
    AirflowFailException,
    BaseOperator,
)
from airflow.providers.standard.operators.empty import EmptyOperator

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.task_groups import failover_tasks
from airflow_mm2_offsets.task_groups.steps import OPERATORS
from tests.unit.dags.dags_folder import FOLDER, parse
from tests.unit.dags.failovers import Failover
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker

SHARED = frozenset(
    {
        *("checkpoint", "control", "request_id", "target_checkpoint", "target_control"),
        *("plan_path", "forecast_path", "moved_to", "mm2_conn_id", "archive"),
        *("from_folder", "home_control", "source_folder", "target_folder", "drill"),
    }
)
"""The folders and names of the job: the checks of ``check`` look at them."""
TEXTS = frozenset(
    {
        *("spark_conn_id", "driver_id", "job", "trigger_dag_id", "trigger_run_id"),
        *("restart_run_id", "subscribe_pattern", "txn_app_id", "sink"),
        *("spark_control", "spark_checkpoint", "probe_folder"),
        *("source_properties", "target_properties"),
    }
)
"""Any text is one of them, or it names a place that ``check`` looks at, or only Spark reads."""
RESULTS = frozenset(
    {
        *("positions", "clusters", "plan", "forecast", "read", "stopped", "approval", "started"),
        *("verified", "drill", "rollback", "intents", "pending", "committed", "starting_offsets"),
        *("restart_conf", "conf", "folder", "job_folders", "other_folders", "job_output"),
        *("restart_output", "replicated"),
    }
)
"""What other tasks return, and what the group itself builds."""
FREE = {
    *(("verify", name) for name in ("read", "ranges", "topics", "kafka")),
    *(("approve", "assigned_users"), ("start_drill", "sinks")),
    ("check", "saved_positions"),
    ("roll_back", "stop_task_id"),
}
"""The group gives a plan in place of ranges, and the id of its own task that stops the job; users
and tables have any name; and a folder that ``check`` can't open is one of its own findings."""
SENSORS = frozenset({"wait_replicated", "wait_started"})
AIRFLOW_PARSES = frozenset({"timeout", "poke_interval"})
"""Airflow refuses such a DAG when it reads the file."""
AIRFLOW = frozenset({"kwargs", "self", "skip_when_already_exists"})
LOCATIONS = frozenset({"locks", "reports", "report", "saved_positions", "first_plan"})
GROUP = ("mode", "dry_run", "source_is_gone", "exchanged", "changed_records", "verify")
"""Arguments of ``failover_tasks`` that have a form."""


def _group(folder: Path, **settings: Any) -> DAG:
    with DAG("evacuate", schedule=None) as dag:
        failover_tasks(
            prefix_group_id=False,
            source_folder=str(folder / "source"),
            target_folder=str(folder / "target"),
            stream_dag_id="orders_stream",
            **settings,
        )
    return dag


def _operator(dag: DAG, task_id: str) -> BaseOperator:
    task = dag.get_task(task_id)
    assert isinstance(task, BaseOperator)
    return task


def _with_form() -> list[tuple[str, str]]:
    """Return every argument of every task of a group that can be wrong in form."""
    found = []
    with DAG("evacuate", schedule=None) as dag:
        failover_tasks(
            prefix_group_id=False,
            source_folder="/a",
            target_folder="/b",
            stream_dag_id="orders_stream",
            mode="{{ dag_run.conf.mode }}",
            verify=True,
        )
    for task_id in OPERATORS:
        names = {
            name
            for kind in type(_operator(dag, task_id)).__mro__
            if kind.__module__.startswith("airflow_mm2_offsets")
            for name in inspect.signature(kind).parameters
        }
        free = (
            SHARED
            | TEXTS
            | AIRFLOW
            | (RESULTS - {"positions"} if task_id == "read_positions" else RESULTS)
        )
        found += [
            (task_id, name)
            for name in sorted(names - free - {"deferrable"})
            if (task_id, name) not in FREE
        ]
    return found


def _run_check(worker: Worker, source: Job, mode: str, arguments: Any) -> None:  # noqa: ANN401
    dag = _group(
        source.folder.parent,
        mode="{{ dag_run.conf.mode }}",
        verify=True,
        exchanged=mode == "failback",
        arguments=arguments,
    )
    worker.run(_operator(dag, "check"))


@pytest.mark.parametrize(("task_id", "name"), _with_form())
def test_a_wrong_argument_of_any_task_is_refused_before_the_stop(
    worker: Worker, source: Job, task_id: str, name: str
) -> None:
    """An argument that is added later must be parsed, too, or be listed above as free text."""
    wrong = "nosuch://place" if name in LOCATIONS else "nosuch"
    source.beat(1, bootstrap_servers=["source:9092"])
    modes = {"start_drill": "drill", "tear_down": "drill", "read_positions": "disaster"}
    mode = "failback" if name == "first_plan" else modes.get(task_id, "planned")
    worker.conf = {"mode": mode}
    # Airflow before 3.2 refuses what it parses itself with an AirflowException.
    refusals = (ConfigurationError, ValueError, TypeError, AirflowException)
    with pytest.raises(refusals, match=name) as caught:
        _run_check(worker, source, mode, {task_id: {name: wrong}})
    if task_id in SENSORS and name in AIRFLOW_PARSES:
        return
    assert isinstance(caught.value, ConfigurationError)
    assert isinstance(caught.value, AirflowFailException)
    assert f"task {task_id}: " in str(caught.value)
    assert name in str(caught.value)
    assert wrong in str(caught.value)
    assert source.requested_stop() is None


@pytest.mark.parametrize("name", GROUP)
def test_a_wrong_argument_of_the_group_is_refused_before_the_stop(
    worker: Worker, source: Job, name: str
) -> None:
    """A template may render as anything."""
    worker.conf = {"wrong": "perhaps"}
    dag = _group(source.folder.parent, **{name: "{{ dag_run.conf.wrong }}"})
    with pytest.raises(ConfigurationError, match="'perhaps'; give ") as caught:
        worker.run(_operator(dag, "check"))
    assert name in str(caught.value)


TOMORROW = (datetime.now(UTC) + timedelta(days=1)).isoformat()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"lost_at": "03:12"}, "task forecast: lost_at: '03:12' is not a time with its zone"),
        ({"lost_at": TOMORROW}, "task forecast: lost_at: .* lies in the future"),
        ({"saved_positions": "nosuch://x"}, "task read_positions: saved_positions is 'nosuch://x'"),
        ({"reports_folder": "nosuch://x"}, "task report: reports is 'nosuch://x'"),
        (
            {"heartbeat_timeout": 700, "kill_after": 100},
            "task stop_source: heartbeat_timeout is 700 s and would never pass",
        ),
    ],
)
def test_a_wrong_param_of_the_dag_is_refused_before_the_stop(
    run: Failover, params: dict[str, object], message: str
) -> None:
    """The form of the trigger page accepts any text."""
    run.worker.conf = {**run.worker.conf, "mode": "disaster", **params}
    with pytest.raises(ConfigurationError, match=message) as caught:
        run.run("check")
    assert "this run has stopped nothing; correct them and trigger a new run" in str(caught.value)
    assert run.source.requested_stop() is None


def test_all_wrong_settings_are_named_at_once(run: Failover) -> None:
    """At night each further try costs minutes."""
    vars(run.task("translate"))["on_unmapped"] = "perhaps"
    vars(run.task("wait_started"))["min_records"] = "many"
    run.worker.conf = {**run.worker.conf, "lost_at": "03:12"}
    with pytest.raises(ConfigurationError) as caught:
        run.run("check")
    listed = str(caught.value).split("\n  - ")[1:]
    assert [each.partition(":")[0] for each in listed] == [
        *("task translate", "task forecast", "task wait_started")
    ]


def test_settings_of_steps_that_the_mode_leaves_out_do_not_count(run: Failover) -> None:
    """A planned failover neither starts nor removes a drill."""
    vars(run.task("tear_down"))["heartbeat_timeout"] = "soon"
    run.run("check")
    run.worker.conf = {**run.worker.conf, "mode": "drill"}
    run.source.beat(1, bootstrap_servers=["source:9092"])
    with pytest.raises(ConfigurationError, match="task tear_down: heartbeat_timeout is 'soon'"):
        run.run("check")


def test_a_field_that_another_task_fills_is_left_to_its_own_task(
    worker: Worker, source: Job
) -> None:
    """Its value is not there yet, and no failover may fail for that."""
    pulled = "{{ ti.xcom_pull(task_ids='find_time')['at'] }}"
    dag = _group(
        source.folder.parent,
        arguments={"translate": {"unmapped_time": pulled}, "forecast": {"lost_at": pulled}},
    )
    worker.run(_operator(dag, "check"))
    assert worker.xcoms["check", "return_value"]["totals"]["failed"] == 0


def test_a_folder_that_an_earlier_task_finds_is_known(worker: Worker, source: Job) -> None:
    """That task has ended before the check: its result is there, and the settings are whole."""
    folder = "{{ ti.xcom_pull(task_ids='find_job')['folder'] }}"
    with DAG("evacuate", schedule=None) as dag:
        EmptyOperator(task_id="find_job") >> failover_tasks(
            prefix_group_id=False,
            source_folder=folder,
            target_folder=str(source.folder.parent / "target"),
            stream_dag_id="orders_stream",
        )
    worker.xcoms["find_job", "return_value"] = {"folder": str(source.folder)}
    worker.run(_operator(dag, "check"))
    assert worker.xcoms["check", "return_value"]["totals"]["failed"] == 0


def test_a_template_may_ask_which_task_it_is_of(worker: Worker, source: Job) -> None:
    """The check renders it as the task itself will."""
    arguments = {
        "stop_source": {"kill_after": "{{ {'stop_source': 700}[task.task_id] }}"},
        "forecast": {"max_rate": "{{ {'forecast': 7}[ti.task_id] }}"},
    }
    dag = _group(source.folder.parent, arguments=arguments)
    worker.run(_operator(dag, "check"))
    assert worker.xcoms["check", "return_value"]["totals"]["failed"] == 0


def test_a_template_that_can_t_be_rendered_is_found_before_the_stop(
    worker: Worker, source: Job
) -> None:
    """Its own task would fail the same way, with the job stopped."""
    dag = _group(
        source.folder.parent, arguments={"forecast": {"lost_at": "{{ dag_run.conf.a.b }}"}}
    )
    with pytest.raises(ConfigurationError, match=r"task forecast: lost_at is the template .*a\.b"):
        worker.run(_operator(dag, "check"))


def test_the_check_leaves_the_other_tasks_as_they_are(run: Failover) -> None:
    """Their templates are rendered once more for their own run."""
    before = {task.task_id: dict(vars(task)) for task in run.dag.tasks}
    run.run("check")
    changed = {
        (task.task_id, name)
        for task in run.dag.tasks
        for name, value in vars(task).items()
        if task.task_id != "check" and before[task.task_id].get(name) != value
    }
    assert not changed


def test_each_param_reaches_a_task() -> None:
    """A param that no task is given could not be refused, and would do nothing."""
    dag = parse(FOLDER / "mm2_failover.py").dags["mm2_failover"]
    fields = str([vars(task) for task in dag.tasks])
    assert not [name for name in dag.params if f"params.{name}" not in fields]
