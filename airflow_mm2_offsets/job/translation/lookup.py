"""Looks up each row's position: one hash join, then only reads of one array.

Each step is a separate projection: then Spark computes a column only once, even if a later
projection uses it several times. All steps become one function of generated code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody names it

from airflow_mm2_offsets.job.translation.tables import (
    BASES,
    BASIS_AT,
    BETWEEN,
    EXTRAS_NONE,
    HEADER,
    LOW_BITS,
    RECORDED,
    SYNC,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def look_up(rows: DataFrame, segment_table: DataFrame) -> DataFrame:
    """Add ``low``, ``high`` and ``basis`` of each position, null where it has no segment.

    ``columns`` calls this.

    Args:
        rows: With ``_mm2_topic``, ``_mm2_partition`` and ``_mm2_position``.
        segment_table: As ``segments`` returned it. Its search depth and its kinds of tables are
            read now: they decide how long the expressions are.
    """
    limits = segment_table.agg(
        F.max("search_depth").alias("depth"), F.collect_set("kind").alias("kinds")
    ).collect()[0]
    depth, kinds = limits["depth"] or 0, set(limits["kinds"])
    searched = _in_bin(_joined(rows, _checked(segment_table, depth, kinds)))
    for step in reversed(range(depth)):
        searched = _narrowed(searched, 2**step)
    return _answered(searched, kinds)


def _checked(segment_table: DataFrame, depth: int, kinds: set[int]) -> DataFrame:
    """Return the table; reading it fails if its tables no longer fit the expressions."""
    fits = (F.col("search_depth") <= depth) & F.col("kind").isin(*kinds)
    failure = F.raise_error(F.lit("the segments have changed since translate() was called"))
    return segment_table.withColumn("lookup", F.when(fits, F.col("lookup")).otherwise(failure))


def _joined(rows: DataFrame, segment_table: DataFrame) -> DataFrame:
    """Join each row to its table.

    The key is a hash of topic and partition: Spark finds a single bigint in half the time of a
    text and a number. Both are compared after that, inside a CASE, so that Spark does not make
    keys of them.
    """
    tables = segment_table.select(
        *(F.col(name).alias(f"_mm2_of_{name}") for name in segment_table.columns)
    )
    rows = rows.withColumn("_mm2_key", F.xxhash64("_mm2_topic", "_mm2_partition"))
    tables = tables.select(
        *(f"_mm2_of_{name}" for name in ("topic", "begin", "end", "kind")),
        F.col("_mm2_of_partition").cast("bigint").alias("_mm2_of_partition"),
        F.col("_mm2_of_lookup").alias("_mm2_t"),
    ).withColumn("_mm2_of_key", F.xxhash64("_mm2_of_topic", "_mm2_of_partition"))
    verified = (F.col("_mm2_topic") == F.col("_mm2_of_topic")) & (
        F.col("_mm2_partition") == F.col("_mm2_of_partition")
    )
    same = (
        (F.col("_mm2_key") == F.col("_mm2_of_key"))
        & (_own("position") >= F.when(verified, F.col("_mm2_of_begin")))
        & (_own("position") <= F.col("_mm2_of_end"))
    )
    return rows.join(F.broadcast(tables), same, "left")


def _in_bin(joined: DataFrame) -> DataFrame:
    """Add the first and the last entry of the position's bin: ``_mm2_at`` and ``_mm2_until``."""
    base, tail = _head("base"), _head("tail")
    along = joined.withColumn("_mm2_base", base).withColumn(
        "_mm2_along", F.least(F.greatest(_own("position"), _own("base")), tail) - _own("base")
    )
    binned = along.withColumn(
        "_mm2_bin",
        F.call_function("shiftright", _own("along"), _head("shift").cast("int")) + len(HEADER),
    )
    return binned.withColumns(
        {
            "_mm2_at": _read(_own("bin")),
            "_mm2_until": _read(_own("bin") + 1),
            # An entry that begins here is below it, whatever its number.
            "_mm2_sought": F.shiftleft(_own("along"), 32).bitwiseOR(F.lit(LOW_BITS)),
        }
    )


def _narrowed(searched: DataFrame, step: int) -> DataFrame:
    """Go ``step`` entries on where the position is not before the entry there."""
    ahead = searched.withColumn("_mm2_ahead", _own("at") + step)
    on = (_own("ahead") <= _own("until")) & (_read(_own("ahead")) <= _own("sought"))
    return ahead.withColumn("_mm2_at", F.when(on, _own("ahead")).otherwise(_own("at")))


def _answered(searched: DataFrame, kinds: set[int]) -> DataFrame:
    """Add the answer of each row's entry."""
    entry = searched.withColumns(
        {"_mm2_entry": _read(_own("at")), "_mm2_next": _read(_own("at") + 1)}
    )
    has_record = _own("entry").bitwiseAND(RECORDED) != 0
    basis = F.shiftright("_mm2_entry", BASIS_AT).bitwiseAND(7)
    implied = F.when(_own("position") == _own("u"), SYNC).otherwise(BETWEEN)
    decoded = (
        entry.withColumns(
            {
                "_mm2_u": F.shiftright("_mm2_entry", 32) + _own("base"),
                "_mm2_d": _own("entry").bitwiseAND(LOW_BITS) + _head("base_d"),
                "_mm2_next_d": _own("next").bitwiseAND(LOW_BITS) + _head("base_d"),
                "_mm2_record": F.when(
                    has_record,
                    _head("records_at") + _own("entry").bitwiseAND(2**BASIS_AT - 1),
                ),
            }
        )
        .withColumn("_mm2_code", F.when(_is_implied(), implied).otherwise(basis))
        .withColumns(_bounds(no_extras=EXTRAS_NONE in kinds))
    )
    names = F.array(*map(F.lit, BASES))
    return decoded.withColumns(
        {
            # A negative number stands for a missing bound, or for a refusal.
            "_mm2_low": F.when(_own("low") >= 0, _own("low")),
            "_mm2_high": F.when(_own("high") >= 0, _own("high")),
            "_mm2_basis": F.get(names, _own("code").cast("int")),
        }
    )


def _bounds(*, no_extras: bool) -> dict[str, Column]:
    """Return the bounds, from the entry's record or from its neighbour: see ``tables``."""
    at_sync = _own("code") == SYNC
    low = F.when(at_sync, _own("d")).otherwise(_own("d") + 1)
    high = F.when(at_sync, _own("d")).otherwise(_own("next_d"))
    low = F.when(_is_implied(), low).otherwise(_read(_own("record")))
    high = F.when(_is_implied(), high).otherwise(_read(_own("record") + 1))
    if no_extras:
        zero = F.lit(0).cast("bigint")
        next_u = F.shiftright("_mm2_next", 32) + _own("base")
        low_rises_from = F.when(_is_implied(), next_u - _own("next_d") + _own("d") + 1)
        high_rises_until = F.when(_is_implied(), _own("next_d") - _own("d") + _own("u"))
        low_rises_from = low_rises_from.otherwise(_read(_own("record") + 2))
        high_rises_until = high_rises_until.otherwise(_read(_own("record") + 3))
        bends = (F.col("_mm2_of_kind") == EXTRAS_NONE) & ~at_sync
        low += F.when(bends, F.greatest(_own("position") - low_rises_from, zero)).otherwise(zero)
        high -= F.when(
            bends & (high >= 0), F.greatest(high_rises_until - _own("position"), zero)
        ).otherwise(zero)
    return {"_mm2_low": low, "_mm2_high": high}


def _is_implied() -> Column:
    """Whether the entry has no record: then its bounds follow from it and the next entry."""
    return _own("record").isNull()


def _head(name: str) -> Column:
    return _read(F.lit(HEADER.index(name)))


def _read(at: Column) -> Column:
    return F.get("_mm2_t", at)


def _own(name: str) -> Column:
    return F.col(f"_mm2_{name}")
