"""An S3 server (moto's) in its own process, which can be killed, and paused so that it hangs.

It stands for the storage of a job's checkpoint that is lost together with the source. Killed, its
address refuses each connection, as where a service is gone. Paused, it takes connections and never
answers, as where the storage behind it is gone: only a deadline ends a request then. It keeps
objects in memory: they survive a pause, not a kill.
"""

import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import httpx
from upath import UPath

from stack.process import Program, free_ports
from stack.waiting import Progress, quiet

BUCKET, REGION = "lake", "us-east-1"
USER, PASSWORD = "nobody", "nothing"


class S3Storage:
    """An S3 server on loopback with one bucket; runs within a ``with`` block.

    Args:
        folder: Where its log is written.
        password: What its user presents; it takes any.
        progress: Told what is being waited for.
    """

    def __init__(
        self, folder: Path, *, password: str = PASSWORD, progress: Progress = quiet
    ) -> None:
        """Choose the port; nothing runs yet."""
        self._password = password
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self._progress = progress
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        self._program = Program("the S3 server", command, log=folder / "s3.log")

    def __enter__(self) -> Self:
        """Start it, with an empty bucket."""
        self._program.start()
        self._program.wait_ready(self._answers, progress=self._progress)
        httpx.put(f"{self.url}/{BUCKET}", timeout=30).raise_for_status()
        return self

    def __exit__(self, *_error: object) -> None:
        """End it."""
        self._program.kill()

    def pause(self) -> None:
        """Let it answer nothing from now on."""
        self._program.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it answer again, with all it held."""
        self._program.signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL it: what it held is lost."""
        self._program.kill()

    def connection(self) -> Mapping[str, Any]:
        """Return an Airflow connection to it."""
        return {
            "conn_type": "aws",
            "login": USER,
            "password": self._password,
            "extra": {"endpoint_url": self.url, "region_name": REGION},
        }

    def path(self, key: str) -> UPath:
        """Return an object or a folder, to be read from here."""
        return UPath(
            f"s3://{BUCKET}/{key}",
            key=USER,
            secret=self._password,
            client_kwargs={"endpoint_url": self.url, "region_name": REGION},
            use_listings_cache=False,
            skip_instance_cache=True,
        )

    def spark_conf(self) -> dict[str, str]:
        """Return the settings with which Spark reaches it."""
        conf = {
            "endpoint": self.url,
            "endpoint.region": REGION,
            "path.style.access": "true",
            "access.key": USER,
            "secret.key": self._password,
        }
        return {f"spark.hadoop.fs.s3a.{key}": to for key, to in conf.items()}

    def _answers(self) -> bool:
        try:
            return httpx.get(self.url, timeout=5).is_success
        except httpx.TransportError:
            return False
