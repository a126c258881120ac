"""Each operator's work is a step: what it is called, from when it counts, and what it sends."""

import re
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG
from airflow.sdk.execution_time.comms import DeferTask

import airflow_mm2_offsets
from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.observability import metrics
from airflow_mm2_offsets.operators import step as operators_step
from airflow_mm2_offsets.operators.checkpoint import ReadSparkCheckpointOperator
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.sensors.checkpoint import SparkStartedSensor
from tests.unit.observability.conftest import Exporter
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.translate_task import plan_of, translate
from tests.unit.operators.worker import Worker, events, rebuild
from tests.unit.spark import checkpoints

PACKAGE = Path(airflow_mm2_offsets.__file__).parent


@pytest.fixture(autouse=True)
def exporter(monkeypatch: pytest.MonkeyPatch) -> Exporter:
    exporter = Exporter()
    monkeypatch.setattr(metrics, "Stats", exporter)
    return exporter


def _started(folder: Path, **settings: Any) -> SparkStartedSensor:
    with DAG("failover", schedule=None, params={"policy": "planned"}):
        return SparkStartedSensor(
            task_id="wait",
            checkpoint=str(folder / "checkpoint"),
            **{"timeout": 5, "poke_interval": 0.02, **settings},
        )


@pytest.mark.parametrize("path", [*PACKAGE.glob("operators/*.py"), *PACKAGE.glob("sensors/*.py")])
def test_every_operator_is_a_step(path: Path) -> None:
    """No ``execute`` runs without the decorator: it would have no span, no errors, no run id."""
    for decorators in re.findall(r"((?:    @.*\n)*)    def execute\(", path.read_text()):
        assert "@fails_at_once()" in decorators, path


def test_a_plan_has_its_run_and_its_numbers(
    worker: Worker, all_copied: Clusters, exporter: Exporter
) -> None:
    """The plan names the DAG run; the metrics name DAG and connection."""
    assert all_copied
    worker.run(translate(positions={"orders": {"0": "4"}}))
    assert plan_of(worker).run_id == worker.run_id
    exact, *_ = exporter.tags("positions")
    known = {"dag_id": "failover", "conn_id": "mm2_default", "policy": "none"}
    assert exact == known | {"status": "exact"}


def test_a_sensor_that_pokes_is_one_step(
    worker: Worker, tmp_path: Path, exporter: Exporter
) -> None:
    """However often it looks; and its own ``mode`` is not the failover's."""
    checkpoints.simple(tmp_path / "checkpoint")
    worker.run(_started(tmp_path, mode="poke", deferrable=False))
    assert exporter.tags("step_seconds") == [
        {"dag_id": "failover", "policy": "planned", "step": "wait"}
    ]


def test_seconds_last_through_a_deferral(
    worker: Worker, tmp_path: Path, exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resumed task knows when it first started, whatever Airflow tells it."""
    task = _started(tmp_path, deferrable=True)
    now = metrics_clock(monkeypatch, 1_800_000_000.0)
    deferred = worker.run(task)
    assert isinstance(deferred, DeferTask)
    assert exporter.sent == []
    checkpoints.simple(tmp_path / "checkpoint")
    (event,) = events(rebuild(deferred))
    now.append(now[-1] + 3600)
    worker.run(task, after=deferred, event=event)
    assert exporter.values()["step_seconds"] == 3600


def metrics_clock(monkeypatch: pytest.MonkeyPatch, start: float) -> list[float]:
    """Return the times that steps see: the last one is now."""
    times = [start]
    for module in ("operators.step", "observability.tracing"):
        monkeypatch.setattr(f"airflow_mm2_offsets.{module}.time", _Clock(times))
    return times


class _Clock:
    def __init__(self, times: list[float]) -> None:
        self.times = times

    def time(self) -> float:
        return self.times[-1]


def test_a_sensor_that_is_rescheduled_counts_from_its_first_look(
    worker: Worker, tmp_path: Path, exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look has a process of its own."""
    task = _started(tmp_path, mode="reschedule", deferrable=False, timeout=10**9)
    worker.run(task)
    assert worker.rescheduled_from is not None
    assert exporter.sent == []
    checkpoints.simple(tmp_path / "checkpoint")
    metrics_clock(monkeypatch, worker.rescheduled_from.timestamp() + 60)
    worker.run(task)
    assert exporter.values()["step_seconds"] == 60


def test_a_stop_is_one_step_too(worker: Worker, tmp_path: Path, exporter: Exporter) -> None:
    """An error in its resumed part is counted once, by its class."""
    with DAG("failover", schedule=None):
        job = SparkJob(name="orders", homes=(Home(cluster="east", folder=str(tmp_path)),))
        task = StopSparkStreamingOperator(task_id="stop_source", job=job)
    resumed = DeferTask.model_construct(next_method="execute_complete", next_kwargs={})
    with pytest.raises(Exception, match="waited 600 s"):
        worker.run(task, after=resumed, event={"timeout": "no answer"})
    (tags,) = exporter.tags("errors")
    assert tags == {
        "dag_id": "failover",
        "policy": "none",
        "step": "stop_source",
        "kind": "StopError",
    }


def test_an_error_has_the_name_of_its_class(
    worker: Worker, tmp_path: Path, exporter: Exporter
) -> None:
    """Also where it became one that Airflow does not retry."""
    with DAG("failover", schedule=None):
        task = ReadSparkCheckpointOperator(task_id="read", checkpoint=str(tmp_path / "none"))
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "metadata").write_text("no json")
    with pytest.raises(CheckpointError):
        worker.run(task)
    assert [tags["kind"] for tags in exporter.tags("errors") if tags] == ["CheckpointError"]


@pytest.mark.parametrize("arguments", [(), ({"ti": object()},), (object(), {"ti": object()})])
def test_what_is_no_operator_is_no_step(arguments: tuple[object, ...]) -> None:
    """A hook before a task, or a function of a user's."""
    assert operators_step.find_step(arguments) is None


def test_a_context_without_a_run_fails_nothing() -> None:
    """Users' tests call ``execute`` with what they have."""
    found = operators_step.find_step((translate(positions={}), {"ti": object()}))
    assert found is not None
    assert (found.dag_id, found.run_id) == ("", "")
