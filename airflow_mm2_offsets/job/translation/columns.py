"""Translates columns of source offsets to target offsets, inside a Spark job.

What ``translate`` adds to a plan are native expressions and one join: no row passes through
Python, and both batch and streaming DataFrames can be translated::

    from airflow_mm2_offsets.job import decode_syncs, segments, translate

    syncs = decode_syncs(spark.read.format("kafka")...load())
    known = segments(syncs).cache()
    table = translate(table, known, topic="topic", partition="partition", offset="offset")

The answers are those of ``SyncIndex.translate`` without further evidence: ``segments`` has the
package's core make them, for all positions of each topic and partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - as everybody names it

from airflow_mm2_offsets.job.translation.decode import (
    decode_syncs,
)
from airflow_mm2_offsets.job.translation.logs import (
    check_python,
    logs_of,
    tables_of_logs,
)
from airflow_mm2_offsets.job.translation.lookup import (
    look_up,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["COLUMNS", "EXTRAS", "MAX_OFFSET", "decode_syncs", "segments", "translate"]

MAX_OFFSET: Final = 2**63 - 1
EXTRAS: Final = ("possible", "none")
COLUMNS: Final = ("target", "low", "high", "status", "basis")
"""What ``translate`` adds."""

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_TEXT = ("string",)


def segments(syncs: DataFrame, *, extras: str = "possible") -> DataFrame:
    """Return the answers for all positions, for ``translate``.

    Keep it (``cache()``, or a table): it is read twice by each ``translate``.

    Args:
        syncs: ``topic``, ``partition``, ``upstream``, ``downstream`` and ``offset``, their order.
            Rows with a null or a negative number are passed over.
        extras: ``none`` where it is known that the target holds no offset that copies no new
            record: transaction markers, records copied twice, records of other writers.

    Returns:
        A row for each ``topic`` and ``partition``, or several for a very long one, each for the
        positions from ``begin`` to ``end``; the rest is for ``translate`` alone.

    Raises:
        ValueError: ``extras`` is unknown.
        RuntimeError: Python is older than 3.11.
    """
    if extras not in EXTRAS:
        raise ValueError(f"extras {extras!r} is unknown; it must be one of {', '.join(EXTRAS)}")
    check_python()
    tables: DataFrame = tables_of_logs(logs_of(syncs), extras)
    return tables


def translate(
    rows: DataFrame,
    known: DataFrame,
    *,
    topic: Column | str = "topic",
    partition: Column | str = "partition",
    offset: Column | str = "offset",
    prefix: str = "",
) -> DataFrame:
    """Return ``rows`` with the target's offsets: each row once, whatever it holds.

    Args:
        rows: A batch or streaming DataFrame, as of a table that keeps where each of its rows came
            from in Kafka.
        known: What ``segments`` returned, kept. It is broadcast: see docs/bulk.md for its size.
        topic: The column of the topic's name on the source.
        partition: The column of the partition, a whole number.
        offset: The column of the position on the source, a whole number.
        prefix: What the names of the new columns begin with.

    Returns:
        ``rows`` with ``target``, the offset to read from so that nothing is lost, ``low`` and
        ``high``, which bound the truth (null where it is the target's end), ``status`` (exact,
        bounded or refused) and ``basis``, what the answer rests on or why it was refused: that of
        core, or ``not-a-position`` where the offset is null or negative.

    Raises:
        ValueError: A new column's name is taken, or a column is of another type.
    """
    names = [f"{prefix}{name}" for name in COLUMNS]
    asked = _asked(rows, {"topic": topic, "partition": partition, "position": offset}, names)
    found: DataFrame = look_up(asked, known)
    return found.select(
        *(F.col(f"`{name}`") for name in rows.columns),
        *(each.alias(name) for name, each in zip(names, _answers())),
    )


def _answers() -> tuple[Column, ...]:
    """Return what ``COLUMNS`` names."""
    position, low, high, basis = (
        F.col(f"_mm2_{name}") for name in ("position", "low", "high", "basis")
    )
    status = F.when(low.isNull(), "refused").when(low == high, "exact").otherwise("bounded")
    why = (
        F.when(position.isNull(), "not-a-position")
        .when(F.col("_mm2_of_kind").isNull(), "never-replicated")
        .otherwise(basis)
    )
    return low, low, high, status, why


def _asked(rows: DataFrame, given: dict[str, Column | str], names: list[str]) -> DataFrame:
    """Return ``rows`` with what is asked about each, after a look at names and types."""
    taken = {name.lower() for name in rows.columns} & {name.lower() for name in names}
    if taken:
        raise ValueError(f"there is a column {min(taken)} already; give another prefix")
    asked = {name: F.col(each) if isinstance(each, str) else each for name, each in given.items()}
    types = dict(rows.select(*(each.alias(name) for name, each in asked.items())).dtypes)
    for name, kind in types.items():
        wanted = _TEXT if name == "topic" else _WHOLE
        if kind not in wanted:
            raise ValueError(f"the {name}'s column is {kind}; it must be {' or '.join(wanted)}")
    offset = asked["position"].cast("bigint")
    return rows.withColumns(
        {
            "_mm2_topic": asked["topic"],
            "_mm2_partition": asked["partition"].cast("bigint"),
            "_mm2_position": F.when(offset >= 0, offset),
        }
    )
