"""What the real spark-submit does on Kubernetes: its API is played, for no cluster runs here."""

import os
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
from airflow.providers.apache.spark.hooks import spark_submit

from airflow_mm2_offsets.hooks.spark_kill import SparkKillHook
from airflow_mm2_offsets.spark.control import Driver
from tests.unit.operators.clusters import define

DRIVER = Driver(
    application_id="spark-application-1",
    query_id="q",
    run_id="r",
    host="orders-driver",
    pid=7,
    heartbeat=1,
    kubernetes_driver="jobs:orders-driver",
)
ANSWER = b'{"kind": "Status", "apiVersion": "v1", "status": "Success"}'


class Api(ThreadingHTTPServer):
    """The API server, which notes what it is asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        assert isinstance(self.server, Api)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append(f"{self.command} {self.path}")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    do_GET = do_DELETE = do_POST = _answer  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def api() -> Iterator[Api]:
    with Api() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_driver_s_pod_is_deleted(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod that the job names is deleted; its end counts once Kubernetes confirms it."""
    monkeypatch.setattr(spark_submit, "kube_client", SimpleNamespace(), raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    master = f"k8s://http://127.0.0.1:{api.server_port}"
    define(monkeypatch, "spark_pods", conn_type="spark", host=master)
    assert SparkKillHook("spark_pods").kill(DRIVER) is False
    pod = "/api/v1/namespaces/jobs/pods/orders-driver"
    assert api.requests == [f"DELETE {pod}", f"GET {pod}"]
