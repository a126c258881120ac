"""Two topics, and queries of stateful_job.py that read them on either cluster."""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import ReplicationPolicy
from stack import jars
from stack.jvm import QUICK_START
from stack.mirror import Stack
from stack.process import Program
from tests.integration.mirrors import Mirror, wait_copied, wait_ended

ROOT = Path(__file__).parents[2]
PARTITIONS = 2
CUT, END, FLUSH = 100, 200, 1000
"""Seconds of event time: where the job stops, where the input ends, what closes all windows."""
BORN = 1_800_000_000
SETTINGS = (
    "ui.enabled=false",
    "driver.host=127.0.0.1",
    "driver.bindAddress=127.0.0.1",
    "sql.session.timeZone=UTC",
    f"driver.extraJavaOptions={' '.join(QUICK_START)}",
    # No time for generating code either.
    "sql.codegen.wholeStage=false",
    "sql.codegen.factoryMode=NO_CODEGEN",
)

Rows = Counter[tuple[Any, ...]]


@dataclass
class StatefulQueries:
    """Two topics, copied under other names, and queries that read them."""

    stack: Stack
    mirror: Mirror
    folder: Path
    orders: str
    payments: str
    pair: ClusterPair = field(init=False)

    def __post_init__(self) -> None:
        pair = self.mirror.pair
        naming = replace(pair.naming, policy=ReplicationPolicy.DEFAULT)
        self.pair = replace(pair, naming=naming)

    def write(self, first: int, last: int) -> None:
        """Write the orders of some seconds, most of them twice, and their payments.

        Transactions are aborted between them, so that offsets differ on the target.
        """
        name = f"{self.orders}-{first}"
        settings = {"bootstrap.servers": self.stack.source, "transactional.id": name}
        producer = Producer(settings)
        producer.init_transactions(30)
        for start, stop in pairwise([*range(first, last, 25), last]):
            producer.begin_transaction()
            for second in range(start, stop):
                self._produce(producer, self.orders, -second)
            producer.flush(30)  # what is not sent yet would leave no trace
            producer.abort_transaction(30)
            producer.begin_transaction()
            for second in range(start, stop):
                self._produce(producer, self.orders, second)
                self._produce(producer, self.orders, second - 3, when=second)  # a second time
                self._produce(producer, self.payments, second - 5, when=second)
            producer.commit_transaction(30)
        wait_ended(self.pair.source, self.orders, self.payments)

    def flush(self) -> None:
        """Write what moves the watermarks past all windows."""
        producer = Producer({"bootstrap.servers": self.stack.source})
        for topic in (self.orders, self.payments):
            for partition in range(PARTITIONS):
                self._produce(producer, topic, FLUSH + partition)
        assert producer.flush(30) == 0

    @staticmethod
    def _produce(producer: Producer, topic: str, number: int, when: int | None = None) -> None:
        # A second copy of an order has its time; a payment has its own.
        second = when if when is not None and number == when - 5 else number
        at = datetime.fromtimestamp(BORN + second, UTC).isoformat()
        row = {"id": number, "user": f"user {number % 3}", "at": at, "written": when or number}
        producer.produce(topic, json.dumps(row), str(number), abs(number) % PARTITIONS)

    def wait_copied(self) -> None:
        ends = {topic: self.mirror.ends(topic) for topic in (self.orders, self.payments)}
        wait_copied(self.pair, ends)

    def add_partition(self) -> None:
        """Give one topic of the target a partition more than the source has."""
        name = self.pair.naming.target_topic(self.payments)
        admin = AdminClient({"bootstrap.servers": self.stack.target})
        admin.create_partitions([NewPartitions(name, PARTITIONS + 1)])[name].result(30)

    def query(self, name: str, *, migrated: bool = False, **settings: Any) -> dict[str, Any]:
        place = self.pair.naming.target_topic if migrated else str
        return {
            "name": name,
            "servers": self.stack.target if migrated else self.stack.source,
            "orders": place(self.orders),
            "payments": place(self.payments),
            "checkpoint": str(self.folder / ("target" if migrated else "source") / name),
            "output": str(self.folder / "output" / name),
            "batch_size": 1000 if migrated else 200,
            **settings,
        }

    def run(self, *queries: Mapping[str, Any]) -> dict[str, str | None]:
        """Run queries in one Spark; return what each failed of."""
        given, results = self.folder / "queries.json", self.folder / "results.json"
        given.write_text(json.dumps(queries))
        results.unlink(missing_ok=True)
        spark_jars = ",".join(map(str, jars.fetch(ROOT / "build").spark))
        submit = Path(sys.executable).with_name("spark-submit")
        command: list[str | Path] = [submit, "--master", "local[2]", "--jars", spark_jars]
        for setting in SETTINGS:
            command += ["--conf", f"spark.{setting}"]
        program = Program(
            "the queries",
            [*command, Path(__file__).with_name("stateful_job.py"), given, results],
            log=self.folder / "spark.log",
            env={"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        )
        try:
            program.start()
            program.wait_end()
        finally:
            program.kill()
        failures: dict[str, str | None] = json.loads(results.read_text())
        return failures

    def rows(self, name: str) -> Rows:
        """Return what a file sink has committed, as its readers see it."""
        return Counter(
            tuple(row.values())
            for file in sorted(committed_files(self.folder / "output" / name))
            for row in pq.read_table(file).to_pylist()
        )


def committed_files(output: Path) -> list[Path]:
    """Return the files that the sink's log names."""
    return [
        Path(json.loads(line)["path"].removeprefix("file://"))
        for log in (output / "_spark_metadata").iterdir()
        if log.name.isdecimal()
        for line in log.read_text().splitlines()[1:]
    ]
