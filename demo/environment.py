"""The programs of the demo: two clusters, MirrorMaker 2, Airflow and a producer."""

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from upath import UPath

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Naming, ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from demo.producer import PARTITIONS, NumberedProducer, write_deleted_history
from stack import jars, spark
from stack.airflow import Airflow
from stack.local import LocalStack, Ports
from stack.s3 import BUCKET, S3Storage
from stack.topics import create_topic
from stack.waiting import Progress, wait_until

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build"
TOPIC = "orders"
LONGEST_WAIT = 1800.0
"""Seconds: on a busy machine three drivers need more than ten minutes to start and end."""
LAKE = "lake"
"""The connection to a storage."""
STORED = "orders/source"
"""The job's folder in a storage's bucket."""


class Demo:
    """Starts all programs of the demo, and stops them at the end of the ``with`` block.

    Args:
        folder: The folder of all files that the demo writes.
        progress: Called with what is being waited for.
        ports: Fixed ports of the clusters; None takes free ones.
        airflow_port: The port of Airflow's UI; None takes a free one.
        syncs_location: The cluster of the offset-syncs topic; MirrorMaker 2's default is the
            source, with which it is lost.
        storage: Where the source's job has its folder, which may be lost with the source. None:
            on the local disk, as on the target.
        stack: The clusters and MirrorMaker 2; None: a stack without logins.
        connections: Airflow's connections that replace those of the same ids. They are kept in its
            database, where variables would show logins in the environment of each process.
        env: Further variables of Airflow, and so of its tasks.
        spark_conf: Further settings of each Spark job.
    """

    def __init__(
        self,
        folder: Path,
        progress: Progress,
        *,
        ports: Ports | None = None,
        airflow_port: int | None = None,
        syncs_location: SyncsLocation = SyncsLocation.TARGET,
        storage: S3Storage | None = None,
        stack: LocalStack | None = None,
        connections: Mapping[str, Mapping[str, Any]] | None = None,
        env: Mapping[str, str] | None = None,
        spark_conf: Mapping[str, str] | None = None,
        heartbeat_timeout: float | None = None,
    ) -> None:
        """Prepare the programs without starting them."""
        self.folder = folder
        self.syncs_location = syncs_location
        self.progress = progress
        self.archive = folder / "archive"
        self.storage = storage
        self.heartbeat_timeout = heartbeat_timeout
        self._changes: dict[str, Any] = {}
        located = jars.locate(BUILD)
        s3a = jars.fetch_lake(BUILD, progress=progress).s3a if storage else ()
        self.stack = stack or LocalStack(
            folder / "kafka", located.kafka, ports=ports, progress=progress
        )
        kept = connections or {}
        by_default = _connections(self.stack, syncs_location, storage)
        self.airflow = Airflow(
            folder / "airflow",
            copy_dags(folder / "dags"),
            connections={name: to for name, to in by_default.items() if name not in kept},
            kept_connections=kept,
            env={
                **spark.configure(
                    folder / "spark",
                    (*located.spark, *s3a),
                    Path(sys.executable),
                    conf={**(storage.spark_conf() if storage else {}), **(spark_conf or {})},
                ),
                "AIRFLOW__MM2_OFFSETS__JOBS_FILE": str(self.write_jobs()),
                **(env or {}),
            },
            port=airflow_port,
            progress=progress,
        )
        self.producer = NumberedProducer(TOPIC)
        self._running = ExitStack()

    @property
    def pair(self) -> ClusterPair:
        """The clusters as the package sees them."""
        user, password = self.stack.connect_login or (None, None)
        return ClusterPair(
            source=KafkaCluster(name="source", config={"bootstrap.servers": self.stack.source}),
            target=KafkaCluster(name="target", config={"bootstrap.servers": self.stack.target}),
            naming=Naming(
                source_alias="source", target_alias="target", policy=ReplicationPolicy.IDENTITY
            ),
            syncs_location=self.syncs_location,
            connect=ConnectClient(url=self.stack.connect_url, username=user, password=password),
        )

    def job_folder(self, side: str) -> Path:
        """Return where the job keeps checkpoint, control and output on one cluster."""
        return self.folder / "orders" / side

    def location(self, side: str, *, connection: str = "") -> str:
        """Return the job's folder on one cluster, as Spark names it.

        Args:
            side: ``source`` or ``target``.
            connection: The Airflow connection to a storage: as Airflow names it then.
        """
        if side == "target" or self.storage is None:
            return str(self.job_folder(side))
        place = f"{BUCKET}/{STORED}"
        return f"s3://{connection}@{place}" if connection else f"s3a://{place}"

    @property
    def job(self) -> SparkJob:
        """The streaming job, with its home at each cluster."""
        return replace(self._declared(), **self._changes)

    def _declared(self) -> SparkJob:
        source = Home(
            cluster="source",
            folder=self.location("source", connection=LAKE),
            spark_folder=self.location("source") if self.storage else "",
        )
        return SparkJob(
            name=TOPIC,
            homes=(source, Home(cluster="target", folder=self.location("target"))),
            dag="orders_stream",
            records=str(self.folder / "records"),
            archive=str(self.archive),
            heartbeat_timeout=self.heartbeat_timeout,
        )

    def write_jobs(self, **changes: Any) -> Path:
        """Write the file of jobs that Airflow reads, with other fields of the job from now on."""
        self._changes |= changes
        file = self.folder / "jobs.json"
        self.folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"jobs": [self.job.to_json()]}, indent=1))
        return file

    def output(self, side: str) -> Path | UPath:
        """Return where the job writes its rows on one cluster."""
        if side == "target" or self.storage is None:
            return self.job_folder(side) / "output"
        return self.storage.path(f"{STORED}/output")

    def wait(
        self,
        what: str,
        condition: Callable[[], bool],
        seconds: float = LONGEST_WAIT,
        *,
        now: Callable[[], str] = str,
    ) -> None:
        """Wait for a condition while Airflow runs.

        Args:
            what: The thing awaited.
            condition: Whether it is there.
            seconds: The deadline.
            now: What each line about the wait ends with.

        Raises:
            ProgramError: A part of Airflow died repeatedly.
            UnansweredError: A run asks a person meanwhile.
            WaitTimeoutError: The deadline passed.
        """

        def is_met() -> bool:
            self.airflow.check()
            return condition()

        def say(line: str) -> None:
            self.progress(line + now())
            self.airflow.api.refuse_questions()

        wait_until(is_met, what, seconds=seconds, progress=say)

    def __enter__(self) -> Self:
        """Start everything; if a start fails, stop what was started."""
        with ExitStack() as starting:
            if self.storage:
                starting.enter_context(self.storage)
            starting.callback(self.airflow.stop)
            self.airflow.start_database()
            jars.fetch(BUILD, progress=self.progress)  # While the database gets its tables.
            starting.enter_context(self.stack)
            self.progress("two clusters and Kafka Connect run")
            create_topic(self.stack.source, TOPIC, PARTITIONS)
            write_deleted_history(self.stack.source, TOPIC)
            location = {"offset-syncs.topic.location": self.syncs_location.value}
            self.stack.create_mirror(f"{TOPIC}.*", **location)
            self.progress("the source has a deleted history; MirrorMaker 2 runs")
            self.producer.start(self.stack.source)
            starting.callback(self.producer.stop)
            self.airflow.start()
            self.airflow.api.wait_dags("orders_stream", "mm2_failover", "mm2_archive_syncs")
            self.progress(f"Airflow runs at {self.airflow.url}")
            self._running = starting.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop everything."""
        self.progress("stopping all servers")
        self._running.close()


def copy_dags(folder: Path) -> Path:
    """Copy the examples as a user does."""
    return Path(
        shutil.copytree(ROOT / "dags", folder, ignore=shutil.ignore_patterns("__pycache__"))
    )


def _connections(
    stack: LocalStack, syncs: SyncsLocation, storage: S3Storage | None
) -> dict[str, Mapping[str, Any]]:
    clusters = {
        "replication_policy": "identity",
        "connect_url": stack.connect_url,
    }
    stored = {LAKE: storage.connection()} if storage else {}
    return {
        **stored,
        "kafka_source": {"conn_type": "kafka", "extra": {"bootstrap.servers": stack.source}},
        "kafka_target": {"conn_type": "kafka", "extra": {"bootstrap.servers": stack.target}},
        "spark_default": {"conn_type": "spark", "host": "local[1]"},
        "mm2_default": {
            "conn_type": "mm2",
            "extra": {
                "source_kafka_conn_id": "kafka_source",
                "target_kafka_conn_id": "kafka_target",
                "source_alias": "source",
                "target_alias": "target",
                "offset_syncs_topic_location": syncs.value,
                **clusters,
            },
        },
        "mm2_reverse": {
            "conn_type": "mm2",
            "extra": {
                "source_kafka_conn_id": "kafka_target",
                "target_kafka_conn_id": "kafka_source",
                "source_alias": "target",
                "target_alias": "source",
                "offset_syncs_topic_location": "target",
                **clusters,
            },
        },
    }
