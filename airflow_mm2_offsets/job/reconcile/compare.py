"""Finds the differences between two clusters and a sink; ``job/reconcile/main.py`` calls it.

Each record is one row with a ``tag``:

``before`` and ``after``
    A record of the source: before the position where the job left it, or from there on.
``target``
    A record of the target.
``from_source`` and ``from_target``
    A row of the sink, by the cluster that its lineage columns name.

Two records are equal if their CONTENT is equal. Equal records are counted, not told apart.
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
    """The column with the number of equal rows."""
    nth: str
    """The row's number among the equal rows of its side."""


def count_copies(rows: DataFrame, *, lineage: bool) -> DataFrame:
    """Return rows with the number of equal rows under each tag, and the row's number among them.

    Three columns number the equal rows of one tag. ``nth`` does so across all partitions, and with
    ``lineage`` in each partition. ``nth_in_partition`` does so in each partition.
    ``nth_on_cluster`` does the same, but goes on from ``before`` to ``after``: both are the source.

    One shuffle brings equal contents together; the counts need no other one.

    Args:
        rows: With ``tag``, PLACE, ``offset`` and CONTENT.
        lineage: Whether the sink's rows name a place; if not, they equal records of any place.
    """
    scope = (*PLACE, *CONTENT) if lineage else CONTENT
    place, anywhere = Window.partitionBy(*PLACE, *CONTENT), Window.partitionBy(*scope)
    counted = rows.repartition(*CONTENT).select(
        "*",
        *(_count(tag).over(anywhere).alias(f"n_{tag}") for tag in (*SOURCE, *TARGET, *SINK)),
        _count("after").over(place).alias("copied_after"),
        _count("target").over(place).alias("copied_target"),
        _nth((*scope, "tag"), "arrival", *PLACE, "offset").alias("nth"),
        _nth((*PLACE, *CONTENT, "tag"), "offset").alias("nth_in_partition"),
    )
    return _find_counterparts(
        counted.selectExpr(
            "*",
            "n_before + n_after AS n_source",
            "n_from_source + n_from_target AS n_sink",
            f"{_CLUSTER} AS cluster",
            "nth_in_partition + CASE tag WHEN 'after' THEN n_before ELSE 0 END AS nth_on_cluster",
        )
    )


def _find_counterparts(counted: DataFrame) -> DataFrame:
    """Add to each row the offset of the record that it is a copy of.

    Equal rows are matched by their order: the second one of the target with the second one of the
    source. ``copied_from`` is the source offset of a record of the target. ``record_at`` is the
    offset that a row of the sink has on the cluster that it names; it holds only with lineage. Both
    are null without a match.
    """
    source_and_target = Window.partitionBy(*PLACE, *CONTENT, "nth_in_partition")
    cluster_and_sink = Window.partitionBy("cluster", *PLACE, *CONTENT, "nth_on_cluster")
    # Each window holds at most one source record, and one record of a cluster: max finds it.
    source_offset = F.max(F.expr("CASE tag WHEN 'after' THEN offset END"))
    cluster_offset = F.max(F.expr("CASE WHEN tag NOT LIKE 'from%' THEN offset END"))
    return counted.select(
        "*",
        source_offset.over(source_and_target).alias("copied_from"),
        cluster_offset.over(cluster_and_sink).alias("record_at"),
    )


def differences(counted: DataFrame, *, read: AbstractSet[str], lineage: bool) -> DataFrame:
    """Return every difference as a row: ``comparison``, ``kind``, and the record.

    Args:
        counted: The result of ``count_copies``.
        read: Which of ``source``, ``target`` and ``sink`` were read, at least two; and
            ``arrival`` if the sink's rows have an order of arrival.
        lineage: Whether the sink's rows name topic, partition and offset.
    """
    parts = [_miscounted(counted, read, lineage=lineage)]
    if {"source", "target"} <= read:
        parts.append(_copy_order(counted))
    if "sink" in read and lineage:
        parts.append(_misplaced(counted))
    if {"sink", "arrival"} <= read and lineage:
        parts.append(_late(counted))
    return reduce(DataFrame.unionByName, parts)


def _miscounted(counted: DataFrame, read: AbstractSet[str], *, lineage: bool) -> DataFrame:
    """Find rows that one side holds more often than another, in one pass for all pairs of sides."""
    pairs = []
    if {"source", "target"} <= read:  # from where the job left the source and began on the target
        left = _Side(("after",), "copied_after", "nth_in_partition")
        right = _Side(TARGET, "copied_target", "nth_in_partition")
        pairs.append(_pair("source-target", left, right))
    if {"source", "sink"} <= read:
        # Only a row whose lineage names the source must have a record there.
        own = f"{lineage} AND tag = 'from_source'"
        left, right = _Side(SOURCE, "n_source", _IN_SOURCE), _Side(SINK, "n_sink", _IN_SINK)
        pairs.append(_pair("source-sink", left, right, known_if=own))
    if {"target", "sink"} <= read:
        pairs.append(_target_sink(lineage=lineage, alone="source" not in read))
    pair = F.explode(F.filter(F.array(*pairs), lambda pair: pair["kind"].isNotNull()))
    rows = counted.withColumn("pair", pair).selectExpr("*", "pair.*")
    return _as_difference(rows, expected="expected", found="found")


def _target_sink(*, lineage: bool, alone: bool) -> Column:
    """Compare the target with the sink's rows from there."""
    left = _Side(TARGET, "n_target", "nth")
    if lineage:
        return _pair("target-sink", left, _Side(("from_target",), "n_from_target", "nth"))
    # Without lineage, the source is compared with the records that both clusters hold.
    judged = "true" if alone else "n_source = 0"
    right = _Side(SINK, "n_sink", "nth")
    return _pair("target-sink", left, right, judged_if=judged, known_if="false")


def _pair(
    comparison: str, left: _Side, right: _Side, *, judged_if: str = "true", known_if: str = "true"
) -> Column:
    """Return the kind of difference between a row's number of copies on two sides; null: none."""
    on_left, on_right = F.col("tag").isin(*left.tags), F.col("tag").isin(*right.tags)
    kind = (
        F.when(~F.expr(judged_if), F.lit(None))
        .when(on_left & F.expr(f"{left.nth} > {right.copies}"), LOST)
        .when(on_right & F.expr(f"{left.copies} = 0"), F.when(F.expr(known_if), UNKNOWN))
        .when(on_right & F.expr(f"{right.nth} > {left.copies}"), DUPLICATED)
    )
    return F.struct(
        F.lit(comparison).alias("comparison"),
        kind.alias("kind"),
        F.col(left.copies).alias("expected"),
        F.col(right.copies).alias("found"),
    )


def _copy_order(counted: DataFrame) -> DataFrame:
    """Find copies that have another place among the target's records than among the source's.

    Only records that both hold equally often are compared: among equal records it is unknown which
    one is lost or additional.
    """
    pairs = counted.where("tag = 'target' AND copied_after = copied_target")
    partition = Window.partitionBy(*PLACE)
    ranked = pairs.select(
        "*",
        F.row_number().over(partition.orderBy("copied_from")).alias("on_source"),
        F.row_number().over(partition.orderBy("offset")).alias("on_target"),
    )
    swapped = ranked.where("on_source <> on_target")
    return _out_of_order(swapped, "'source-target'", "copied_from")


def _misplaced(counted: DataFrame) -> DataFrame:
    """Find rows of the sink whose lineage names a record with another content.

    Only contents with the right number of copies are compared: see ``_copy_order``.
    """
    misplaced = counted.where(
        "tag LIKE 'from%' AND record_at <> offset AND "
        "CASE cluster WHEN 'source' THEN n_source = n_sink ELSE n_target = n_from_target END"
    )
    return _out_of_order(misplaced, "concat(cluster, '-sink')", "record_at")


def _late(counted: DataFrame) -> DataFrame:
    """Find records that arrived in the sink after a later record of their partition."""
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
    return _out_of_order(late, "concat(substring(tag, 6), '-sink')", "meant_at")


def _out_of_order(rows: DataFrame, comparison: str, meant_at: str) -> DataFrame:
    named = rows.selectExpr("*", f"{comparison} AS comparison", f"'{OUT_OF_ORDER}' AS kind")
    return _as_difference(named, meant_at=meant_at)


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
