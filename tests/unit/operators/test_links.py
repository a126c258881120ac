"""The links of tasks: which page they open, and what the page learns from them."""

import pkgutil
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from airflow.providers.common.compat.sdk import BaseOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

from airflow_mm2_offsets import operators, sensors
from airflow_mm2_offsets.operators.drill_teardown import TearDownDrillOperator
from airflow_mm2_offsets.operators.links import PageLink, page_links
from airflow_mm2_offsets.operators.rollback import RollbackFailoverOperator
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from airflow_mm2_offsets.sensors.stopped import SparkStoppedSensor

KEY = SimpleNamespace(dag_id="a dag", run_id="manual__2026+00:00", task_id="t", map_index=3)


def query_of(operator: object, page: str = "plan") -> dict[str, list[str]]:
    address = PageLink(page).get_link(operator, ti_key=KEY)
    assert urlsplit(address).path == f"mm2-offsets/page/{page}"
    return parse_qs(urlsplit(address).query)


def test_a_link_names_its_task_and_what_the_overview_needs() -> None:
    """Ids survive the address as they are."""
    task = TranslateOffsetsOperator(task_id="t", positions={}, mode="drill", mm2_conn_id="mm2 x")
    assert query_of(task) == {
        "dag_id": ["a dag"],
        "run_id": ["manual__2026+00:00"],
        "task_id": ["t"],
        "map_index": ["3"],
        "conn_id": ["mm2 x"],
        "mode": ["drill"],
    }


@pytest.mark.parametrize("given", [True, "True", "true"])
def test_a_dry_run_is_marked(given: object) -> None:
    """The overview passes it over."""
    task = SimpleNamespace(mm2_conn_id="mm2", is_dry_run=given)
    assert query_of(task)["is_dry_run"] == ["true"]


def test_a_sensors_mode_is_no_mode_of_a_failover() -> None:
    """Airflow's ``poke`` says nothing of the failover."""
    sensor = SparkStartedSensor(task_id="t", checkpoint="/c")
    assert "mode" not in query_of(sensor, "run")


def test_a_link_is_relative() -> None:
    """A proxy may serve Airflow below a path that no worker knows; Airflow's page has a base."""
    address = PageLink("run").get_link(SimpleNamespace(), ti_key=KEY)
    assert not urlsplit(address).netloc
    assert not address.startswith("/")


def test_what_a_task_does_to_the_job_is_marked() -> None:
    """By its link, so that a user's subclass counts; the tear-down of a drill stops no job."""
    for operator, job in {
        StopSparkStreamingOperator: "stops",
        SparkStoppedSensor: "stops",
        SparkStartedSensor: "starts",
        RollbackFailoverOperator: "rolls_back",
        TearDownDrillOperator: "",
    }.items():
        subclass: Any = type("Subclass", (operator,), {})
        links = [link for link in subclass.operator_extra_links if isinstance(link, PageLink)]
        assert [link.job for link in links] == [job], operator


def test_a_report_links_to_the_timeline() -> None:
    """It has a key of its own, by which the overview finds how runs ended."""
    link = PageLink("report")
    assert "/page/run?" in link.get_link(SimpleNamespace(), ti_key=KEY)
    assert (link.xcom_key, link.name) == ("mm2_offsets_link_report", "Failover report")


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
    ]
    assert len(found) > 25
    for each in found:
        links = list(each.operator_extra_links)
        assert any(isinstance(link, PageLink) for link in links), each
        if issubclass(each, TriggerDagRunOperator):
            assert len(links) == 1 + len(list(TriggerDagRunOperator.operator_extra_links)), each


def test_links_are_kept_beside_those_of_another_class() -> None:
    """The other's come first."""
    theirs = PageLink("plan")

    class Other(BaseOperator):
        operator_extra_links = (theirs,)

    assert page_links("run", beside=Other)[0] is theirs
