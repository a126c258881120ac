"""How a number reaches Airflow's exporter."""

import logging

import pytest

from airflow_mm2_offsets.observability import METRICS, MetricKind, Step, emit, run_step
from tests.unit.observability.conftest import Exporter

STEP = Step(
    name="translate",
    dag_id="mm2_failover",
    run_id="manual__1",
    task_id="orders.translate",
    began=0.0,
    policy="planned",
    conn_id="mm2.eu",
)
STATSD = {"AIRFLOW__METRICS__STATSD_ON": "True"}


def test_a_step_gives_the_tags(exporter: Exporter) -> None:
    """Only those of the metric are sent, and what the caller says counts more."""
    with run_step(STEP):
        emit("positions", 3, status="exact")
        emit("ready", 1, policy="drill")
    assert exporter.tags("positions") == [
        {"dag_id": "mm2_failover", "conn_id": "mm2.eu", "policy": "planned", "status": "exact"}
    ]
    assert exporter.tags("ready") == [
        {"dag_id": "mm2_failover", "conn_id": "mm2.eu", "policy": "drill"}
    ]


def test_a_tag_without_a_value_is_none(exporter: Exporter) -> None:
    """An exporter may drop a metric with an empty tag, or with a space in one."""
    emit("failovers", outcome="rolled back")
    assert exporter.tags("failovers") == [
        {"dag_id": "none", "policy": "none", "outcome": "rolled_back"}
    ]


def test_statsd_without_tags_has_the_values_in_the_name(
    exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Airflow does it: the plain name, and one with the values, whose dots are ``__``."""
    for name, value in STATSD.items():
        monkeypatch.setenv(name, value)
    with run_step(STEP):
        emit("positions", 3, status="exact")
    names = [name for name, value, _ in exporter.sent if value == 3]
    assert names == [
        "mm2_offsets.positions",
        "mm2_offsets.positions.mm2_failover.mm2__eu.planned.exact",
    ]


@pytest.mark.parametrize(
    "setting",
    [
        {"STATSD_INFLUXDB_ENABLED": "True"},
        {"STATSD_DATADOG_ENABLED": "True"},
        {"LEGACY_NAMES_ON": "False"},
        {"STATSD_ON": "False"},
    ],
)
def test_names_with_values_are_sent_only_where_tags_are_dropped(
    setting: dict[str, str], exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenTelemetry refuses long names, and an exporter with tags needs none."""
    for name, value in {
        **STATSD,
        **{f"AIRFLOW__METRICS__{k}": v for k, v in setting.items()},
    }.items():
        monkeypatch.setenv(name, value)
    emit("ready", 1)
    assert [name for name, _, _ in exporter.sent] == ["mm2_offsets.ready"]


def test_a_broken_exporter_fails_nothing(
    exporter: Exporter, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says which metric was not sent, and why."""
    exporter.fails_with = OSError("no route to host")
    with caplog.at_level(logging.WARNING):
        emit("ready", 1)
    assert "mm2_offsets.ready was not sent: OSError('no route to host')" in caplog.text


def test_an_unknown_metric_is_a_mistake_of_ours() -> None:
    """A name that the table lacks would never reach a dashboard."""
    with pytest.raises(KeyError):
        emit("redy", 1)


def test_no_metric_has_a_value_for_each_topic_partition() -> None:
    """Tags have few values: ten thousand partitions make no series more."""
    few = {"dag_id", "conn_id", "policy", "status", "step", "kind", "outcome"}
    assert {tag for metric in METRICS.values() for tag in metric.tags} == few
    assert set(MetricKind) == {metric.kind for metric in METRICS.values()}
