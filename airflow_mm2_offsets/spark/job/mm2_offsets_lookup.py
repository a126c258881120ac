"""Looks each row's position up: one hash join, and then nothing but reads of one array.

Each step is a projection of its own, since Spark computes a column once that a later projection
uses more than once. All of them are one function of generated code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2_offsets_tables import (  # type: ignore[import-not-found] # comes by --py-files
    BASES,
    BETWEEN,
    HEADER,
    LOW_BITS,
    RECORD,
    RECORDED,
    STRAIGHT,
)
from pyspark.sql import functions as F  # noqa: N812 - as everybody names it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ANSWER: Final = ("at", "low", "high", "basis")


def look_up(asked: DataFrame, known: DataFrame) -> DataFrame:
    """Add ``low``, ``high`` and ``basis`` of each position, null where it has no segment.

    Args:
        asked: With ``_mm2_topic``, ``_mm2_partition`` and ``_mm2_position``.
        known: As ``segments`` returned it. How crowded its bins are, and what kinds of tables it
            has, is asked now: it decides how long the expressions are.
    """
    facts = known.agg(
        F.max("crowd").alias("crowd"), F.collect_set("kind").alias("kinds")
    ).collect()[0]
    crowd, kinds = facts["crowd"] or 0, set(facts["kinds"])
    found = _in_bin(_joined(asked, _checked(known, crowd, kinds)))
    for step in reversed(range(crowd.bit_length())):
        found = _narrowed(found, 2**step)
    return _answered(found, kinds)


def _checked(known: DataFrame, crowd: int, kinds: set[int]) -> DataFrame:
    """Return ``known``, which fails where it is not any more what the expressions are made for."""
    fits = (F.col("crowd") <= crowd) & F.col("kind").isin(*kinds)
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
    decoded = entry.withColumns(
        {
            "_mm2_u": F.shiftright("_mm2_entry", 32) + _own("base"),
            "_mm2_d": _own("entry").bitwiseAND(LOW_BITS) + _head("base_d"),
            "_mm2_next_d": _own("next").bitwiseAND(LOW_BITS) + _head("base_d"),
        }
    )
    has_record = _own("entry").bitwiseAND(RECORDED) != 0
    at = _head("records_at") + _own("entry").bitwiseAND(RECORDED - 1) * len(RECORD)
    decoded = decoded.withColumn("_mm2_record", F.when(has_record, at))
    told, recorded = _told(straight=STRAIGHT in kinds), _recorded()
    return decoded.withColumns(
        {
            name: F.when(_own("record").isNull(), told[name]).otherwise(recorded[name])
            for name in told
        }
    )


def _told(*, straight: bool) -> dict[str, Column]:
    """Return the answer that an entry tells with the next one: see ``mm2_offsets_tables``."""
    zero = F.lit(0).cast("bigint")
    at_sync, low, high = _position() == _own("u"), _own("d") + 1, _own("next_d")
    if straight:
        next_u = F.shiftright("_mm2_next", 32) + _own("base")
        low_knee, high_knee = next_u - high + low, high - _own("d") + _own("u")
        low += F.when(_is_straight(), F.greatest(_position() - low_knee, zero)).otherwise(zero)
        high -= F.when(_is_straight(), F.greatest(high_knee - _position(), zero)).otherwise(zero)
    return {
        "_mm2_low": F.when(at_sync, _own("d")).otherwise(low),
        "_mm2_high": F.when(at_sync, _own("d")).otherwise(high),
        "_mm2_basis": F.when(at_sync, "sync").otherwise(BETWEEN),
    }


def _is_straight() -> Column:
    straight: Column = F.col("_mm2_of_kind") == STRAIGHT
    return straight


def _recorded() -> dict[str, Column]:
    """Return the answer from the entry's record."""
    field = {name: _read(_own("record") + at) for at, name in enumerate(RECORD)}
    at_sync = (_position() == _own("u")) & (field["at_low"] >= 0)
    zero = F.lit(0).cast("bigint")
    low = field["low"] + F.greatest(_position() - field["low_knee"], zero)
    high = field["high"] - F.greatest(field["high_knee"] - _position(), zero)
    at_high = F.when(field["at_high"] >= 0, field["at_high"])
    basis = F.element_at(F.array(*map(F.lit, BASES)), (field["basis"] + 1).cast("int"))
    again = field["basis"] == BASES.index("copying-again")
    return {
        "_mm2_low": F.when(at_sync, field["at_low"]).when(field["low"] >= 0, low),
        "_mm2_high": F.when(at_sync, at_high).when(field["high"] >= 0, high),
        "_mm2_basis": F.when(at_sync & ~again, "sync").otherwise(basis),
    }


def _head(name: str) -> Column:
    return _read(F.lit(HEADER.index(name)))


def _read(at: Column) -> Column:
    return F.get("_mm2_t", at)


def _own(name: str) -> Column:
    return F.col(f"_mm2_{name}")


def _position() -> Column:
    return F.col("_mm2_position")
