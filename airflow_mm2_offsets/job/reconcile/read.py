"""Reads the records of two clusters and the rows of a sink; ``job/reconcile/main.py`` calls it.

That module describes a request; ``job/reconcile/compare.py`` describes the rows.
"""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from airflow_mm2_offsets.job.client_properties import spark_options
from airflow_mm2_offsets.job.reconcile.compare import CONTENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

MAX_OFFSET = 2**63 - 1
KEY_BYTES = 64
"""How much of a key the report shows."""
HEADERS = """CASE WHEN size(headers) > 0 THEN xxhash64(
    transform(headers, h -> struct(h.key, coalesce(length(h.value), -1), h.value))) END"""
"""One number for all headers; null for no header."""
_TYPES = {
    "name": "string",
    "partition": "int",
    "offset": "bigint",
    "key": "binary",
    "value": "binary",
    "headers": "bigint",
    "timestamp": "timestamp",
    "arrival": "bigint",
}
_RANGE = "name string, partition int, topic string, first bigint, end bigint, switch bigint"


class Range(NamedTuple):
    """The offsets of one partition on one cluster."""

    name: str
    """The topic's name there."""
    partition: int
    topic: str
    """The topic's name on the source."""
    requested: tuple[int, int]
    first: int
    end: int
    """The part of the requested range that the cluster still holds: [first, end)."""
    switch: int | None


def find_ranges(
    spark: SparkSession,
    side: str,
    request: Mapping[str, Any],
    options: Mapping[str, str] | None,
) -> list[Range]:
    """Return the requested ranges, cut to the watermarks if the cluster is read."""
    partitions = request["partitions"]
    names = [entry["target_topic" if side == "target" else "topic"] for entry in partitions]
    keys = [(name, entry["partition"]) for name, entry in zip(names, partitions)]
    bounds = _watermarks(spark, options, keys) if options else [(0, MAX_OFFSET)] * len(keys)
    return [
        _clamp(name, entry, entry[side] or (None, None), low, high)
        for name, entry, (low, high) in zip(names, partitions, bounds)
    ]


def _watermarks(
    spark: SparkSession, options: Mapping[str, str], keys: Sequence[tuple[str, int]]
) -> list[tuple[int, int]]:
    """Return the low watermark and the last stable offset of each topic-partition."""
    jvm = cast("Any", spark._jvm)  # noqa: SLF001 - the only way to Kafka's own client
    properties = jvm.java.util.Properties()
    deserializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    own = {"key.deserializer": deserializer, "value.deserializer": deserializer}
    for key, value in {**options, **own, "isolation.level": "read_committed"}.items():
        properties.setProperty(key, value)
    partitions = jvm.java.util.ArrayList()
    for topic_partition in keys:
        partitions.add(jvm.org.apache.kafka.common.TopicPartition(*topic_partition))
    with closing(jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)) as consumer:
        low, high = consumer.beginningOffsets(partitions), consumer.endOffsets(partitions)
    return [(low.get(partition), high.get(partition)) for partition in partitions]


def _clamp(
    name: str, entry: Mapping[str, Any], bounds: Sequence[Any], low: int, high: int
) -> Range:
    first = low if bounds[0] is None else int(bounds[0])
    end = max(first, high) if bounds[1] is None else int(bounds[1])
    if first > end:
        raise ValueError(f"{name}[{entry['partition']}]: the range ends at {end}, before {first}")
    available = min(max(first, low), max(end, low), high)
    switch = entry.get("switch")
    return Range(
        name=name,
        partition=entry["partition"],
        topic=entry["topic"],
        requested=(first, end),
        first=available,
        end=max(available, min(end, high)),
        switch=None if switch is None else int(switch),
    )


def read_kafka(
    spark: SparkSession,
    side: str,
    ranges: Sequence[Range],
    request: Mapping[str, Any],
    options: Mapping[str, str],
) -> DataFrame:
    """Return the committed records of a cluster's ranges as rows to compare."""
    offsets: dict[str, dict[str, dict[str, int]]] = {"first": {}, "end": {}}
    for span in ranges:
        for bound, topics in offsets.items():
            topics.setdefault(span.name, {})[str(span.partition)] = getattr(span, bound)
    assigned = {name: [int(number) for number in ends] for name, ends in offsets["end"].items()}
    records = (
        spark.read.format("kafka")
        .options(**spark_options(options))
        .option("kafka.isolation.level", "read_committed")
        .option("assign", json.dumps(assigned))
        .option("startingOffsets", json.dumps(offsets["first"]))
        .option("endingOffsets", json.dumps(offsets["end"]))
        .option("includeHeaders", "true")
        .load()
    )
    place = {"name": "topic", "partition": "partition", "offset": "offset"}
    columns = {**place, "timestamp": "timestamp", **request["kafka"]}
    sides = {"source": "CASE WHEN offset < switch THEN 'before' ELSE 'after' END"}
    return _rows(records, columns, sides.get(side, "'target'"), ranges, request["time"])


def read_sink(
    spark: SparkSession,
    sink: Mapping[str, Any],
    request: Mapping[str, Any],
    ranges: Sequence[Range] | None,
) -> DataFrame:
    """Return the rows of a sink as rows to compare; with lineage, only those of ``ranges``."""
    columns = {**sink["columns"], "name": sink["columns"]["topic"]}
    if request["time"] and not columns["timestamp"]:
        raise ValueError(
            f"{sink['path']}: a range of time needs the column that holds the records' timestamps"
        )
    rows = spark.read.format(sink["format"]).load(sink["path"])
    rows = rows.where(sink["where"]) if sink["where"] else rows
    tag = "'from_target'" if ranges and sink["cluster"] == "target" else "'from_source'"
    return _rows(rows, columns, tag, ranges, request["time"])


def _rows(
    frame: DataFrame,
    columns: Mapping[str, str | None],
    tag: str,
    ranges: Sequence[Range] | None,
    time: Sequence[int] | None,
) -> DataFrame:
    """Return records or a sink's rows as rows to compare, cut to ranges and to a time.

    ``columns`` and ``tag`` are SQL; ``tag`` may name ``switch``, which comes from the ranges.
    """
    headers = columns.get("headers")
    values = {**columns, "headers": HEADERS.replace("headers", headers) if headers else None}
    rows = frame.selectExpr(
        *(
            f"CAST({values.get(name) or 'NULL'} AS {kind}) AS {name}"
            for name, kind in _TYPES.items()
        )
    )
    if time:
        rows = rows.where(F.expr(f"timestamp >= timestamp_millis({time[0]})")).where(
            F.expr(f"timestamp < timestamp_millis({time[1]})")
        )
    return _placed(rows, ranges).select(
        F.expr(tag).alias("tag"),
        "topic",
        "partition",
        "offset",
        "arrival",
        F.substring("key", 1, KEY_BYTES).alias("key"),
        # Without a value to compare, nothing tells which records are tombstones.
        (F.isnull("value") if values.get("value") else F.lit(False)).alias("tombstone"),  # noqa: FBT003
        *_hashes("key", "value", "headers"),
    )


def _placed(rows: DataFrame, ranges: Sequence[Range] | None) -> DataFrame:
    """Return the rows in the ranges, with each range's ``topic`` and ``switch``."""
    if ranges is None:
        return rows.withColumn("switch", F.lit(None)).withColumnRenamed("name", "topic")
    # Parquet's statistics let Spark skip files outside these offsets.
    first, end = min(span.first for span in ranges), max(span.end for span in ranges)
    rows = rows.where(f"offset >= {first} AND offset < {end}")
    spans = F.broadcast(_table(rows.sparkSession, ranges))
    return rows.join(spans, ["name", "partition"]).where("offset >= first AND offset < end")


def _hashes(*columns: str) -> list[Column]:
    """Return two hashes of columns and of their lengths.

    Spark's hash skips nulls; with the lengths, null differs from empty, and "a" and "bc" from "ab"
    and "c". Two hashes of 64 bits: with one, among a thousand million records, two different
    records would be equal in every fortieth run.
    """
    parts = [
        part
        for name in columns
        for part in (F.expr(f"coalesce(length(CAST({name} AS string)), -1)"), F.col(name))
    ]
    return [
        F.xxhash64(*parts).alias(CONTENT[0]),
        F.xxhash64(F.lit("second"), *reversed(parts)).alias(CONTENT[1]),
    ]


def _table(spark: SparkSession, ranges: Sequence[Range]) -> DataFrame:
    names = ("name", "partition", "topic", "first", "end", "switch")
    text = json.dumps([{name: getattr(span, name) for name in names} for span in ranges])
    return spark.range(1).select(F.inline(F.from_json(F.lit(text), f"array<struct<{_RANGE}>>")))
