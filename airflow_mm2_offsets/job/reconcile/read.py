"""Reads what two clusters and a sink hold, as rows that can be compared: the reading half.

``job/reconcile/main.py`` says what a request holds, ``job/reconcile/compare.py`` what a row is.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from airflow_mm2_offsets.job.reconcile.compare import CONTENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

MAX_OFFSET = 2**63 - 1
KEY_BYTES = 64
"""How much of a key is kept, to know a record by."""
NOT_FOR_SPARK = frozenset(
    {
        *("key.deserializer", "value.deserializer", "key.serializer", "value.serializer"),
        *("enable.auto.commit", "auto.offset.reset", "interceptor.classes", "group.id"),
    }
)
"""Spark sets these itself, and refuses them."""
HEADERS = """CASE WHEN size(headers) > 0 THEN xxhash64(
    transform(headers, h -> struct(h.key, coalesce(length(h.value), -1), h.value))) END"""
"""One number for all headers; null where there are none."""
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
    """One partition on one cluster."""

    name: str
    """What the topic is called there."""
    partition: int
    topic: str
    """What it is called on the source."""
    wanted: tuple[int, int]
    first: int
    end: int
    """Of what is wanted, what is still held: [first, end)."""
    switch: int | None


def find_ranges(
    spark: SparkSession,
    side: str,
    request: Mapping[str, Any],
    options: Mapping[str, str] | None,
) -> list[Range]:
    """Return what is wanted of a cluster, cut to what it holds where it can be asked."""
    partitions = request["partitions"]
    names = [each["target_topic" if side == "target" else "topic"] for each in partitions]
    places = [(name, each["partition"]) for name, each in zip(names, partitions)]
    held = _held(spark, options, places) if options else [(0, MAX_OFFSET)] * len(places)
    return [
        _clamp(name, each, each[side] or (None, None), *bounds)
        for name, each, bounds in zip(names, partitions, held)
    ]


def _held(
    spark: SparkSession, options: Mapping[str, str], places: Sequence[tuple[str, int]]
) -> list[tuple[int, int]]:
    """Return the low watermark and the last stable offset of each partition."""
    jvm = cast("Any", spark._jvm)  # noqa: SLF001 - the only way to Kafka's own client
    properties = jvm.java.util.Properties()
    deserializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    own = {"key.deserializer": deserializer, "value.deserializer": deserializer}
    for key, value in {**options, **own, "isolation.level": "read_committed"}.items():
        properties.setProperty(key, value)
    wanted = jvm.java.util.ArrayList()
    for place in places:
        wanted.add(jvm.org.apache.kafka.common.TopicPartition(*place))
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
    try:
        low, high = consumer.beginningOffsets(wanted), consumer.endOffsets(wanted)
    finally:
        consumer.close()
    return [(low.get(key), high.get(key)) for key in wanted]


def _clamp(name: str, each: Mapping[str, Any], asked: Sequence[Any], low: int, high: int) -> Range:
    first = low if asked[0] is None else int(asked[0])
    end = max(first, high) if asked[1] is None else int(asked[1])
    if first > end:
        raise ValueError(f"{name}[{each['partition']}]: the range ends at {end}, before {first}")
    held = min(max(first, low), max(end, low), high)
    switch = each.get("switch")
    return Range(
        name=name,
        partition=each["partition"],
        topic=each["topic"],
        wanted=(first, end),
        first=held,
        end=max(held, min(end, high)),
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
    for each in ranges:
        for bound, topics in offsets.items():
            topics.setdefault(each.name, {})[str(each.partition)] = getattr(each, bound)
    assigned = {name: [int(number) for number in held] for name, held in offsets["end"].items()}
    records = (
        spark.read.format("kafka")
        .options(**{f"kafka.{k}": v for k, v in options.items() if k not in NOT_FOR_SPARK})
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
    """Return the rows of a sink as rows to compare; of ``ranges`` alone where they have lineage."""
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
    given = {**columns, "headers": HEADERS.replace("headers", columns.get("headers") or "headers")}
    given["headers"] = given["headers"] if columns.get("headers") else None
    rows = frame.selectExpr(
        *(f"CAST({given.get(name) or 'NULL'} AS {kind}) AS {name}" for name, kind in _TYPES.items())
    )
    if time:
        rows = rows.where(F.expr(f"timestamp >= timestamp_millis({time[0]})")).where(
            F.expr(f"timestamp < timestamp_millis({time[1]})")
        )
    if ranges is None:
        placed = rows.withColumn("switch", F.lit(None)).withColumnRenamed("name", "topic")
    else:
        held = _table(frame.sparkSession, ranges)
        # What Parquet's statistics can tell is not even read.
        first, end = min(each.first for each in ranges), max(each.end for each in ranges)
        rows = rows.where(f"offset >= {first} AND offset < {end}")
        placed = rows.join(F.broadcast(held), ["name", "partition"]).where(
            "offset >= first AND offset < end"
        )
    return placed.select(
        F.expr(tag).alias("tag"),
        "topic",
        "partition",
        "offset",
        "arrival",
        F.substring("key", 1, KEY_BYTES).alias("key"),
        F.isnull("value").alias("tombstone"),
        *_hashes("key", "value", "headers"),
    )


def _hashes(*columns: str) -> list[Column]:
    """Return two hashes of columns, and of which of them is null and how long each is.

    Spark's hash passes over nulls; with the lengths, null is not empty, and "a" and "bc" are not
    "ab" and "c". Two of 64 bits each: among a thousand million records, one alone would find two
    different ones equal in every fortieth run.
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
    text = json.dumps([{name: getattr(each, name) for name in names} for each in ranges])
    return spark.range(1).select(F.inline(F.from_json(F.lit(text), f"array<struct<{_RANGE}>>")))


def read_properties(spark: SparkSession, path: str) -> dict[str, str]:
    """Return what a properties file of Kafka's holds."""
    jvm = cast("Any", spark._jvm)  # noqa: SLF001 - Java's own reader
    properties = jvm.java.util.Properties()
    stream = jvm.java.io.FileInputStream(path)
    try:
        properties.load(stream)
    finally:
        stream.close()
    return {name: properties.getProperty(name) for name in properties.stringPropertyNames()}
