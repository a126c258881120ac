"""The links of tasks: which page they open, and what the page learns from them."""

import inspect
import pkgutil
from importlib import import_module
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
from airflow.providers.common.compat.sdk import BaseOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

from airflow_mm2_offsets import operators, sensors
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.request import MoveRequest
from airflow_mm2_offsets.operators.links import TAB, PageLink, page_links
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.plugins.rest import Mm2OffsetsPlugin

KEY = SimpleNamespace(dag_id="a dag", run_id="manual__2026+00:00", task_id="t", map_index=3)
JOB = SparkJob(name="orders", homes=(Home(cluster="east", folder="/east"),), dag="stream")


def query_of(operator: object, page: str = "plan") -> dict[str, list[str]]:
    address = PageLink(page).get_link(operator, ti_key=KEY)
    assert urlsplit(address).path == f"mm2-offsets/page/{page}"
    return parse_qs(urlsplit(address).query)


@pytest.mark.parametrize("job", [JOB, "orders"])
def test_a_link_names_its_task_and_its_job(job: SparkJob | str) -> None:
    """Ids survive the address as they are; a job is named, whether by code or by the file."""
    task = TranslateOffsetsOperator(task_id="t", move=MoveRequest(job=job, policy="drill"))
    assert query_of(task) == {
        "dag_id": ["a dag"],
        "run_id": ["manual__2026+00:00"],
        "task_id": ["t"],
        "map_index": ["3"],
        "job": ["orders"],
        "policy": ["drill"],
    }


def test_a_link_of_a_single_part_names_its_connection() -> None:
    """It has no job."""
    task = TranslateOffsetsOperator(task_id="t", positions={}, mm2_conn_id="mm2 x")
    query = query_of(task)
    assert query["conn_id"] == ["mm2 x"]
    assert "job" not in query


@pytest.mark.parametrize("given", [True, "True", "true"])
def test_a_dry_run_is_marked(given: object) -> None:
    """The page passes it over."""
    task = SimpleNamespace(move={"job": "orders", "dry_run": given})
    assert query_of(task)["is_dry_run"] == ["true"]


def test_a_link_is_relative() -> None:
    """A proxy may serve Airflow below a path that no worker knows; Airflow's page has a base."""
    for page in ("plan", "run"):
        address = PageLink(page).get_link(SimpleNamespace(), ti_key=KEY)
        assert not urlsplit(address).netloc
        assert not address.startswith("/")


@pytest.mark.parametrize("page", ["run", "report"])
def test_the_status_opens_in_the_tab_of_the_run(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's page is around it; where the tab is switched off, there is only ours."""
    link = PageLink(page)
    tab = "dags/a%20dag/runs/manual__2026%2B00%3A00/plugin/mm2-offsets-run"
    assert urlsplit(link.get_link(SimpleNamespace(), ti_key=KEY)).path == tab
    monkeypatch.setenv("AIRFLOW__MM2_OFFSETS__RUN_TAB", "False")
    without = urlsplit(link.get_link(SimpleNamespace(), ti_key=KEY))
    assert without.path == "mm2-offsets/page/run"
    assert parse_qs(without.query)["run_id"] == ["manual__2026+00:00"]
    assert link.xcom_key == f"mm2_offsets_link_{page}"


def test_the_tab_is_the_plugins() -> None:
    """Its name in an address is said once, and the button leads there."""
    (tab,) = (view for view in Mm2OffsetsPlugin.external_views if view["destination"] == "dag_run")
    assert tab["url_route"] == TAB


def test_every_operator_and_sensor_has_a_link() -> None:
    """Beside those of the class that it builds on."""
    found = [
        each
        for package in (operators, sensors)
        for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        for each in vars(import_module(info.name)).values()
        if isinstance(each, type)
        and issubclass(each, BaseOperator)
        and each.__module__ == info.name
        and each.execute is not BaseOperator.execute
        and not inspect.isabstract(each)
    ]
    assert len(found) > 25
    for each in found:
        links = list(each.operator_extra_links)
        assert any(isinstance(link, PageLink) for link in links), each
        # Its button would lead nowhere: no task of ours leaves the XCom that it reads.
        assert not issubclass(each, TriggerDagRunOperator), each


def test_links_are_kept_beside_those_of_another_class() -> None:
    """The other's come first."""
    theirs = PageLink("plan")

    class Other(BaseOperator):
        operator_extra_links = (theirs,)

    assert page_links("run", beside=Other)[0] is theirs
