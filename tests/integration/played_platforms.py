"""Platforms that run Spark jobs, played on the loopback as their REST docs describe them.

Each answers a cancel and a submit, and keeps what it was told.
"""

import json
import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

import boto3
import pytest
from moto import mock_aws

from tests.unit.operators.clusters import define

JOB = "7"
"""The id of the job that streams on the source."""


class Platform:
    """A platform with one job."""

    name: ClassVar[str]
    """Of the recipe's DAG, without ``failover_``."""
    params: ClassVar[Mapping[str, str]]
    """Of the recipe, which name the job."""
    is_idempotent: ClassVar[bool] = True
    """Whether a second submit by one run starts nothing, or is refused by the platform."""
    refuses_twice: ClassVar[bool] = False
    needs: ClassVar[str] = "airflow"
    """The package of its provider, which may be installed by `nox -s recipes` alone."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.cancelled: list[str] = []
        self.arguments: list[list[str]] = []
        """Of each job that was started."""
        self.tokens: list[str] = []
        self.is_down = False
        """Whether it refuses every call."""

    @contextmanager
    def running(self, monkeypatch: pytest.MonkeyPatch) -> Iterator["Platform"]:
        """Serve, with the connection that the recipe uses."""
        platform = self

        class Handler(BaseHTTPRequestHandler):
            def _handle(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, answer = platform.handle(
                    self.command, self.path, json.loads(body) if body else {}
                )
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_DELETE = _handle  # noqa: N815 - the base's names

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                self.connect(monkeypatch, int(server.server_address[1]))
                yield self
            finally:
                server.shutdown()
                thread.join()

    def handle(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Keep a call, and answer it."""
        self.calls.append((method, path))
        return (403, {"message": "forbidden"}) if self.is_down else self.answer(method, path, body)

    def connect(self, monkeypatch: pytest.MonkeyPatch, port: int) -> None:
        """Define the connection."""

    @abstractmethod
    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Answer a call as the platform does."""

    def start(self, token: str, arguments: list[str]) -> bool:
        """Start a job; tell whether it is the first of its name."""
        if token in self.tokens:
            return False
        self.tokens.append(token)
        self.arguments.append(arguments)
        return True


class Livy(Platform):
    """https://livy.apache.org/docs/latest/rest-api.html: batches."""

    name, params = "livy", {"batch_id": JOB}
    refuses_twice = True

    def connect(self, monkeypatch: pytest.MonkeyPatch, port: int) -> None:
        define(monkeypatch, "livy_default", conn_type="livy", host="127.0.0.1", port=port)

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if method == "DELETE":
            self.cancelled.append(path.rpartition("/")[2])
            return 200, {"msg": "deleted"}
        batch = {"id": 8, "state": "running", "appId": "application_1_0008", "log": []}
        if method == "POST" and not self.start(body["name"], body["args"]):
            return 400, {"msg": f"Duplicate session name: {body['name']}"}
        return (201 if method == "POST" else 200), batch


class Databricks(Platform):
    """https://docs.databricks.com/api/workspace/jobs: cancelrun, submit, getrun."""

    name, params = "databricks", {"databricks_run_id": JOB}

    def connect(self, monkeypatch: pytest.MonkeyPatch, port: int) -> None:
        place: dict[str, Any] = {
            "host": "127.0.0.1",
            "port": port,
            "schema": "http",
            "password": "token",
        }
        define(monkeypatch, "databricks_default", conn_type="databricks", **place)

    def answer(self, _: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path.endswith("/runs/cancel"):
            self.cancelled.append(str(body["run_id"]))
            return 200, {}
        if path.endswith("/runs/submit"):
            (task,) = body["tasks"]
            self.start(body["idempotency_token"], task["spark_python_task"]["parameters"])
            self.environment = task["new_cluster"]["spark_env_vars"]
            return 200, {"run_id": 8}
        state = {"life_cycle_state": "RUNNING", "state_message": ""}
        return 200, {"run_id": 8, "run_page_url": "https://host/#run/8", "state": state}


class Kubernetes(Platform):
    """The API of custom objects, for sparkoperator.k8s.io/v1beta2."""

    name, params = "spark_kubernetes", {"application": JOB}
    needs = "airflow.providers.cncf.kubernetes"

    def connect(self, monkeypatch: pytest.MonkeyPatch, port: int) -> None:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "played",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "played", "context": {"cluster": "c", "user": "u"}}],
        }
        extra = {"kube_config": json.dumps(config)}
        define(monkeypatch, "kubernetes_default", conn_type="kubernetes", extra=extra)

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        folder = "/apis/sparkoperator.k8s.io/v1beta2/namespaces/spark/sparkapplications"
        place = urlsplit(path).path
        assert place.startswith(folder), place
        if method == "DELETE":
            self.cancelled.append(place.removeprefix(f"{folder}/"))
            return 200, {"kind": "Status", "status": "Success"}
        if not self.start(body["metadata"]["name"], body["spec"]["arguments"]):
            return 409, {"kind": "Status", "reason": "AlreadyExists", "code": 409}
        return 201, body


class Dataproc(Platform):
    """https://cloud.google.com/dataproc/docs/reference/rest: projects.regions.jobs."""

    name, params = "dataproc", {"job_id": JOB}
    refuses_twice = True
    needs = "airflow.providers.google"

    def connect(self, monkeypatch: pytest.MonkeyPatch, port: int) -> None:
        from google.auth.credentials import AnonymousCredentials  # noqa: PLC0415 - of its provider
        from google.cloud.dataproc_v1 import JobControllerClient  # noqa: PLC0415
        from google.cloud.dataproc_v1.services.job_controller import transports  # noqa: PLC0415

        transport = transports.JobControllerRestTransport(
            host=f"127.0.0.1:{port}", url_scheme="http", credentials=AnonymousCredentials()
        )
        client = JobControllerClient(transport=transport)
        hook = "airflow.providers.google.cloud.hooks.dataproc.DataprocHook"
        monkeypatch.setattr(f"{hook}.get_job_client", lambda *_, **__: client)
        define(monkeypatch, "google_cloud_default", conn_type="google_cloud_platform")

    def answer(self, _: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        place, _, verb = urlsplit(path).path.rpartition(":")
        if verb == "cancel":
            self.cancelled.append(place.rpartition("/")[2])
            return 200, {"reference": {"jobId": JOB}}
        job = body["job"]
        if not self.start(job["reference"]["jobId"], job["pysparkJob"]["args"]):
            status = {"code": 409, "message": "409 Already exists", "status": "ALREADY_EXISTS"}
            return 409, {"error": status}
        return 200, job


class _Aws(Platform):
    """What moto plays, in this process."""

    @contextmanager
    def running(self, monkeypatch: pytest.MonkeyPatch) -> Iterator["Platform"]:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "eu-west-1",
        }.items():
            monkeypatch.setenv(name, value)
        define(monkeypatch, "aws_default", conn_type="aws")
        with mock_aws():
            self.prepare()
            monkeypatch.setattr("botocore.client.BaseClient._make_api_call", self._count())
            yield self

    def _count(self) -> Any:  # noqa: ANN401 - boto's method
        from botocore.client import BaseClient  # noqa: PLC0415 - patched by moto by now

        call = BaseClient._make_api_call  # noqa: SLF001 - the one place that all calls pass

        def counted(client: Any, operation: str, arguments: Any) -> Any:  # noqa: ANN401 - boto's
            self.calls.append((operation, json.dumps(arguments, default=str)))
            if self.is_down:
                raise ConnectionError("forbidden")
            self.note(operation, arguments)
            return call(client, operation, arguments)

        return counted

    @abstractmethod
    def prepare(self) -> None:
        """Make clusters, and the job."""

    @abstractmethod
    def note(self, operation: str, arguments: Mapping[str, Any]) -> None:
        """Keep what a call asks for."""

    def answer(self, *_: object) -> tuple[int, dict[str, Any]]:
        raise AssertionError


class Emr(_Aws):
    """Steps of a cluster."""

    name, is_idempotent = "emr", False

    def prepare(self) -> None:
        emr = boto3.client("emr")
        instances = {"MasterInstanceType": "m5.xlarge", "SlaveInstanceType": "m5.xlarge"}
        ids = [
            emr.run_job_flow(
                Name=name,
                ReleaseLabel="emr-7.0.0",
                Instances={**instances, "InstanceCount": 2, "KeepJobFlowAliveWhenNoSteps": True},
                JobFlowRole="r",
                ServiceRole="r",
            )["JobFlowId"]
            for name in ("source", "target")
        ]
        self.source = ids[0]
        vars(self)["params"] = {"source_cluster": ids[0], "target_cluster": ids[1]}

    def note(self, operation: str, arguments: Mapping[str, Any]) -> None:
        if operation == "TerminateJobFlows":
            self.cancelled += [
                JOB if id_ == self.source else id_ for id_ in arguments["JobFlowIds"]
            ]
        if operation == "AddJobFlowSteps":
            (step,) = arguments["Steps"]
            self.arguments.append(step["HadoopJarStep"]["Args"])


class EmrServerless(_Aws):
    """Job runs of an application."""

    name = "emr_serverless"

    def prepare(self) -> None:
        serverless = boto3.client("emr-serverless")
        application = serverless.create_application(
            name="a", releaseLabel="emr-7.0.0", type="SPARK", clientToken="c"
        )["applicationId"]
        role = "arn:aws:iam::123456789012:role/orders"
        self.job = serverless.start_job_run(
            applicationId=application, executionRoleArn=role, clientToken="d"
        )["jobRunId"]
        names = {"application": application, "job_run": self.job, "role": role}
        vars(self)["params"] = names

    def note(self, operation: str, arguments: Mapping[str, Any]) -> None:
        if operation == "CancelJobRun":
            self.cancelled.append(JOB if arguments["jobRunId"] == self.job else "another")
        if operation == "StartJobRun":
            driver = arguments["jobDriver"]["sparkSubmit"]
            self.start(arguments["clientToken"], driver["entryPointArguments"])


PLATFORMS = (Livy, Databricks, Emr, EmrServerless, Kubernetes, Dataproc)
