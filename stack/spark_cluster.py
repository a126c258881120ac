"""A Spark standalone cluster as local JVMs: one master and its workers, on loopback."""

import signal
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Self

import httpx

from stack.process import Program, accepts, free_ports, stop_all
from stack.waiting import Progress, quiet

_DEPLOY = "org.apache.spark.deploy"


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterPorts:
    """Loopback ports of a master: for Spark itself, for submissions by REST, for its page."""

    spark: int
    rest: int
    page: int

    @classmethod
    def free(cls) -> Self:
        """Take free ports."""
        spark, rest, page = free_ports(3)
        return cls(spark=spark, rest=rest, page=page)


FIXED_PORTS = MasterPorts(spark=17077, rest=16066, page=18088)


class SparkCluster:
    """A context manager: a master with workers of one core each.

    Args:
        folder: Holds the logs, and what executors and drivers write.
        workers: How many.
        ports: Fixed ports; free ones where None.
        progress: Told what is being waited for.
    """

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 2,
        ports: MasterPorts | None = None,
        progress: Progress = quiet,
    ) -> None:
        """Choose the ports; nothing runs yet."""
        self.ports = ports or MasterPorts.free()
        self.url = f"spark://127.0.0.1:{self.ports.spark}"
        self.page = f"http://127.0.0.1:{self.ports.page}"
        self._folder = folder
        self._progress = progress
        self._master = self._daemon(
            "master",
            f"{_DEPLOY}.master.Master",
            *("--port", str(self.ports.spark), "--webui-port", str(self.ports.page)),
        )
        self._workers = [self._worker(number) for number in range(1, workers + 1)]

    def __enter__(self) -> Self:
        """Start master and workers, and wait until all have found each other."""
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop the workers, with what they run, and the master."""
        stop_all([*self._workers, self._master])

    def workers_alive(self) -> int:
        """Return how many workers the master counts; none where it does not answer."""
        try:
            answer = httpx.get(f"{self.page}/json/", timeout=5).raise_for_status().json()
        except (httpx.HTTPError, ValueError):  # Its page answers before it has any JSON.
            return 0
        return int(answer["aliveworkers"])

    def _start(self) -> None:
        self._master.start()
        address = f"127.0.0.1:{self.ports.spark}"
        self._master.wait_ready(lambda: accepts(address), progress=self._progress)
        for worker in self._workers:
            worker.start()
        for count, worker in enumerate(self._workers, 1):
            worker.wait_ready(partial(self._has_workers, count), progress=self._progress)

    def _has_workers(self, count: int) -> bool:
        return self.workers_alive() >= count

    def _worker(self, number: int) -> Program:
        work = self._folder / f"worker-{number}"
        return self._daemon(
            f"worker {number}",
            f"{_DEPLOY}.worker.Worker",
            *("--cores", "1", "--memory", "1g", "--webui-port", "0"),
            *("--work-dir", str(work), self.url),
        )

    def _daemon(self, name: str, main: str, *arguments: str) -> Program:
        rest = {"enabled": "true", "host": "127.0.0.1", "port": str(self.ports.rest)}
        options = " ".join(f"-Dspark.master.rest.{key}={to}" for key, to in rest.items())
        return Program(
            f"Spark {name}",
            [_spark_home() / "bin" / "spark-class", main, "--host", "127.0.0.1", *arguments],
            log=self._folder / "logs" / f"{name.replace(' ', '-')}.log",
            env={
                "SPARK_HOME": str(_spark_home()),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_MASTER_OPTS": options,
            },
        )


def _spark_home() -> Path:
    """Return the folder of PySpark, which holds all of Spark."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("PySpark is not installed: make setup")
    return Path(found.origin).parent


def main() -> None:
    """Run a cluster at fixed ports until it is stopped."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    with (
        tempfile.TemporaryDirectory(prefix="spark-cluster-") as folder,
        SparkCluster(Path(folder), ports=FIXED_PORTS, progress=_say) as cluster,
    ):
        _say(f"Master   {cluster.url}, {cluster.workers_alive()} workers of one core")
        _say(f"Page     {cluster.page}")
        _say(f"REST     http://127.0.0.1:{cluster.ports.rest}")
        _say(f'Airflow  {{"conn_type": "spark", "host": "{cluster.url}"}}')
        _say(f"Logs     {folder}/logs, kept while it runs; Ctrl-C stops all")
        try:
            signal.pause()
        except KeyboardInterrupt:
            _say("stopping")


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - to the person who started it


if __name__ == "__main__":
    main()
