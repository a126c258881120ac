"""Counts what a reconciliation has found: the reporting half of ``job/reconcile/main.py``."""

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
    """Count what was read of each partition, by its tag."""
    found = counted.groupBy(F.col("tag").alias("side"), "topic", "partition").agg(
        F.count("*").alias("records"), F.expr("count_if(tombstone)").alias("tombstones")
    )
    return [row.asDict() for row in found.orderBy("side", "topic", "partition").collect()]


def describe_range(side: str, each: Range, held: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Say what was wanted of a partition, what of it is held, and what lies there."""
    mine = [
        row
        for row in held
        if (row["topic"], row["partition"]) == (each.topic, each.partition)
        and (row["side"] == "target") == (side == "target")
        and row["side"] not in SINK
    ]
    records = sum(row["records"] for row in mine)
    return {
        "side": side,
        "topic": each.topic,
        "name": each.name,
        "partition": each.partition,
        "wanted": [str(offset) for offset in each.wanted],
        "judged": [str(each.first), str(each.end)],
        "not_judged": each.wanted[1] - each.wanted[0] - (each.end - each.first),
        "records": records,
        "tombstones": sum(row["tombstones"] for row in mine),
        # Transaction markers, aborted and compacted records; a time range's other records too.
        "holes": each.end - each.first - records,
    }


def count_differences(found: DataFrame) -> list[dict[str, Any]]:
    """Count the differences of each comparison, partition and kind."""
    keys = ("comparison", "topic", "partition", "kind")
    counts = found.groupBy(*keys).agg(F.count("*").alias("count"))
    return [row.asDict() for row in counts.orderBy(*keys).collect()]


def find_examples(found: DataFrame, count: int) -> list[dict[str, Any]]:
    """Return the first few differences of each comparison and kind; offsets are text."""
    order = ("topic", "partition", "offset")
    nth = F.row_number().over(Window.partitionBy("comparison", "kind").orderBy(*order))
    rows = (
        found.withColumn("nth", nth)
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
