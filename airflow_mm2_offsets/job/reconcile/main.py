"""Compares the records of a source, of its target, and of a sink: a Spark batch job.

``ReconcileOperator`` submits it; by hand::

    spark-submit --py-files <what airflow_mm2_offsets.job.py_files() returns> \
        airflow_mm2_offsets/job/reconcile/main.py --request request.json \
        --report s3a://lake/reconcile/orders --source-properties source.properties \
        --target-properties target.properties

A cluster is read if its properties (Kafka's own, as its Java client takes them) or options are
given. The request is a JSON object:

``partitions``
    A list of ``topic``, ``partition``, ``target_topic``; ``source`` and ``target``, each a pair of
    the first offset and the end, null for all that the cluster holds; and ``switch``, null or the
    source's position from which records reached the sink through the target.
``time``
    null, or a pair of times in milliseconds: only records of [first, second) are compared.
``kafka``
    SQL expressions of ``key``, ``value`` and ``headers`` of a Kafka record; null: not compared.
``sinks``
    A list of ``cluster`` (whose offsets its lineage columns hold), ``path``, ``format``,
    ``where`` (null or an SQL condition), and ``columns``: SQL expressions of key, value, headers,
    topic, partition, offset, timestamp and arrival; null: the sink has no such column.
``examples``
    How many differences of each kind the report shows.

The report folder then holds ``report.json``, written at once and last, and ``differences/``, a
Parquet of every difference. If the job fails, ``report.json`` holds only ``error``.
"""

from __future__ import annotations

import argparse
import json
import re
from datetime import datetime, timezone
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from airflow_mm2_offsets.job.client_properties import find_file, read_properties
from airflow_mm2_offsets.job.files import HadoopFiles
from airflow_mm2_offsets.job.reconcile.compare import SINK, count_copies, differences
from airflow_mm2_offsets.job.reconcile.read import (
    find_ranges,
    read_kafka,
    read_sink,
)
from airflow_mm2_offsets.job.reconcile.report import (
    count_differences,
    count_rows,
    describe_range,
    find_examples,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Request = Mapping[str, Any]
    Options = Mapping[str, Mapping[str, str]]

SCHEMA_VERSION = 1
SIDES = ("source", "target")
COMPARED = ("key", "value", "headers")
MOST_CAUSES = 5
SECRETS = ("password", "secret", "jaas", "key", "token", "credential")
# What a JAAS text hides; an error may quote it alone.
JAAS_SECRET = re.compile(r'''(?i:password|secret)\s*=\s*"((?:\\.|[^"\\])+)"''')
REPORT = "report.json"


def reconcile(
    spark: SparkSession, request: Request, options: Options, place: str
) -> dict[str, Any]:
    """Write all differences to a folder, and return the report.

    Raises:
        ValueError: The request contradicts itself.
        Py4JJavaError: A cluster does not answer, or its records are gone while they are read.
        PySparkException: A sink can't be read.
    """
    lineage = all(sink["columns"]["offset"] for sink in request["sinks"])
    ranges = {side: find_ranges(spark, side, request, options.get(side)) for side in SIDES}
    rows = _rows(spark, request, options, ranges, lineage=lineage)
    counted = count_copies(rows, lineage=lineage).persist()
    try:
        difference = differences(counted, read={*options, *_sink_parts(request)}, lineage=lineage)
        difference.write.mode("overwrite").parquet(f"{place}/differences")
        written = spark.read.schema(difference.schema).parquet(f"{place}/differences")
        counts = count_rows(counted)
        return {
            "schema_version": SCHEMA_VERSION,
            "created_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "compared": [name for name in COMPARED if request["kafka"].get(name)],
            "lineage": lineage,
            "ranges": [
                describe_range(side, span, counts) for side in options for span in ranges[side]
            ],
            "sinks": [row for row in counts if row["side"] in SINK],
            "differences": f"{place}/differences",
            "counts": count_differences(written),
            "examples": find_examples(written, request["examples"]),
        }
    finally:
        counted.unpersist()


def _rows(
    spark: SparkSession,
    request: Request,
    options: Options,
    ranges: Mapping[str, Any],
    *,
    lineage: bool,
) -> DataFrame:
    """Return the records and rows of all sides."""
    rows: list[DataFrame] = [
        read_kafka(spark, side, ranges[side], request, options[side]) for side in options
    ]
    rows += [
        read_sink(spark, sink, request, ranges[sink["cluster"]] if lineage else None)
        for sink in request["sinks"]
    ]
    return reduce(DataFrame.unionByName, rows)


def _sink_parts(request: Request) -> set[str]:
    columns = [sink["columns"] for sink in request["sinks"]]
    arrival = {"arrival"} if any(names["arrival"] for names in columns) else set()
    return {"sink"} | arrival if columns else set()


def main(argv: Sequence[str] | None = None) -> None:
    """Run the job."""
    args = _parse_args(argv)
    spark = SparkSession.builder.appName("mm2-reconcile").getOrCreate()
    folder = HadoopFiles(spark, args.report)
    folder.delete(REPORT)
    options: dict[str, dict[str, str]] = {}
    try:
        options |= {side: own for side in SIDES if (own := _options(spark, side, args))}
        request = json.loads(Path(find_file(args.request)).read_text(encoding="utf-8"))
        report = reconcile(spark, request, options, args.report)
    except Exception as error:
        message = summary(error, options.values())
        folder.write(REPORT, {"schema_version": SCHEMA_VERSION, "error": message})
        raise
    folder.write(REPORT, report)


def _options(spark: SparkSession, side: str, args: argparse.Namespace) -> dict[str, str]:
    path = getattr(args, f"{side}_properties")
    properties = read_properties(spark, find_file(path)) if path else {}
    return properties | dict(option.split("=", 1) for option in getattr(args, f"{side}_option"))


def summary(error: Exception, options: Iterable[Mapping[str, str]] = ()) -> str:
    """Return an error's message and its causes, without stack traces and logins."""
    java = getattr(error, "java_exception", None)
    lines = (str(error) if java is None else str(java.toString())).splitlines()
    causes: list[str] = []
    while java is not None and java.getCause() is not None and len(causes) < MOST_CAUSES:
        java = java.getCause()
        causes.append(str(java.toString()).partition("\n")[0])
    text = "; ".join([f"{type(error).__name__}: {''.join(lines[:1])}", *causes])
    for name, value in (item for properties in options for item in properties.items()):
        if value and any(word in name for word in SECRETS):
            for secret in (value, *JAAS_SECRET.findall(value)):
                text = text.replace(secret, "***")
    return text[:2000]


def _parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compares two clusters and a sink.")
    parser.add_argument("--request", required=True, help="a JSON file")
    parser.add_argument("--report", required=True, help="a folder, as Spark names it")
    for side in SIDES:
        parser.add_argument(f"--{side}-properties", help="a file of Kafka client properties")
        parser.add_argument(
            f"--{side}-option",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="a Kafka client property; seen by whoever lists processes: no passwords",
        )
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
