"""Metrics for Prometheus, of requests and of each index; ``app`` and ``middleware`` use them."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from airflow_mm2_offsets.api.pairs import PairProvider

_PREFIX = "mm2_offsets"


class Metrics:
    """The metrics of an app."""

    def __init__(self, pairs: PairProvider) -> None:
        """Begin at 0."""
        self._registry = CollectorRegistry()
        self._registry.register(_Indexes(pairs))
        self._seconds = Histogram(
            f"{_PREFIX}_request_seconds",
            "Time from a request's head to the end of its answer",
            ["route", "method"],
            registry=self._registry,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 30),
        )
        self._requests = Counter(
            f"{_PREFIX}_requests",
            "Requests answered",
            ["route", "method", "status"],
            registry=self._registry,
        )

    def observe(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answer; ``route`` and ``method`` must be few."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route, method).observe(seconds)

    def render(self) -> bytes:
        """Return all metrics as text."""
        return generate_latest(self._registry)


class _Indexes(Collector):
    """Reads the indexes when Prometheus asks for metrics."""

    def __init__(self, pairs: PairProvider) -> None:
        self._pairs = pairs

    def describe(self) -> Iterator[Metric]:
        yield from ()

    def collect(self) -> Iterator[Metric]:
        labels = ["connection"]
        syncs = GaugeMetricFamily(f"{_PREFIX}_syncs", "Syncs in memory", labels=labels)
        age = GaugeMetricFamily(
            f"{_PREFIX}_index_age_seconds", "Since the syncs were read", labels=labels
        )
        stale = GaugeMetricFamily(
            f"{_PREFIX}_index_stale", "1 where the last refresh failed", labels=labels
        )
        refreshes = CounterMetricFamily(
            f"{_PREFIX}_refreshes", "Refreshes by outcome", labels=[*labels, "outcome"]
        )
        for name, served in self._pairs.served().items():
            state = served.cache.state
            if state.syncs:
                syncs.add_metric([name], len(state.syncs.index))
                age.add_metric([name], state.syncs.age)
            stale.add_metric([name], float(state.error is not None))
            refreshes.add_metric([name, "ok"], state.refreshes)
            refreshes.add_metric([name, "failed"], state.failures)
        yield from (syncs, age, stale, refreshes)
