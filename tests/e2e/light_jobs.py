"""Streaming jobs without Spark: they follow docs/stop-protocol.md, and write Spark's checkpoints.

Twenty of them run as threads of one process, as on a cluster beside Airflow. The DAG
``light_stream`` starts one by a file in the cluster's inbox.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, TopicPartition

from tests.unit.spark import checkpoints

INTERVAL = 0.5
"""Seconds between two batches, heartbeats and looks."""
SIGN_SECONDS = 60.0
"""How long a sign of the stop step counts."""
STREAM = "light_stream"
DAG = """
import json
from pathlib import Path
from airflow.sdk import DAG, Connection, Param, task

NAMES = ("kafka_conn_id", "folder", "output")
with DAG("light_stream", schedule=None, max_active_runs=64,
         params={name: Param(None, type=["null", "string"]) for name in NAMES}):
    @task(retries=2, retry_delay=5)
    def submit(params=None, run_id=None):
        extra = Connection.get(params["kafka_conn_id"]).extra_dejson
        order = {**dict(params), "servers": extra["bootstrap.servers"]}
        name = "".join(each if each.isalnum() else "-" for each in run_id)
        file = Path(INBOX) / f"{name}.tmp"
        file.write_text(json.dumps(order))
        file.rename(file.with_suffix(".json"))
    submit()
"""


class RefusedError(Exception):
    """A job was started where it was moved away from, or beside another one."""


@dataclass
class LightJob:
    """One job on one cluster."""

    folder: Path
    topic: str
    servers: str
    starting_offsets: str = "earliest"
    output: Path | None = None
    is_deaf: threading.Event = field(default_factory=threading.Event)
    """Set: it answers no stop."""
    ended: threading.Event = field(default_factory=threading.Event)
    killed: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.checkpoint, self.control = self.folder / "checkpoint", self.folder / "control"
        self.output = self.output or self.folder / "output"
        self._ids = {"query_id": self._query_id(), "run_id": uuid4().hex}
        self._application = f"light-{uuid4().hex}"
        self._heartbeat = 0
        self._sign: tuple[object, float] = (None, float("-inf"))
        self._positions: dict[int, int] = {}
        self._fences_before = 0

    def run(self) -> None:
        """Run until a stop is answered, or the job was moved away."""
        self.control.mkdir(parents=True, exist_ok=True)
        self._refuse()
        self._beat()
        self._write(
            self.folder / "checkpoint.control.json",
            {"control": self._location(self.control), "application_id": self._application},
        )
        self._refuse()
        consumer = Consumer(
            {"bootstrap.servers": self.servers, "group.id": self._application}
            | {"isolation.level": "read_committed", "enable.auto.commit": False}
        )
        try:
            batch = self._resume(consumer)
            while not self.killed.is_set():
                batch = self._batch(consumer, batch)
                self._beat()
                if self._is_fenced_away() or self._answer(batch - 1):
                    break
        finally:
            consumer.close()
            self._beat(ended=not self.killed.is_set())
            self.ended.set()

    def _resume(self, consumer: Consumer) -> int:
        """Assign the partitions; return the next batch."""
        names = [path.name for path in (self.checkpoint / "commits").glob("*")]
        last = max((int(name) for name in names if name.isdecimal()), default=-1)
        if last >= 0:
            text = (self.checkpoint / "offsets" / str(last)).read_text().splitlines()[-1]
        else:
            offsets = (fence.get("starting_offsets") for fence in reversed(self._fences()))
            text = next(filter(None, offsets), self.starting_offsets)
        self._positions = self._parse(consumer, text)
        assigned = [TopicPartition(self.topic, *each) for each in self._positions.items()]
        consumer.assign(assigned)
        if last < 0:
            line = json.dumps({self.topic: {str(k): v for k, v in self._positions.items()}})
            self._keep("metadata", json.dumps({"id": self._ids["query_id"]}))
            self._keep("sources/0/0", checkpoints.start(line))
        return last + 1

    def _parse(self, consumer: Consumer, text: str) -> dict[int, int]:
        if text != "earliest":
            return {int(number): to for number, to in json.loads(text)[self.topic].items()}
        metadata = consumer.list_topics(self.topic, timeout=30).topics[self.topic]
        return {
            number: consumer.get_watermark_offsets(TopicPartition(self.topic, number), timeout=30)[
                0
            ]
            for number in metadata.partitions
        }

    def _batch(self, consumer: Consumer, number: int) -> int:
        """Do a batch of what is there, the first one in any case; return the next number."""
        found = [each for each in consumer.consume(500, timeout=INTERVAL) if not each.error()]
        if (not found and number > 0) or self._is_fenced_away():
            return number
        for each in found:
            self._positions[int(each.partition() or 0)] = int(each.offset() or 0) + 1
        line = json.dumps({self.topic: {str(k): v for k, v in self._positions.items()}})
        self._keep(f"offsets/{number}", checkpoints.batch(line))
        assert self.output is not None
        self.output.mkdir(parents=True, exist_ok=True)
        rows = [{"value": (each.value() or b"").decode(), "at": time.time()} for each in found]
        _write_whole(self.output / f"rows-{number}.json", json.dumps(rows))
        self._keep(f"commits/{number}", checkpoints.commit())
        return number + 1

    def _answer(self, batch: int) -> bool:
        """Answer an open request, and tell whether there was one."""
        if self.is_deaf.is_set() or (request := self._open_request()) is None:
            return False
        self._beat(stopping=request)  # before the last look: a withdrawal looks for it afterwards
        if self._open_request() != request:
            self._beat()
            return False
        answer = {**self._ids, "batch_id": batch, "offsets": None, "clean": True, "error": None}
        said = {name: answer[name] for name in ("batch_id", "offsets", "clean", "error")}
        whole = {"request_id": request, "application_id": self._application, "queries": [answer]}
        self._write(self.control / "stopped.json", {**whole, **said})
        return True

    def _open_request(self) -> str | None:
        fence = self._newest_fence()
        sign = self._read("stop-heartbeat.json")
        if sign is not None and sign != self._sign[0]:
            self._sign = (sign, time.monotonic() if self._sign[0] is not None else float("-inf"))
        if fence["state"] != "stopping" or time.monotonic() - self._sign[1] > SIGN_SECONDS:
            return None
        answered = (self._read("stopped.json") or {}).get("request_id")
        request_id = str(fence["request_id"])
        return None if request_id == answered else request_id

    def _is_fenced_away(self) -> bool:
        fences = self._fences()
        if any(fence["state"] == "moved" for fence in fences[self._fences_before :]):
            return True
        fence, stopped = self._newest_fence(), self._read("stopped.json") or {}
        is_answered = stopped.get("request_id") == fence.get("request_id")
        return bool(fence["state"] == "stopping" and is_answered)

    def _fences(self) -> list[dict[str, Any]]:
        files = sorted(self.control.glob("fence/[0-9]*.json"))
        return [json.loads(file.read_text()) for file in files]

    def _newest_fence(self) -> dict[str, Any]:
        fences = self._fences()
        return fences[-1] if fences else {"state": "open"}

    def _refuse(self) -> None:
        self._fences_before = len(self._fences())
        if (fence := self._newest_fence())["state"] != "open":
            raise RefusedError(f"{self.folder}: {fence}")
        driver = self._read("driver.json")
        if driver is None or driver["application_id"] == self._application or driver["ended"]:
            return
        deadline = time.monotonic() + 3 * INTERVAL
        while time.monotonic() < deadline:
            if (now := self._read("driver.json")) != driver and now is not None:
                raise RefusedError(f"{self.folder}: another driver runs: {now}")
            self.killed.wait(INTERVAL / 5)

    def _beat(self, **fields: object) -> None:
        self._heartbeat += 1
        query = {**self._ids, "checkpoint": self._location(self.checkpoint)}
        self._write(
            self.control / "driver.json",
            {
                "application_id": self._application,
                **self._ids,
                "queries": [query],
                "control": self._location(self.control),
                "bootstrap_servers": [self.servers],
                "host": "light",
                "pid": 1,
                "processes": {},
                "heartbeat": self._heartbeat,
                "interval": INTERVAL,
                "lease": 4.0,
                "stopping": None,
                "ended": False,
                **fields,
            },
        )

    @staticmethod
    def _location(path: Path) -> str:
        return f"file:{path}"

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            return dict(json.loads((self.control / name).read_text()))
        except FileNotFoundError:
            return None

    def _query_id(self) -> str:
        """Return the id of the checkpoint, or a new one."""
        try:
            return str(json.loads((self.checkpoint / "metadata").read_text())["id"])
        except FileNotFoundError:
            return str(uuid4())

    def _keep(self, name: str, text: str) -> None:
        """Write a file of the checkpoint; readers see it whole or not at all, as with Spark."""
        file = self.checkpoint / name
        file.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(file, text)

    @staticmethod
    def _write(file: Path, values: dict[str, Any]) -> None:
        _write_whole(file, json.dumps({"schema_version": 2, **values}))


def _write_whole(file: Path, text: str) -> None:
    temporary = file.with_name(f".{file.name}.tmp")
    temporary.write_text(text)
    temporary.replace(file)


@dataclass
class LightCluster:
    """Runs jobs, and those that orders in its inbox ask for."""

    inbox: Path
    jobs: list[LightJob] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        self.inbox.mkdir(parents=True)
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join()
            for job in self.jobs:
                job.killed.set()
            for job in self.jobs:
                job.ended.wait(10)

    def start(self, job: LightJob) -> LightJob:
        self.jobs.append(job)
        threading.Thread(target=self._run, args=(job,), daemon=True).start()
        return job

    def _run(self, job: LightJob) -> None:
        try:
            job.run()
        except RefusedError as error:
            self.refused.append(str(error))
        except Exception as error:  # noqa: BLE001 - the test's thread raises it
            self.errors.append(f"{job.folder}: {error!r}")
        finally:
            job.ended.set()

    def _watch(self) -> None:
        begun: set[str] = set()
        while not self._stopping.wait(INTERVAL / 2):
            for file in sorted(self.inbox.glob("*.json")):
                if file.name not in begun:
                    begun.add(file.name)
                    self.start(_ordered(json.loads(file.read_text())))


def _ordered(order: dict[str, Any]) -> LightJob:
    """Return the job that an order starts: its hand-over names the topic."""
    fences = sorted(Path(order["folder"], "control").glob("fence/[0-9]*.json"))
    return LightJob(
        folder=Path(order["folder"]),
        topic=json.loads(fences[-1].read_text())["topics"],
        servers=order["servers"],
        output=Path(order["output"]) if order.get("output") else None,
    )


def rows(*outputs: Path) -> Counter[str]:
    """Return how often each value was written."""
    files = (file for output in outputs for file in output.glob("rows-*.json"))
    return Counter(row["value"] for file in files for row in json.loads(file.read_text()))


def written_at(output: Path) -> list[float]:
    """Return when each row was written, in seconds since 1970."""
    return [
        row["at"] for file in output.glob("rows-*.json") for row in json.loads(file.read_text())
    ]
