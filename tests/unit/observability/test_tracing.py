"""A step's span, seconds, errors and log lines."""

import asyncio
import logging
from dataclasses import replace

import pytest
from airflow.providers.common.compat.sdk import AirflowSkipException
from opentelemetry import trace
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from structlog.contextvars import get_contextvars

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.observability import Step, current_step, run_step
from tests.unit.observability.conftest import Exporter, only
from tests.unit.observability.test_metrics import STEP

NOW = 1_800_000_000.0


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_mm2_offsets.observability.tracing.time.time", lambda: NOW)


def test_a_step_counts_from_its_first_start(exporter: Exporter) -> None:
    """The time before this try of it counts too: the task was deferred then."""
    with run_step(replace(STEP, began=NOW - 90)):
        assert exporter.sent == []
    assert exporter.sent == [
        (
            "mm2_offsets.step_seconds",
            90,
            {"dag_id": "mm2_failover", "policy": "planned", "step": "translate"},
        )
    ]


class TaskDeferred(BaseException):
    """As Airflow's: a base of its own."""


def test_a_deferral_is_no_end_and_no_error(exporter: Exporter, spans: InMemorySpanExporter) -> None:
    """The span says so; the seconds come when the task resumes."""
    with pytest.raises(TaskDeferred), run_step(STEP):
        raise TaskDeferred
    assert exporter.sent == []
    assert only(spans).status.status_code is StatusCode.UNSET
    assert (only(spans).attributes or {})["mm2_offsets.deferred"] is True


def test_an_error_is_counted_by_its_class(exporter: Exporter, spans: InMemorySpanExporter) -> None:
    """The span names the class alone: a message may name folders and hosts."""
    with pytest.raises(ConfigurationError), run_step(STEP):
        raise ConfigurationError("s3://secret/place")
    assert (exporter.tags("errors")[0] or {})["kind"] == "ConfigurationError"
    assert "step_seconds" in exporter.values()
    span = only(spans)
    assert (span.status.status_code, span.status.description) == (
        StatusCode.ERROR,
        "ConfigurationError",
    )
    assert "secret" not in span.to_json()


def test_a_skipped_task_has_no_error(exporter: Exporter, spans: InMemorySpanExporter) -> None:
    """It ended as it was told to."""
    with pytest.raises(AirflowSkipException), run_step(STEP):
        raise AirflowSkipException
    assert set(exporter.values()) == {"step_seconds"}
    assert only(spans).status.status_code is StatusCode.UNSET


def test_a_step_within_a_step_counts_once(exporter: Exporter, spans: InMemorySpanExporter) -> None:
    """A sensor's look is a part of its execute."""
    with run_step(STEP):
        for _ in range(3):
            with run_step(replace(STEP, name="poke")):
                assert current_step() is STEP
    assert len(exporter.sent) == 1
    assert only(spans).name == "mm2_offsets.translate"


def test_a_wait_in_the_triggerer_counts_nothing(
    exporter: Exporter, spans: InMemorySpanExporter
) -> None:
    """The worker does when it resumes the task; the span has a name of its own."""
    with pytest.raises(ConfigurationError), run_step(replace(STEP, is_wait=True)):
        raise ConfigurationError("no")
    assert exporter.sent == []
    assert only(spans).name == "mm2_offsets.translate.wait"


def test_log_lines_name_the_run() -> None:
    """The fields are there while the step runs, and those from before come back."""
    before = get_contextvars()
    with run_step(STEP):
        assert get_contextvars() == before | {
            "dag_id": "mm2_failover",
            "run_id": "manual__1",
            "task_id": "orders.translate",
            "failover_policy": "planned",
        }
    assert get_contextvars() == before
    assert current_step() is None


def test_waits_in_one_loop_do_not_mix() -> None:
    """A triggerer waits for many tasks at once."""

    async def wait(step: Step) -> tuple[str, str]:
        with run_step(step):
            await asyncio.sleep(0)
            current = current_step()
            assert current is not None
            return current.run_id, get_contextvars()["run_id"]

    async def wait_for_all() -> list[tuple[str, str]]:
        steps = [replace(STEP, run_id=str(number), is_wait=True) for number in range(20)]
        return await asyncio.gather(*map(wait, steps))

    assert asyncio.run(wait_for_all()) == [(str(number), str(number)) for number in range(20)]


def test_a_broken_tracer_fails_nothing(
    exporter: Exporter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The step runs without a span, and the log says why."""

    class Broken:
        def start_span(self, *_: object, **__: object) -> None:
            raise OSError("no collector")

    monkeypatch.setattr(trace, "get_tracer", lambda _: Broken())
    with caplog.at_level(logging.WARNING), run_step(STEP):
        pass
    assert set(exporter.values()) == {"step_seconds"}
    assert "mm2_offsets.translate was not started: OSError('no collector')" in caplog.text
