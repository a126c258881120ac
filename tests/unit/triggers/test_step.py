"""The log of a wait in the triggerer names the run that waits."""

import asyncio
import time
from types import SimpleNamespace

import pytest
from airflow.triggers.base import TriggerEvent
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from structlog.contextvars import get_contextvars

from airflow_mm2_offsets.triggers import polling
from airflow_mm2_offsets.triggers.polling import Done, NotYet, PollingTrigger
from tests.unit.observability.conftest import spans

__all__ = ["spans"]


class _Trigger(PollingTrigger):
    """Notes at each look which run the log would name."""

    wait_for = "nothing"
    settings = ()

    def __init__(self, run_id: str | None) -> None:
        super().__init__(deadline=time.time() + 60, poll_interval=0.001)
        self.seen: list[str | None] = []
        if run_id is not None:
            # The triggerer sets it, with more fields.
            self.task_instance = SimpleNamespace(  # type: ignore[assignment]
                dag_id="mm2_failover", task_id="orders.wait", run_id=run_id
            )

    def poll(self) -> Done | NotYet:
        self.seen.append(get_contextvars().get("run_id"))
        return Done() if len(self.seen) == 3 else NotYet(reason="not yet")


async def _events(trigger: PollingTrigger) -> list[TriggerEvent]:
    return [event async for event in trigger.run()]


def test_each_wait_logs_its_own_run(spans: InMemorySpanExporter) -> None:
    """Also in the threads that poll, though one triggerer runs all waits."""
    triggers = [_Trigger(f"run {number}") for number in range(10)]

    async def run_all() -> None:
        await asyncio.gather(*map(_events, triggers))

    asyncio.run(run_all())
    assert [trigger.seen for trigger in triggers] == [[f"run {number}"] * 3 for number in range(10)]
    ended = spans.get_finished_spans()
    assert {span.name for span in ended} == {"mm2_offsets.wait.wait"}
    assert sorted(str((span.attributes or {})["airflow.dag_run.run_id"]) for span in ended) == [
        f"run {number}" for number in range(10)
    ]


def test_a_wait_that_is_cancelled_ends_its_span(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A triggerer that stops leaves no span open, and has seen no error.

    The first look does not wait for as long as the others.
    """
    monkeypatch.setattr(polling, "FIRST_LOOK_SECONDS", 0.001)
    trigger = _Trigger("run 1")
    trigger.poll_interval = 60

    async def cancel() -> None:
        waiting = asyncio.ensure_future(_events(trigger))
        while not trigger.seen:  # noqa: ASYNC110 - a thread sees it
            await asyncio.sleep(0.001)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    asyncio.run(cancel())
    (span,) = spans.get_finished_spans()
    assert "error.type" not in (span.attributes or {})


def test_a_wait_without_a_task_runs_too() -> None:
    """An asset's watcher has none."""
    trigger = _Trigger(None)
    (event,) = asyncio.run(_events(trigger))
    assert event.payload == {"result": {}}
    assert trigger.seen == [None, None, None]
