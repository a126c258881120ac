"""Looks each row's position up: one hash join, then only reads of one array.

Each step is a separate projection: then Spark computes a column only once, even if a later
projection uses it several times. All steps become one function of generated code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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

ANSWER: Final = ("at", "low", "high", "basis")


def look_up(asked: DataFrame, known: DataFrame) -> DataFrame:
    """Add ``low``, ``high`` and ``basis`` of each position, null where it has no segment.

    Args:
        asked: With ``_mm2_topic``, ``_mm2_partition`` and ``_mm2_position``.
        known: As ``segments`` returned it. Its search depth and its kinds of tables are
            read now: they decide how long the expressions are.
    """
    facts = known.agg(
        F.max("search_depth").alias("depth"), F.collect_set("kind").alias("kinds")
    ).collect()[0]
    depth, kinds = facts["depth"] or 0, set(facts["kinds"])
    found = _in_bin(_joined(asked, _checked(known, depth, kinds)))
    for step in reversed(range(depth)):
        found = _narrowed(found, 2**step)
    return _answered(found, kinds)


def _checked(known: DataFrame, depth: int, kinds: set[int]) -> DataFrame:
    """Return ``known``; it fails if the expressions, made before, no longer fit its tables."""
    fits = (F.col("search_depth") <= depth) & F.col("kind").isin(*kinds)
    failure = F.raise_error(F.lit("the segments have changed since translate() was called"))
    return known.withColumn("lookup", F.when(fits, F.col("lookup")).otherwise(failure))


def _joined(asked: DataFrame, known: DataFrame) -> DataFrame:
    """Join each row to its table.

    Spark finds a single bigint in half the time that text and a number take, so a hash of them is
    the key, and they are compared after that: inside a CASE, where Spark makes no keys of them.
    """
    tables = known.select(*(F.col(name).alias(f"_mm2_of_{name}") for name in known.columns))
    rows = asked.withColumn("_mm2_key", F.xxhash64("_mm2_topic", "_mm2_partition"))
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
        & (_position() >= F.when(verified, F.col("_mm2_of_begin")))
        & (_position() <= F.col("_mm2_of_end"))
    )
    return rows.join(F.broadcast(tables), same, "left")


def _in_bin(joined: DataFrame) -> DataFrame:
    """Add the first and the last entry of the position's bin: ``_mm2_at`` and ``_mm2_until``."""
    base, tail = _head("base"), _head("tail")
    along = joined.withColumn("_mm2_base", base).withColumn(
        "_mm2_along", F.least(F.greatest(_position(), _own("base")), tail) - _own("base")
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


def _narrowed(found: DataFrame, step: int) -> DataFrame:
    """Go ``step`` entries on where the position is not before the entry there."""
    ahead = found.withColumn("_mm2_ahead", _own("at") + step)
    on = (_own("ahead") <= _own("until")) & (_read(_own("ahead")) <= _own("sought"))
    return ahead.withColumn("_mm2_at", F.when(on, _own("ahead")).otherwise(_own("at")))


def _answered(found: DataFrame, kinds: set[int]) -> DataFrame:
    """Add what the entry says."""
    entry = found.withColumns({"_mm2_entry": _read(_own("at")), "_mm2_next": _read(_own("at") + 1)})
    has_record = _own("entry").bitwiseAND(RECORDED) != 0
    basis = F.shiftright("_mm2_entry", BASIS_AT).bitwiseAND(7)
    told = F.when(_position() == _own("u"), SYNC).otherwise(BETWEEN)
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
        .withColumn("_mm2_code", F.when(_is_told(), told).otherwise(basis))
        .withColumns(_bounds(no_extras=EXTRAS_NONE in kinds))
    )
    names = F.array(*map(F.lit, BASES))
    return decoded.withColumns(
        {
            # The sign tells what is known: a null and a refusal have none.
            "_mm2_low": F.when(_own("low") >= 0, _own("low")),
            "_mm2_high": F.when(_own("high") >= 0, _own("high")),
            "_mm2_basis": F.get(names, _own("code").cast("int")),
        }
    )


def _bounds(*, no_extras: bool) -> dict[str, Column]:
    """Return the bounds, of the record or as told: see ``tables``."""
    at_sync = _own("code") == SYNC
    low = F.when(at_sync, _own("d")).otherwise(_own("d") + 1)
    high = F.when(at_sync, _own("d")).otherwise(_own("next_d"))
    low = F.when(_is_told(), low).otherwise(_read(_own("record")))
    high = F.when(_is_told(), high).otherwise(_read(_own("record") + 1))
    if no_extras:
        zero = F.lit(0).cast("bigint")
        next_u = F.shiftright("_mm2_next", 32) + _own("base")
        low_rises_from = F.when(_is_told(), next_u - _own("next_d") + _own("d") + 1)
        high_rises_until = F.when(_is_told(), _own("next_d") - _own("d") + _own("u"))
        low_rises_from = low_rises_from.otherwise(_read(_own("record") + 2))
        high_rises_until = high_rises_until.otherwise(_read(_own("record") + 3))
        bends = (F.col("_mm2_of_kind") == EXTRAS_NONE) & ~at_sync
        low += F.when(bends, F.greatest(_position() - low_rises_from, zero)).otherwise(zero)
        high -= F.when(
            bends & (high >= 0), F.greatest(high_rises_until - _position(), zero)
        ).otherwise(zero)
    return {"_mm2_low": low, "_mm2_high": high}


def _is_told() -> Column:
    return _own("record").isNull()


def _head(name: str) -> Column:
    return _read(F.lit(HEADER.index(name)))


def _read(at: Column) -> Column:
    return F.get("_mm2_t", at)


def _own(name: str) -> Column:
    return F.col(f"_mm2_{name}")


def _position() -> Column:
    return F.col("_mm2_position")
