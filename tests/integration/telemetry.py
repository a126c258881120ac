"""Receivers of what Airflow exports: StatsD over UDP, and OTLP over HTTP."""

import gzip
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any, Literal

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Tags = frozenset[tuple[str, str]]
HAS_STATSD = find_spec("statsd") is not None


def tags(**values: str) -> Tags:
    """Return tags as ``Collector.metrics`` holds them."""
    return frozenset(values.items())


@dataclass(kw_only=True)
class Collector:
    """What was received."""

    url: str
    metrics: dict[tuple[str, Tags], list[float]] = field(default_factory=dict)
    """The values by name and tags, in the order in which they came."""
    spans: list[Span] = field(default_factory=list)

    def read_metrics(self, body: bytes) -> None:
        """Keep the points of an OTLP request."""
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for metric in (each for scope in resource.scope_metrics for each in scope.metrics):
                for point in [*metric.gauge.data_points, *metric.sum.data_points]:
                    key = metric.name, frozenset(_attributes(point).items())
                    self.metrics.setdefault(key, []).append(point.as_int or point.as_double)

    def read_spans(self, body: bytes) -> None:
        """Keep the spans of an OTLP request."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[Span]:
        """Return the spans of a name, by their start."""
        spans = [span for span in self.spans if span.name == name]
        return sorted(spans, key=lambda span: span.start_time_unix_nano)


def _attributes(of: Any) -> dict[str, Any]:  # noqa: ANN401 - spans and points
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in of.attributes}


def attributes(span: Span) -> dict[str, Any]:
    """Return the attributes of a span."""
    return _attributes(span)


@dataclass(frozen=True, kw_only=True)
class Telemetry:
    """What an Airflow exports, and the variables that make it do so."""

    env: Mapping[str, str]
    collector: Collector
    statsd: list[str]


@contextmanager
def receive(metrics: Literal["otel", "statsd"]) -> Iterator[Telemetry]:
    """Receive spans by OTLP, and metrics by OTLP or StatsD."""
    with otlp_collector() as collector, statsd_server() as (port, statsd):
        env = {
            "AIRFLOW__TRACES__OTEL_ON": "True",
            "OTEL_TRACES_EXPORTER": "otlp_proto_http",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{collector.url}/v1/traces",
        }
        if metrics == "otel":
            env |= {
                "AIRFLOW__METRICS__OTEL_ON": "True",
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"{collector.url}/v1/metrics",
                "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
            }
        elif HAS_STATSD:
            env |= {
                "AIRFLOW__METRICS__STATSD_ON": "True",
                "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
                "AIRFLOW__METRICS__STATSD_PORT": str(port),
            }
        yield Telemetry(env=env, collector=collector, statsd=statsd)


@contextmanager
def otlp_collector() -> Iterator[Collector]:
    """Run an OTLP/HTTP collector on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path == "/v1/traces":
                collector.read_spans(body)
            elif self.path == "/v1/metrics":
                collector.read_metrics(body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(url=f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield collector
        server.shutdown()


@contextmanager
def statsd_server() -> Iterator[tuple[int, list[str]]]:
    """Run a StatsD server on loopback; yield its port and the lines that it receives."""
    lines: list[str] = []

    def receive() -> None:
        while packet := udp.recv(65_536):
            lines.extend(packet.decode().splitlines())

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=receive, daemon=True)
        thread.start()
        yield udp.getsockname()[1], lines
        udp.sendto(b"", udp.getsockname())
        thread.join()
