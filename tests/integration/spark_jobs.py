"""Topics that are written to all the time, and Spark jobs that read them."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
from airflow.providers.common.compat.sdk import BaseOperator
from confluent_kafka import Producer

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.job import py_files
from stack import jars
from stack.jvm import QUICK_START
from stack.mirror import Stack
from stack.process import Program
from stack.topics import create_topic
from tests.unit.operators.worker import Worker, events, rebuild

ROOT = Path(__file__).parents[2]
PARTITIONS = 3
LOOPBACK = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": " ".join(QUICK_START),
}
SUBMIT: list[str | Path] = [
    Path(sys.executable).with_name("spark-submit"),
    *("--master", "local[1]"),
    *(part for key, to in LOOPBACK.items() for part in ("--conf", f"{key}={to}")),
]
START_SECONDS = 240
"""What a job is given to start: many JVMs may share the machine."""
PYTHON = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}


@contextmanager
def busy_topic(stack: Stack) -> Iterator[str]:
    """Create a topic of three partitions, and write to it all the time."""
    name = f"orders-{uuid4().hex[:8]}"
    create_topic(stack.source, name, PARTITIONS)
    enough = Event()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(_write, stack.source, name, enough)
        try:
            yield name
        finally:
            enough.set()
        writing.result()


def _write(servers: str, topic: str, enough: Event) -> None:
    producer = Producer({"bootstrap.servers": servers})
    number = 0
    while not enough.wait(0.01):
        producer.produce(topic, str(number), partition=number % PARTITIONS)
        number += 1
    producer.flush(30)


def kafka_jars() -> str:
    """Return the jars of Spark's Kafka source, as spark-submit takes them."""
    return ",".join(map(str, jars.fetch(ROOT / "build").spark))


def example_arguments(stack: Stack, topic: str, folder: Path) -> list[str]:
    """Return what the example job is given, with all it writes in one folder."""
    return [
        *("--bootstrap-servers", stack.source, "--topic", topic, "--trigger", "1"),
        *("--home", str(folder)),
    ]


def submit(
    name: str, command: Sequence[str | Path], folder: Path, env: Mapping[str, str] = PYTHON
) -> Program:
    """Return a job under spark-submit, with its log in a folder."""
    return Program(name, command, log=folder / f"{name.replace(' ', '-')}.log", env=env)


def submit_locally(name: str, application: Path, arguments: Sequence[str], folder: Path) -> Program:
    """Return a job that runs in one process, with Kafka and the stop control."""
    options = ["--jars", kafka_jars(), "--py-files", py_files()]
    return submit(name, [*SUBMIT, *options, application, *arguments], folder)


def submit_without_kafka(
    name: str, application: Path, arguments: Sequence[str], folder: Path
) -> Program:
    """Return a job that runs in one process with the stop control, and reads no Kafka."""
    command: list[str | Path] = [*SUBMIT, "--py-files", py_files(), application, *arguments]
    return submit(name, command, folder)


def run_to_the_end(worker: Worker, task: BaseOperator) -> dict[str, Any]:
    """Run a task as worker and triggerer do, until it has succeeded; return its XCom."""
    message = worker.run(task)
    while message.type == "DeferTask":
        (event,) = events(rebuild(message))
        message = worker.run(task, after=message, event=event)
    result: dict[str, Any] = worker.xcoms[task.task_id, "return_value"]
    return result


def lineage(output: Path) -> list[tuple[int, int]]:
    """Return partition and offset of each row of a sink; what is there twice is here twice."""
    return [
        (row["partition"], row["offset"])
        for file in sorted(output.glob("*/part-*.parquet"))  # not those in _temporary
        for row in pq.read_table(file, columns=["partition", "offset"]).to_pylist()
    ]


def before(positions: Positions) -> set[tuple[int, int]]:
    """Return every record before some positions of one topic."""
    return {
        (partition, offset)
        for partitions in positions.values()
        for partition, end in partitions.items()
        for offset in range(end)
    }
