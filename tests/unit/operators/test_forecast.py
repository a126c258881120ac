"""ForecastFailoverOperator."""

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.archive.incremental_read import now_in_milliseconds
from airflow_mm2_offsets.core.forecast import FailoverForecast
from airflow_mm2_offsets.errors import ConfigurationError, PlanError
from airflow_mm2_offsets.operators.forecast import ForecastFailoverOperator
from airflow_mm2_offsets.planning import forecast as forecast_module
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.translate_task import translate
from tests.unit.operators.worker import Worker


@pytest.fixture
def plan(worker: Worker, all_copied: Clusters, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A plan of a job that has read up to 7, of clusters that hold all."""
    all_copied.connect(monkeypatch)
    monkeypatch.setattr("airflow_mm2_offsets.planning.lost_parts.PROBE_SECONDS", 0.05)
    worker.run(translate(positions='{"orders":{"0":7}}'))
    made: dict[str, Any] = worker.xcoms["translate", "return_value"]
    return made


def _forecast(worker: Worker, plan: Any, **settings: Any) -> FailoverForecast:  # noqa: ANN401 - JSON
    with DAG("failover", schedule=None):
        task = ForecastFailoverOperator(task_id="forecast", plan=plan, **settings)
    worker.run(task)
    return FailoverForecast.from_json(worker.xcoms["forecast", "return_value"])


def test_the_forecast_and_its_summary_are_pushed(worker: Worker, plan: dict[str, Any]) -> None:
    """XCom has the JSON, one paragraph, and the table line by line."""
    told = _forecast(worker, plan, mode="planned")
    assert told.at_risk.at_most == 0
    assert told.lost_at is None
    summary = worker.xcoms["forecast", "summary"]
    assert summary.startswith("At risk: at most 0 records")
    assert "\n" not in summary
    table = worker.xcoms["forecast", "table"]
    assert table[0].lower() in summary.lower()
    assert [line for line in table if line.startswith("orders[0]  ")]


def test_a_retry_says_the_same(
    worker: Worker, plan: dict[str, Any], all_copied: Clusters, tmp_path: Path
) -> None:
    """The kept forecast is returned as it was, whatever the clusters say since."""
    path = tmp_path / "kept" / "forecast.json"
    all_copied.source.is_running = False
    settings = {"forecast_path": str(path), "max_rate": "5", "lost_at": "None"}
    first = _forecast(worker, plan, **settings)
    assert first.lost_at is not None
    all_copied.source.is_running = True
    all_copied.source.produce("orders", 0, [b"more"])
    assert _forecast(worker, plan, **settings) == first


def test_another_request_keeps_the_time_of_the_loss(
    worker: Worker, plan: dict[str, Any], all_copied: Clusters, tmp_path: Path
) -> None:
    """A new rate makes a new forecast, of a source that was lost when the first one was made."""
    path = tmp_path / "forecast.json"
    all_copied.source.is_running = False
    first = _forecast(worker, plan, forecast_path=str(path))
    second = _forecast(worker, plan, forecast_path=str(path), max_rate=7)
    assert second.request.max_rate == 7
    assert second.lost_at == first.lost_at
    assert json.loads(path.read_text())["request"]["max_rate"] == 7


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"max_rate": "fast"}, r"max_rate: 'fast' is not a number"),
        ({"max_rate": -1}, r"max_rate: '-1' is not a number"),
        ({"mode": "panic"}, r"mode is 'panic'; give one of planned, disaster, drill, failback"),
        ({"lost_at": "yesterday"}, r"lost_at: 'yesterday' is not a time"),
        ({"lost_at": "2099-01-01T00:00:00Z"}, r"lost_at: 2099-01-01\S+ lies in the future"),
        ({"positions_as_of": "2026-11-21"}, r"positions_as_of: '2026-11-21' is not a time"),
    ],
)
def test_a_wrong_setting_is_named(
    worker: Worker, plan: dict[str, Any], settings: dict[str, Any], problem: str
) -> None:
    """The setting, its value and what would be right."""
    with pytest.raises(ConfigurationError, match=problem):
        _forecast(worker, plan, **settings)


def test_a_changed_plan_or_forecast_is_refused(
    worker: Worker, plan: dict[str, Any], tmp_path: Path
) -> None:
    """Numbers that were edited are not shown to whoever decides."""
    with pytest.raises(PlanError, match="was changed since it was made"):
        _forecast(worker, plan | {"created_at": "2026-11-21T00:00:00+00:00"})
    path = tmp_path / "forecast.json"
    _forecast(worker, plan, forecast_path=str(path))
    path.write_text(path.read_text().replace('"lost_at": null', '"lost_at": "x"', 1))
    with pytest.raises(PlanError, match=r"forecast\.json: is not a usable forecast"):
        _forecast(worker, plan, forecast_path=str(path))


def test_another_plan_forgets_when_the_source_was_lost(
    worker: Worker,
    plan: dict[str, Any],
    all_copied: Clusters,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a roll-back the job ran on and its source was written to: the old time is too early."""
    path = tmp_path / "forecast.json"
    all_copied.source.is_running = False
    first = _forecast(worker, plan, forecast_path=str(path))
    all_copied.source.is_running = True
    worker.run(translate(positions='{"orders":{"0":9}}'))
    later = worker.xcoms["translate", "return_value"]
    all_copied.source.is_running = False
    an_hour_later = now_in_milliseconds() + 3_600_000
    monkeypatch.setattr(forecast_module, "now_in_milliseconds", lambda: an_hour_later)
    second = _forecast(worker, later, forecast_path=str(path))
    assert first.lost_at is not None
    assert second.lost_at is not None
    assert second.lost_at > first.lost_at
