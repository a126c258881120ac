"""The programs of the demo: two clusters, MirrorMaker 2, Airflow and a producer."""

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Naming, ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from demo.producer import PARTITIONS, NumberedProducer, write_deleted_history
from stack import jars, spark
from stack.airflow import Airflow
from stack.local import LocalStack, Ports
from stack.topics import create_topic
from stack.waiting import Progress, wait_until

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build"
TOPIC = "orders"


class Demo:
    """Starts all programs of the demo, and stops them at the end of the ``with`` block.

    Args:
        folder: The folder of all files that the demo writes.
        progress: Called with what is being waited for.
        ports: Fixed ports of the clusters; None takes free ones.
        airflow_port: The port of Airflow's UI; None takes a free one.
    """

    def __init__(
        self,
        folder: Path,
        progress: Progress,
        *,
        ports: Ports | None = None,
        airflow_port: int | None = None,
    ) -> None:
        """Prepare the programs without starting them."""
        self.folder = folder
        self.progress = progress
        fetched = jars.fetch(BUILD, progress=progress)
        self.stack = LocalStack(folder / "kafka", fetched.kafka, ports=ports, progress=progress)
        self.airflow = Airflow(
            folder / "airflow",
            ROOT / "dags",
            connections=_connections(self.stack),
            env=spark.configure(folder / "spark", fetched.spark, Path(sys.executable)),
            port=airflow_port,
            progress=progress,
        )
        self.producer = NumberedProducer(TOPIC)
        self._running = ExitStack()

    @property
    def pair(self) -> ClusterPair:
        """The clusters as the package sees them."""
        return ClusterPair(
            source=KafkaCluster(name="source", config={"bootstrap.servers": self.stack.source}),
            target=KafkaCluster(name="target", config={"bootstrap.servers": self.stack.target}),
            naming=Naming(
                source_alias="source", target_alias="target", policy=ReplicationPolicy.IDENTITY
            ),
            syncs_location=SyncsLocation.TARGET,
            connect=ConnectClient(url=self.stack.connect_url),
        )

    def job_folder(self, side: str) -> Path:
        """Return where the job keeps checkpoint, control and output on one cluster."""
        return self.folder / "orders" / side

    def wait(self, what: str, condition: Callable[[], bool], seconds: float = 600) -> None:
        """Wait for a condition while Airflow runs.

        Raises:
            ProgramError: A part of Airflow died repeatedly.
            WaitTimeoutError: The deadline passed.
        """

        def is_met() -> bool:
            self.airflow.check()
            return condition()

        wait_until(is_met, what, seconds=seconds, progress=self.progress)

    def __enter__(self) -> Self:
        """Start everything; if a start fails, stop what was started."""
        with ExitStack() as starting:
            starting.callback(self.airflow.stop)
            self.airflow.start_database()
            starting.enter_context(self.stack)
            self.progress("two clusters and Kafka Connect run")
            create_topic(self.stack.source, TOPIC, PARTITIONS)
            write_deleted_history(self.stack.source, TOPIC)
            self.stack.create_mirror(f"{TOPIC}.*")
            self.progress("the source has a deleted history; MirrorMaker 2 runs")
            self.producer.start(self.stack.source)
            starting.callback(self.producer.stop)
            self.airflow.start()
            self.airflow.api.wait_dags("orders_stream", "mm2_failover")
            self.progress(f"Airflow runs at {self.airflow.url}")
            self._running = starting.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop everything."""
        self.progress("stopping all servers")
        self._running.close()


def _connections(stack: LocalStack) -> dict[str, Mapping[str, Any]]:
    return {
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
                "replication_policy": "identity",
                "offset_syncs_topic_location": "target",
                "connect_url": stack.connect_url,
            },
        },
    }
