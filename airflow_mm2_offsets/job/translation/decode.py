"""Decodes the records of the offset-syncs topic by native expressions; jobs call it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - as everybody names it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FRAME: Final = 6
"""The bytes of a key beside the topic's name: its length, and the partition."""
_VALUE: Final = 16


def decode_syncs(records: DataFrame) -> DataFrame:
    """Return the offset syncs of records of the offset-syncs topic, one row for each record.

    A record that is not an offset sync does not fail the job: ``problem`` says what is wrong, and
    all its other columns but ``offset`` are null. ``segments`` skips it.

    Args:
        records: As Spark's Kafka source reads them: ``key``, ``value`` and ``offset``.

    Returns:
        ``topic``, ``partition``, ``upstream``, ``downstream``, ``offset`` (that of the record in
        the offset-syncs topic) and ``problem`` (null for an offset sync).
    """
    key, value = F.col("key"), F.col("value")
    name = key.substr(F.lit(3), F.length(key) - _FRAME)
    partition = _number(key.substr(F.length(key) - 3, F.lit(4)))
    upstream, downstream = (_number(value.substr(F.lit(at), F.lit(8))) for at in (1, 9))
    decoded = {
        "topic": name.cast("string"),
        "partition": partition.cast("int"),
        "upstream": upstream,
        "downstream": downstream,
    }
    problem = _problem(name, partition, upstream, downstream).alias("problem")
    return records.select("key", "value", "offset", problem).select(
        *(F.when(F.col("problem").isNull(), field).alias(name) for name, field in decoded.items()),
        "offset",
        "problem",
    )


def _problem(name: Column, partition: Column, upstream: Column, downstream: Column) -> Column:
    key, value = F.col("key"), F.col("value")
    named = F.length(key) - _FRAME == _number(key.substr(F.lit(1), F.lit(2)))
    never = F.lit(col=False)
    return (
        F.when(key.isNull(), "the key is absent")
        .when(~F.coalesce(named & (F.length(key) > _FRAME), never), "the key's length is wrong")
        .when(F.encode(name.cast("string"), "UTF-8") != name, "the topic's name is not UTF-8")
        .when(partition.isNull(), "the partition is negative")
        .when(~F.coalesce(F.length(value) == _VALUE, never), "the value's length is wrong")
        .when(upstream.isNull() | downstream.isNull(), "an offset is negative")
    )


def _number(digits: Column) -> Column:
    """Return the number of big-endian bytes; null if it is negative or there are no bytes."""
    text = F.hex(digits)
    return F.when(F.substring(text, 1, 1) < "8", F.conv(text, 16, 10).cast("bigint"))
