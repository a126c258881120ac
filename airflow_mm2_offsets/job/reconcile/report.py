"""Counts records and differences for the report of ``job/reconcile/main.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from airflow_mm2_offsets.job.reconcile.compare import SINK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from airflow_mm2_offsets.job.reconcile.read import Range


def count_rows(counted: DataFrame) -> list[dict[str, Any]]:
    """Count the records of each partition that were read, by tag."""
    counts = counted.groupBy(F.col("tag").alias("side"), "topic", "partition").agg(
        F.count("*").alias("records"), F.expr("count_if(tombstone)").alias("tombstones")
    )
    return [row.asDict() for row in counts.orderBy("side", "topic", "partition").collect()]


def describe_range(side: str, span: Range, counts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the requested and the judged range of a partition, and its numbers of records."""
    rows = [
        row
        for row in counts
        if (row["topic"], row["partition"]) == (span.topic, span.partition)
        and (row["side"] == "target") == (side == "target")
        and row["side"] not in SINK
    ]
    records = sum(row["records"] for row in rows)
    return {
        "side": side,
        "topic": span.topic,
        "name": span.name,
        "partition": span.partition,
        "wanted": [str(offset) for offset in span.requested],
        "judged": [str(span.first), str(span.end)],
        "not_judged": span.requested[1] - span.requested[0] - (span.end - span.first),
        "records": records,
        "tombstones": sum(row["tombstones"] for row in rows),
        # Transaction markers, aborted and compacted records; a time range's other records too.
        "holes": span.end - span.first - records,
    }


def count_differences(differences: DataFrame) -> list[dict[str, Any]]:
    """Count the differences of each comparison, partition and kind."""
    keys = ("comparison", "topic", "partition", "kind")
    counts = differences.groupBy(*keys).agg(F.count("*").alias("count"))
    return [row.asDict() for row in counts.orderBy(*keys).collect()]


def find_examples(differences: DataFrame, count: int) -> list[dict[str, Any]]:
    """Return the first few differences of each comparison and kind; offsets are text."""
    order = ("topic", "partition", "offset")
    nth = F.row_number().over(Window.partitionBy("comparison", "kind").orderBy(*order))
    rows = (
        differences.withColumn("nth", nth)
        .where(F.col("nth") <= count)
        .orderBy("comparison", "kind", "nth")
        .drop("nth")
        .collect()
    )
    return [_plain(row.asDict()) for row in rows]


def _plain(example: dict[str, Any]) -> dict[str, Any]:
    key = example["key"]
    offsets = {name: example[name] for name in ("offset", "meant_at")}
    return {
        **example,
        "key": None if key is None else bytes(key).decode("utf-8", "backslashreplace"),
        **{name: None if offset is None else str(offset) for name, offset in offsets.items()},
    }
