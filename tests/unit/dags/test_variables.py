"""The folders that a form leaves empty: Airflow's variables, read when a task runs."""

from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG

from tests.unit.dags.dags_folder import FOLDER, STEPS, DagBag, parse
from tests.unit.dags.failovers import STARTING, Failover

VARIABLES = {"mm2_source_folder": "/a", "mm2_target_folder": "/b", "mm2_archive": "/syncs"}


def render(dag: DAG, task_id: str, field: str, variables: object, **params: object) -> object:
    """Return a field of a task as it is when the form was left as it stands, but for ``params``."""
    task: Any = dag.get_task(task_id)
    defaults = {name: dag.params.get_param(name).value for name in dag.params}
    context = {"params": defaults | params, "var": {"value": variables}, "run_id": "r"}
    return task.render_template(getattr(task, field), context)


def test_a_failover_with_the_defaults_of_the_form(
    run: Failover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where both variables are set, nothing has to be filled in, from the check to the report."""
    monkeypatch.setenv("AIRFLOW_VAR_MM2_SOURCE_FOLDER", str(run.source.folder))
    monkeypatch.setenv("AIRFLOW_VAR_MM2_TARGET_FOLDER", str(run.target))
    monkeypatch.setenv("AIRFLOW_VAR_MM2_ARCHIVE", str(run.target / "never-made"))
    run.worker.conf = {}
    for task_id in STEPS:
        run.run(task_id)
    (conf,) = run.worker.triggered.values()
    assert conf["folder"] == str(run.target)
    assert conf["starting_offsets"] == STARTING
    reports = run.target.with_name("target-reports")
    assert list(reports.rglob("*.json"))


def test_the_form_comes_before_the_variables(failover: DAG) -> None:
    """A folder that was filled in is taken."""
    told = {"source_folder": "/mine"}
    assert render(failover, "stop_source", "control", VARIABLES, **told) == "/mine/control"


@pytest.mark.parametrize(
    ("variables", "source", "target"),
    [({}, "/tmp/orders/source", "/tmp/orders/target"), (VARIABLES, "/a", "/b")],  # noqa: S108
)
def test_every_dag_takes_the_same_folders(
    bag: DagBag, failover: DAG, variables: dict[str, str], source: str, target: str
) -> None:
    """The failover and the readiness look at one folder; the drill leaves the choice to them."""
    assert render(failover, "stop_source", "control", variables) == f"{source}/control"
    readiness = bag.dags["mm2_readiness"]
    assert render(readiness, "check", "control", variables) == f"{source}/control"
    drill = bag.dags["mm2_drill"]
    conf: Any = render(drill, "drill", "conf", variables)
    assert (conf["source_folder"], conf["target_folder"]) == ("", "")
    assert render(failover, "start_drill", "job_folders", variables, **conf) == {
        "source folder": source,
        "target folder": target,
    }


@pytest.mark.parametrize(
    ("mode", "told", "archive"),
    [
        ("disaster", None, "/syncs"),
        ("disaster", "/mine", "/mine"),
        ("planned", None, ""),
        ("planned", "/mine", "/mine"),
    ],
)
def test_the_variable_of_the_archive_is_for_a_disaster(
    failover: DAG, mode: str, told: str | None, archive: str
) -> None:
    """Otherwise a failover whose archive was never made would need one."""
    params = {"mode": mode, "archive": told}
    assert render(failover, "translate", "archive", VARIABLES, **params) == archive


@pytest.mark.parametrize(
    ("variables", "archive"),
    [({}, "/tmp/mm2-syncs"), (VARIABLES, "/syncs")],  # noqa: S108 - the example's own
)
def test_the_archive_is_written_where_a_disaster_reads_it(
    bag: DagBag, variables: dict[str, str], archive: str
) -> None:
    """By its schedule, too, which fills in no form."""
    assert render(bag.dags["mm2_archive_syncs"], "archive", "archive", variables) == archive


def test_no_variable_is_read_while_dags_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each parse would ask Airflow's database for them."""

    def refuse(*_arguments: object, **_keywords: object) -> None:
        raise AssertionError("a variable was read")

    monkeypatch.setattr("airflow.sdk.Variable.get", refuse)
    monkeypatch.setattr("airflow.models.Variable.get", refuse)
    assert parse(FOLDER).import_errors == {}
