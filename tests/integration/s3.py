"""A real S3 server on loopback (moto's), with one bucket."""

import json
from collections.abc import Iterable
from threading import Thread
from typing import TYPE_CHECKING, Self

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from stack.process import free_ports

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

BUCKET = "lake"
USER, PASSWORD, REGION = "nobody", "nothing", "us-east-1"


class Server:
    """Moto's S3 in this process; it can refuse to write, or write over."""

    def __init__(self) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.refuses_to_write = ""
        """The suffix of object names that are refused; empty refuses none."""
        self.ignores_conditions = False
        """Whether it writes over an object that is to be created only if there is none."""
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", port, self._answer, threaded=True)
        self._thread = Thread(target=self._server.serve_forever)

    def _answer(self, environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        name, end = environ["PATH_INFO"], self.refuses_to_write
        if end and name.endswith(end) and environ["REQUEST_METHOD"] in ("PUT", "POST"):
            start("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"]
        if self.ignores_conditions:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        answer: Iterable[bytes] = self._app(environ, start)
        return answer

    def connection(self) -> str:
        """Return an Airflow connection to it."""
        fields = {
            "conn_type": "aws",
            "login": USER,
            "password": PASSWORD,
            "extra": {"endpoint_url": self.url, "region_name": REGION},
        }
        return json.dumps(fields)

    def spark_conf(self) -> dict[str, str]:
        """Return the settings with which Spark reaches it."""
        conf = {
            "endpoint": self.url,
            "endpoint.region": REGION,
            "path.style.access": "true",
            "access.key": USER,
            "secret.key": PASSWORD,
        }
        return {f"spark.hadoop.fs.s3a.{key}": to for key, to in conf.items()}

    def __enter__(self) -> Self:
        self._thread.start()
        client = boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=USER,
            aws_secret_access_key=PASSWORD,
        )
        client.create_bucket(Bucket=BUCKET)
        client.close()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
