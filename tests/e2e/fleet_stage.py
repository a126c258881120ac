"""Clusters, MirrorMaker 2, Airflow and light jobs: the stage on which a fleet is moved."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from demo.environment import BUILD, LONGEST_WAIT, ROOT
from stack import jars
from stack.airflow import Airflow
from stack.local import LocalStack
from stack.topics import create_topic
from stack.waiting import wait_until
from tests.e2e.light_jobs import DAG, STREAM, LightCluster, LightJob, rows, written_at

FLEET = "mm2_fleet"
PARTITIONS = 2
PAUSE_SECONDS = 0.5


@dataclass
class FleetStage:
    """Starts everything for a number of jobs, each with a topic of its own."""

    folder: Path
    count: int
    stop_timeout: float = 60.0
    parallelism: int = 2
    """Tasks at work at once: more of them starve the scheduler of this many cores."""
    numbers: dict[str, int] = field(default_factory=dict)
    """How many records each topic has."""

    def __post_init__(self) -> None:
        fetched = jars.fetch(BUILD, progress=print)
        self.stack = LocalStack(self.folder / "kafka", fetched.kafka, progress=print)
        self.cluster = LightCluster(inbox=self.folder / "inbox")
        self.names = [f"job{number:02}" for number in range(self.count)]
        self.airflow = Airflow(
            self.folder / "airflow",
            self._dags(),
            connections=self._connections(),
            env={
                "AIRFLOW__CORE__PARALLELISM": str(self.parallelism),
                "AIRFLOW__MM2_OFFSETS__JOBS_FILE": str(self.folder / "jobs.json"),
            },
            progress=print,
        )
        self._stopping = threading.Event()
        self._writer = threading.Thread(target=self._write, daemon=True)

    @contextmanager
    def running(self) -> Iterator["FleetStage"]:
        with ExitStack() as opened:
            opened.callback(self.airflow.stop)
            self.airflow.start_database()
            opened.enter_context(self.stack)
            for name in self.names:
                create_topic(self.stack.source, self.topic(name), PARTITIONS)
            mirror = {"offset.lag.max": "5", "offset-syncs.topic.location": "source"}
            self.stack.create_mirror("fleet-.*", **mirror)
            opened.enter_context(self.cluster.running())
            self._writer.start()
            opened.callback(self.stop_writing)
            for name in self.names:
                self.cluster.start(LightJob(self.source(name), self.topic(name), self.stack.source))
            self.airflow.start()
            self.airflow.api.wait_dags(FLEET, STREAM)
            self.wait("each job to read", lambda: all(map(self.delivered, self.names)))
            yield self

    @staticmethod
    def topic(name: str) -> str:
        return f"fleet-{name}"

    def source(self, name: str) -> Path:
        return self.folder / "source" / name

    def target(self, name: str) -> Path:
        return self.folder / "target" / name

    def delivered(self, name: str) -> dict[str, int]:
        return rows(self.source(name) / "output", self.target(name) / "output")

    def write_jobs(self, waves: dict[str, int]) -> None:
        """Write the file of jobs: each job's name and wave."""
        jobs = [
            SparkJob(
                name=name,
                homes=(
                    Home(cluster="source", folder=str(self.source(name))),
                    Home(cluster="target", folder=str(self.target(name))),
                ),
                dag=STREAM,
                records=str(self.folder / "records"),
                wave=wave,
            )
            for name, wave in waves.items()
        ]
        content = {"jobs": [job.to_json() for job in jobs]}
        (self.folder / "jobs.json").write_text(json.dumps(content, indent=1))

    def trigger(self, **params: object) -> str:
        # Nobody answers here, and a busy machine reads more records again.
        conf = {"to": "target", "approve": "never", **params}
        return self.airflow.api.trigger(FLEET, conf)

    def wait_end(self, run_id: str, seconds: float = 2 * LONGEST_WAIT) -> str:
        """Wait until a run has ended; return its state."""
        api = self.airflow.api
        ends = {"success", "failed"}
        self.wait("the fleet's end", lambda: api.state(FLEET, run_id) in ends, seconds)
        return str(api.state(FLEET, run_id))

    def report(self, run_id: str) -> dict[str, Any]:
        return dict(self.airflow.api.xcom(FLEET, run_id, "report_fleet"))

    def outcomes(self, run_id: str) -> dict[str, str]:
        return {job["name"]: job["outcome"] for job in self.report(run_id)["jobs"]}

    def wait(
        self, what: str, condition: Callable[[], object], seconds: float = LONGEST_WAIT
    ) -> None:
        def is_met() -> bool:
            self.airflow.check()
            assert not self.cluster.errors, self.cluster.errors
            return bool(condition())

        def say(line: str) -> None:
            print(line)  # noqa: T201 - it speaks to whoever has started it
            self.airflow.api.refuse_questions()

        wait_until(is_met, what, seconds=seconds, progress=say)

    def stop_writing(self) -> None:
        self._stopping.set()
        self._writer.join()

    def _has_all(self, name: str, due: set[str]) -> bool:
        return due <= self.delivered(name).keys()

    def check_all_once(self) -> None:
        """See that each record was written once, and by one job at a time."""
        self.stop_writing()
        for name in self.names:
            due = {str(number) for number in range(self.numbers[name])}
            self.wait(f"all records of {name}", partial(self._has_all, name, due))
            assert set(self.delivered(name).values()) == {1}, name
            before = written_at(self.source(name) / "output")
            after = written_at(self.target(name) / "output")
            assert after, name
            assert max(before) < min(after), name
        assert not self.cluster.refused, self.cluster.refused

    @property
    def written(self) -> int:
        """How many records all topics have."""
        return sum(self.numbers.values())

    def _write(self) -> None:
        producer = Producer({"bootstrap.servers": self.stack.source})
        while not self._stopping.wait(PAUSE_SECONDS):
            for name in self.names:
                number = self.numbers.get(name, 0)
                producer.produce(self.topic(name), str(number), partition=number % PARTITIONS)
                self.numbers[name] = number + 1
            producer.flush()

    def _dags(self) -> Path:
        folder = self.folder / "dags"
        folder.mkdir(parents=True)
        text = (ROOT / "dags" / "mm2_fleet.py").read_text()
        stop = {"timeout": self.stop_timeout, "quiet_period": 2.0}
        told = (
            f'        arguments={{"stop_source": {stop}}},\n'
            f'        default_args={{"retry_delay": timedelta(seconds=3)}},\n'
        )
        end = '        at_once="{{ params.at_once }}",\n'
        assert end in text
        text = text.replace(end, end + told)
        text = text.replace(
            "from airflow.sdk import", "from datetime import timedelta\nfrom airflow.sdk import", 1
        )
        (folder / "mm2_fleet.py").write_text(text)
        inbox = f"INBOX = {str(self.cluster.inbox)!r}\n"
        (folder / "light_stream.py").write_text(inbox + DAG.lstrip())
        return folder

    def _connections(self) -> dict[str, dict[str, Any]]:
        mirror = {
            "replication_policy": "identity",
            "connect_url": self.stack.connect_url,
            "source_kafka_conn_id": "kafka_source",
            "target_kafka_conn_id": "kafka_target",
            "source_alias": "source",
            "target_alias": "target",
            "offset_syncs_topic_location": "source",
        }
        sides = {"kafka_source": self.stack.source, "kafka_target": self.stack.target}
        return {
            **{
                name: {"conn_type": "kafka", "extra": {"bootstrap.servers": servers}}
                for name, servers in sides.items()
            },
            "mm2_default": {"conn_type": "mm2", "extra": mirror},
        }
