"""The tables that positions are looked up in: a row with one array for each topic and partition.

A lookup is worth what it touches of the memory, so all that it needs lies in one ``array<bigint>``
of 8 to 12 bytes for a sync:

- the header: see ``HEADER``;
- for each bin, ``2**shift`` positions wide, where its first entry lies in the array; and one more;
- the entries: where a segment begins, from ``base`` on, shifted by 32 bits, and a number;
- the records of ``RECORD``, one for each entry, where the log does not only rise.

Where it does, an entry's number is the target offset of the sync that it begins with, from
``base_d`` on, and the next entry tells the rest. The first entry stands for what lies before the
first sync. Elsewhere the number is that of the entry's record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2_offsets_logs import PLACE  # type: ignore[import-not-found] # comes by --py-files
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody names it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HEADER: Final = ("base", "tail", "shift", "base_d", "records_at")
"""The position that entries count from; the last one that an entry begins at; the width of a bin;
the target offset that entries count from; where the records lie."""
RECORD: Final = ("at_low", "at_high", "low", "low_knee", "high", "high_knee", "basis")
"""See ``stretches_of``; -1 for null."""
BASES: Final = (
    *("sync", "between-syncs", "before-first-sync", "after-last-sync", "copying-again"),
    "history-cut",
)
"""A record holds the basis as its place here."""
RISING, STRAIGHT, ANY = 0, 1, 2
"""What a table is of: a log that only rises; the same where extras are ruled out; any other."""

_COLUMNS = (*PLACE, "begin", "end", "kind", "crowd", "lookup")
_SPAN = 31
"""An entry begins less than ``2**31`` positions from the base."""
_MOST = 20
"""A table is of no more than ``2**20`` records, and of 16 times as many entries without."""
_BIN_ENTRIES = 16
"""About: fewer would make the bins a larger part of the memory, and be no faster."""


def fits_entries(log: str) -> Column:
    """Return whether a log that only rises fits into entries without records."""
    first, last = F.get(log, F.lit(0)), F.element_at(log, -1)
    fits: Column = (
        (last["u"] - first["u"] < 2**_SPAN - 2)
        & (last["d"] - first["d"] < 2**_SPAN)
        & (last["d"] < 2**62)
        & (F.size(log) < 2 ** (_MOST + 4))
    )
    return fits


def rising_tables(logs: DataFrame, extras: str) -> DataFrame:
    """Return the table of each log that only rises and fits."""
    base = F.get("log", F.lit(0))["u"] - 1
    based = logs.select(
        *PLACE,
        "log",
        F.lit(0).cast("bigint").alias("begin"),
        F.lit(2**63 - 1).alias("end"),
        F.lit(STRAIGHT if extras == "none" else RISING).alias("kind"),
        base.alias("base"),
        F.element_at("log", -1)["u"].alias("tail"),
        F.get("log", F.lit(0))["d"].alias("base_d"),
    )
    entries = F.transform(
        "log", lambda sync: _entry(sync["u"] - F.col("base"), sync["d"] - F.col("base_d"))
    )
    none = F.array().cast("array<bigint>")
    return _with_lookup(
        based.select(
            "*",
            F.concat(F.array(F.lit(0).cast("bigint")), entries).alias("entries"),
            none.alias("records"),
        )
    )


def any_tables(stretches: DataFrame) -> DataFrame:
    """Return tables of rows as of ``stretches_of``: several of a partition where one is too long.

    Each is of the positions from ``begin`` to ``end``.
    """
    number = F.row_number().over(Window.partitionBy(*PLACE).orderBy("begin")) - 1
    code = F.coalesce(*(F.when(F.col("basis") == name, at) for at, name in enumerate(BASES)))
    fields = {name: F.col(name) for name in RECORD[:-1]} | {"basis": code}
    segment = F.struct(
        "begin",
        *(F.coalesce(each.cast("bigint"), F.lit(-1)).alias(to) for to, each in fields.items()),
    )
    pieces = (
        stretches.withColumn("far", F.shiftright("begin", _SPAN))
        .withColumn("many", F.shiftright(number, _MOST))
        .groupBy(*PLACE, "far", "many")
        .agg(
            F.min("begin").alias("begin"),
            F.max("end").alias("end"),
            F.max("begin").alias("tail"),
            F.sort_array(F.collect_list(segment)).alias("segments"),
        )
    )
    entries = F.transform(
        "segments", lambda each, at: _entry(each["begin"] - F.col("base"), at.cast("bigint"))
    )
    records = F.transform("segments", lambda each: F.array(*(each[name] for name in RECORD)))
    return _with_lookup(
        pieces.select("*", F.col("begin").alias("base")).select(
            "*",
            F.lit(ANY).alias("kind"),
            F.lit(0).cast("bigint").alias("base_d"),
            entries.alias("entries"),
            F.flatten(records).alias("records"),
        )
    )


def _entry(begin: Column, number: Column) -> Column:
    return F.shiftleft(begin, 32).bitwiseOR(number)


def _with_lookup(tables: DataFrame) -> DataFrame:
    """Add the array, and into how many entries of one bin a position can fall."""
    span, width = F.col("tail") - F.col("base"), F.expr("shiftleft(1L, shift)")
    share = _BIN_ENTRIES * (span.cast("double") + 1) / F.size("entries")
    shift = F.least(F.greatest(F.ceil(F.log2(share)), F.lit(0)), F.lit(_SPAN)).cast("int")

    def bins_before(begin: Column) -> Column:
        return _shifted(begin + width - 1)

    def begun(entry: Column, at: Column) -> Column:
        """Return the bins that begin in an entry: as many times where it lies."""
        after = F.get("entries", at + 1)
        end = F.coalesce(bins_before(F.shiftright(after, 32)), F.col("bins") + 1)
        lies = F.col("first") + at
        return F.array_repeat(lies, (end - bins_before(F.shiftright(entry, 32))).cast("int"))

    binned = (
        tables.withColumn("shift", shift)
        .withColumn("bins", _shifted(span) + 1)
        .withColumn("first", F.col("bins") + (len(HEADER) + 1))
        .withColumn("starts", F.flatten(F.transform("entries", begun)))
        .withColumn("records_at", F.col("first") + F.size("entries"))
    )
    crowds = F.zip_with(
        F.slice("starts", F.lit(2), F.col("bins").cast("int")),
        F.slice("starts", F.lit(1), F.col("bins").cast("int")),
        lambda end, start: end - start,
    )
    header = F.array(*(F.coalesce(F.col(name).cast("bigint"), F.lit(0)) for name in HEADER))
    lookup = F.concat(header, "starts", "entries", "records")
    # Where Spark knows that no element is null, it does not look for it.
    solid = F.transform(lookup, lambda number: F.coalesce(number, F.lit(0)))
    crowd = F.array_max(crowds)
    return binned.select("*", crowd.alias("crowd"), solid.alias("lookup")).select(*_COLUMNS)


def _shifted(number: Column) -> Column:
    """Return in which bin a number lies."""
    return F.call_function("shiftright", number, F.col("shift"))
