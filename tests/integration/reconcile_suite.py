"""Reconciliations that run in one Spark, and the topics that they compare."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from airflow_mm2_offsets.job import py_files
from airflow_mm2_offsets.kafka.client_properties import format_properties
from airflow_mm2_offsets.reconcile import Reconciliation, read_report
from airflow_mm2_offsets.reconcile.ranges import partitions_of_topics
from airflow_mm2_offsets.reconcile.request import make_request
from stack import jars
from stack.jvm import QUICK_START
from stack.process import Program
from tests.integration.mirrors import Mirror
from tests.integration.reconciled_topics import Row

ROOT = Path(__file__).parents[2]
FOR_FEW_RECORDS = {
    "spark.driver.extraJavaOptions": " ".join(QUICK_START),
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}
"""Otherwise planning and compiling take nearly all of the time."""
RUN_ALL = """
import json, sys
from airflow_mm2_offsets.job.reconcile import main

for arguments in json.loads(open(sys.argv[1]).read()):
    try:
        main.main(arguments)
    except Exception as error:
        print("ended with", type(error).__name__)
"""
Differences = set[tuple[str, str, int | None, str, int | None]]
"""Comparison, kind, partition, side and offset of each difference."""


@dataclass(kw_only=True)
class Topic:
    """A topic, with its rows on both clusters."""

    name: str
    source: dict[int, list[Row]]
    target: dict[int, list[Row]]


@dataclass(kw_only=True)
class ReconcileCase:
    """One reconciliation: its request, and the clusters that it reads."""

    name: str
    folder: Path
    request: Mapping[str, Any]
    options: Mapping[str, Mapping[str, str]]

    def arguments(self) -> list[str]:
        """Write the files of the job, and return its command line."""
        self.folder.mkdir(parents=True)
        path = self.folder / "request.json"
        path.write_text(json.dumps(self.request))
        properties = []
        for side, options in self.options.items():
            file = self.folder / f"{side}.properties"
            file.write_text(format_properties(options))
            properties += [f"--{side}-properties", str(file)]
        return ["--request", str(path), "--report", str(self.folder / "report"), *properties]

    def result(self, allowed: int | None = 0) -> Reconciliation:
        return read_report(UPath(self.folder / "report"), allowed)

    def differences(self, topic: Topic) -> Differences:
        """Return the differences of a topic, from Parquet; no row may occur twice."""
        table = pq.read_table(self.folder / "report" / "differences")
        rows = [row for row in table.to_pylist() if row["topic"] == topic.name]
        names = ("comparison", "kind", "partition", "side", "offset")
        differences = [tuple(row[name] for name in names) for row in rows]
        assert len(differences) == len(set(differences))
        return set(differences)


@dataclass(kw_only=True)
class ReconcileSuite:
    """The cases, and the topics and sinks that they compare."""

    mirror: Mirror
    folder: Path
    topics: dict[str, Topic] = field(default_factory=dict)
    cases: dict[str, ReconcileCase] = field(default_factory=dict)

    def plan(
        self,
        name: str,
        topics: Sequence[Topic],
        sinks: Sequence[Mapping[str, Any]] = (),
        *,
        ranges: Mapping[tuple[str, int], Mapping[str, Any]] | None = None,
        read_only: Sequence[str] = ("source", "target"),
        options: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        """Add a case; ``ranges`` overrides parts of a partition's request."""
        pair = self.mirror.pair
        partitions = partitions_of_topics(
            pair.source, {topic.name: topic.name for topic in topics}, pair.naming
        )
        for each in partitions:
            each.update((ranges or {}).get((each["topic"], each["partition"]), {}))
        servers = {"source": self.mirror.stack.source, "target": self.mirror.stack.target}
        self.cases[name] = ReconcileCase(
            name=name,
            folder=self.folder / name,
            request=make_request(partitions, sinks, **settings),
            options={
                side: {"bootstrap.servers": servers[side], **(options or {})} for side in read_only
            },
        )

    def sink(self, name: str, rows: Sequence[Row]) -> str:
        """Write rows as a streaming job does, a folder for each batch; return the sink's path."""
        path = self.folder / "sinks" / name
        schema = pa.schema(
            [
                *((column, pa.string()) for column in ("key", "value", "topic")),
                ("partition", pa.int32()),
                ("offset", pa.int64()),
                ("timestamp", pa.timestamp("us", tz="UTC")),
            ]
        )
        by_batch = sorted(rows, key=lambda row: row.get("batch_id", 0))
        for batch, mine in groupby(by_batch, key=lambda row: row.get("batch_id", 0)):
            file = path / f"batch_id={batch}" / "part-0.parquet"
            file.parent.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(list(mine), schema=schema), file)
        return str(path)

    def run(self) -> None:
        """Run all cases in one JVM."""
        runner = self.folder / "run_all.py"
        runner.write_text(RUN_ALL)
        arguments = self.folder / "arguments.json"
        arguments.write_text(json.dumps([case.arguments() for case in self.cases.values()]))
        program = Program(
            "the reconciliations",
            [*submit(), "--py-files", py_files(), runner, arguments],
            log=self.folder / "spark.log",
            env={"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        )
        program.start()
        try:
            program.wait_end()
        finally:
            program.kill()


def submit() -> list[str | Path]:
    """Return the command that submits to a local Spark."""
    conf = {
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **FOR_FEW_RECORDS,
    }
    options = [part for item in conf.items() for part in ("--conf", "=".join(item))]
    spark_jars = ",".join(map(str, jars.fetch(ROOT / "build").spark))
    program = Path(sys.executable).with_name("spark-submit")
    return [
        program,
        "--master",
        "local[2]",
        "--driver-memory",
        "1g",
        *options,
        "--jars",
        spark_jars,
    ]
