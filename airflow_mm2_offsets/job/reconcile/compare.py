"""Finds the differences between what two clusters and a sink hold: the comparing half.

``job/reconcile/main.py`` reads; here is what the words mean. Each record is one row with a ``tag``:

``before`` and ``after``
    A record of the source, before or at and after the position where the job left it.
``target``
    A record of the target.
``from_source`` and ``from_target``
    A row of the sink, and which cluster its lineage columns name.

Two records are equal where their CONTENT is. Equal records are counted, not told apart.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from pyspark.sql import Column

CONTENT = ("hash_1", "hash_2")
PLACE = ("topic", "partition")
SOURCE, TARGET, SINK = ("before", "after"), ("target",), ("from_source", "from_target")
LOST, DUPLICATED, OUT_OF_ORDER, UNKNOWN = "lost", "duplicated", "out_of_order", "unknown"

_CLUSTER = "CASE WHEN tag IN ('target', 'from_target') THEN 'target' ELSE 'source' END"
_IN_SOURCE = "nth + CASE tag WHEN 'after' THEN n_before ELSE 0 END"
_IN_SINK = "nth + CASE tag WHEN 'from_target' THEN n_from_source ELSE 0 END"


class _Side(NamedTuple):
    """One side of a comparison."""

    tags: tuple[str, ...]
    copies: str
    """The column that holds how many equal rows there are."""
    position: str
    """Which one a row is, of the equal rows on its side."""


def count_copies(rows: DataFrame, *, lineage: bool) -> DataFrame:
    """Return rows with the number of equal ones under each tag, and which of these each is.

    One shuffle brings equal contents together; all that is counted here stays where it is then.

    Args:
        rows: With ``tag``, PLACE, ``offset`` and CONTENT.
        lineage: Whether the sink's rows name a place; else they are equal to records of any.
    """
    scope = (*PLACE, *CONTENT) if lineage else CONTENT
    place, anywhere = Window.partitionBy(*PLACE, *CONTENT), Window.partitionBy(*scope)
    counted = rows.repartition(*CONTENT).select(
        "*",
        *(_count(tag).over(anywhere).alias(f"n_{tag}") for tag in (*SOURCE, *TARGET, *SINK)),
        _count("after").over(place).alias("copied_after"),
        _count("target").over(place).alias("copied_target"),
        _nth((*scope, "tag"), "arrival", *PLACE, "offset").alias("nth"),
        _nth((*PLACE, *CONTENT, "tag"), "offset").alias("nth_here"),
    )
    return _find_counterparts(
        counted.selectExpr(
            "*",
            "n_before + n_after AS n_source",
            "n_from_source + n_from_target AS n_sink",
            f"{_CLUSTER} AS cluster",
            "nth_here + CASE tag WHEN 'after' THEN n_before ELSE 0 END AS nth_there",
        )
    )


def _find_counterparts(counted: DataFrame) -> DataFrame:
    """Add where the source has what a copy is a copy of, and a cluster the record of a row."""
    copies = Window.partitionBy(*PLACE, *CONTENT, "nth_here")
    records = Window.partitionBy("cluster", *PLACE, *CONTENT, "nth_there")
    return counted.select(
        "*",
        F.max(F.expr("CASE tag WHEN 'after' THEN offset END")).over(copies).alias("copied_from"),
        F.max(F.expr("CASE WHEN tag NOT LIKE 'from%' THEN offset END"))
        .over(records)
        .alias("record_at"),
    )


def differences(counted: DataFrame, *, read: AbstractSet[str], lineage: bool) -> DataFrame:
    """Return every difference as a row: ``comparison``, ``kind``, and the record.

    Args:
        counted: What ``count_copies`` returned.
        read: Which of ``source``, ``target`` and ``sink`` were read: at least two; and
            ``arrival`` where the sink's rows say in which order they came.
        lineage: Whether the sink's rows name topic, partition and offset.
    """
    found = [_miscounted(counted, read, lineage=lineage)]
    if {"source", "target"} <= read:
        found.append(_copy_order(counted))
    if "sink" in read and lineage:
        found.append(_misplaced(counted))
    if {"sink", "arrival"} <= read and lineage:
        found.append(_late(counted))
    return reduce(DataFrame.unionByName, found)


def _miscounted(counted: DataFrame, read: AbstractSet[str], *, lineage: bool) -> DataFrame:
    """Find what one side holds more often than another, in one pass for all pairs of sides."""
    pairs = []
    if {"source", "target"} <= read:
        pairs.append(_copies())
    if {"source", "sink"} <= read:
        pairs.append(_source_delivery(lineage=lineage))
    if {"target", "sink"} <= read:
        pairs.append(_target_delivery(lineage=lineage, alone="source" not in read))
    each = F.explode(F.filter(F.array(*pairs), lambda pair: pair["kind"].isNotNull()))
    rows = counted.withColumn("pair", each).selectExpr("*", "pair.*")
    return _as_difference(rows, expected="expected", found="found")


def _copies() -> Column:
    """Compare the source from where the job left it with the target from where it went on."""
    left = _Side(tags=("after",), copies="copied_after", position="nth_here")
    right = _Side(tags=TARGET, copies="copied_target", position="nth_here")
    return _pair("source-target", left, right)


def _source_delivery(*, lineage: bool) -> Column:
    """Compare the source with the sink."""
    # Rows that came from the target are known there; without lineage, none of its rows is.
    own = f"{lineage} AND tag = 'from_source'"
    left = _Side(tags=SOURCE, copies="n_source", position=_IN_SOURCE)
    right = _Side(tags=SINK, copies="n_sink", position=_IN_SINK)
    return _pair("source-sink", left, right, known_if=own)


def _target_delivery(*, lineage: bool, alone: bool) -> Column:
    """Compare the target with what the sink has from there."""
    left = _Side(tags=TARGET, copies="n_target", position="nth")
    if lineage:
        right = _Side(tags=("from_target",), copies="n_from_target", position="nth")
        return _pair("target-sink", left, right)
    # Without lineage the source, if there is one, judges the records that it holds too.
    right = _Side(tags=SINK, copies="n_sink", position="nth")
    judged = "true" if alone else "n_source = 0"
    return _pair("target-sink", left, right, judged_if=judged, known_if="false")


def _pair(
    comparison: str, left: _Side, right: _Side, *, judged_if: str = "true", known_if: str = "true"
) -> Column:
    """Tell the left side's records beyond the right's number of copies, and the reverse."""
    on_left, on_right = F.col("tag").isin(*left.tags), F.col("tag").isin(*right.tags)
    kind = (
        F.when(~F.expr(judged_if), F.lit(None))
        .when(on_left & F.expr(f"{left.position} > {right.copies}"), LOST)
        .when(on_right & F.expr(f"{left.copies} = 0"), F.when(F.expr(known_if), UNKNOWN))
        .when(on_right & F.expr(f"{right.position} > {left.copies}"), DUPLICATED)
    )
    return F.struct(
        F.lit(comparison).alias("comparison"),
        kind.alias("kind"),
        F.col(left.copies).alias("expected"),
        F.col(right.copies).alias("found"),
    )


def _copy_order(counted: DataFrame) -> DataFrame:
    """Find copies that have another place among the target's records than among the source's.

    Only what both hold equally often has a place: among equal records, nobody knows which one is
    the lost or the additional one, so that a place would be a guess.
    """
    pairs = counted.where("tag = 'target' AND copied_after = copied_target")
    partition = Window.partitionBy(*PLACE)
    ranked = pairs.select(
        "*",
        F.row_number().over(partition.orderBy("copied_from")).alias("on_source"),
        F.row_number().over(partition.orderBy("offset")).alias("on_target"),
    )
    swapped = ranked.where("on_source <> on_target").selectExpr(
        "*",
        "'source-target' AS comparison",
        f"'{OUT_OF_ORDER}' AS kind",
    )
    return _as_difference(swapped, meant_at="copied_from")


def _misplaced(counted: DataFrame) -> DataFrame:
    """Find rows of the sink whose lineage names a record that holds something else.

    Only contents that are there as often as they should be: see ``_copy_order``.
    """
    misplaced = counted.where(
        "tag LIKE 'from%' AND record_at <> offset AND "
        "CASE cluster WHEN 'source' THEN n_source = n_sink ELSE n_target = n_from_target END"
    )
    named = misplaced.selectExpr(
        "*", "concat(cluster, '-sink') AS comparison", f"'{OUT_OF_ORDER}' AS kind"
    )
    return _as_difference(named, meant_at="record_at")


def _late(counted: DataFrame) -> DataFrame:
    """Find records that came to the sink after a later one of their partition had come."""
    first = (
        counted.where("tag LIKE 'from%' AND arrival IS NOT NULL")
        .groupBy("tag", *PLACE, "offset")
        .agg(F.min("arrival").alias("arrival"), F.first("key").alias("key"))
    )
    earlier = (
        Window.partitionBy("tag", *PLACE)
        .orderBy("arrival", "offset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    late = first.withColumn("meant_at", F.max("offset").over(earlier)).where("offset < meant_at")
    named = late.selectExpr(
        "*",
        "concat(substring(tag, 6), '-sink') AS comparison",
        f"'{OUT_OF_ORDER}' AS kind",
    )
    return _as_difference(named, meant_at="meant_at")


def _as_difference(rows: DataFrame, **numbers: str) -> DataFrame:
    columns = {name: numbers.get(name, "NULL") for name in ("expected", "found", "meant_at")}
    return rows.selectExpr(
        "comparison",
        "kind",
        *PLACE,
        "tag AS side",
        "offset",
        "key",
        *(f"CAST({column} AS bigint) AS {name}" for name, column in columns.items()),
    )


def _count(tag: str) -> Column:
    return F.sum(F.when(F.col("tag") == tag, 1).otherwise(0))


def _nth(columns: tuple[str, ...], *order: str) -> Column:
    return F.row_number().over(Window.partitionBy(*columns).orderBy(*order))
