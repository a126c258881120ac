"""Exporters that keep what they are given."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from airflow_mm2_offsets.observability import metrics


@dataclass
class Exporter:
    """In place of Airflow's ``Stats``."""

    sent: list[tuple[str, float, dict[str, str] | None]] = field(default_factory=list)
    fails_with: Exception | None = None

    def gauge(self, name: str, value: float, **named: Any) -> None:
        if self.fails_with is not None:
            raise self.fails_with
        self.sent.append((name, value, named.get("tags")))

    incr = gauge

    def values(self) -> dict[str, float]:
        """Return the last value of each metric, by its name without prefix."""
        return {name.removeprefix("mm2_offsets."): value for name, value, _ in self.sent}

    def tags(self, name: str) -> list[dict[str, str] | None]:
        """Return the tags that a metric was sent with."""
        return [tags for sent, _, tags in self.sent if sent == f"mm2_offsets.{name}"]


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Exporter:
    exporter = Exporter()
    monkeypatch.setattr(metrics, "Stats", exporter)
    return exporter


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """All spans of the test that have ended."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield kept
    provider.shutdown()


def only(spans: InMemorySpanExporter) -> ReadableSpan:
    """Return the one span that has ended."""
    (span,) = spans.get_finished_spans()
    return span
