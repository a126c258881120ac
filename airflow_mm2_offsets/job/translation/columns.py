"""Translates columns of source offsets to target offsets, inside a Spark job.

What ``translate`` adds to a plan are native expressions and one join: no row passes through
Python, and both batch and streaming DataFrames can be translated::

    from airflow_mm2_offsets.job import decode_syncs, segments, translate

    syncs = decode_syncs(spark.read.format("kafka")...load())
    segment_table = segments(syncs).cache()
    table = translate(table, segment_table, topic="topic", partition="partition", offset="offset")

The answers are those of ``SyncIndex.translate`` without further evidence: ``segments`` has the
package's core make them, for all positions of each topic and partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - as everybody names it

from airflow_mm2_offsets.job.translation.decode import decode_syncs
from airflow_mm2_offsets.job.translation.logs import check_python, logs_of, tables_of_logs
from airflow_mm2_offsets.job.translation.lookup import look_up

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["COLUMNS", "EXTRAS", "decode_syncs", "segments", "translate"]

EXTRAS: Final = ("possible", "none")
COLUMNS: Final = ("target", "low", "high", "status", "basis")
"""What ``translate`` adds."""

_WHOLE = ("tinyint", "smallint", "int", "bigint")


def segments(syncs: DataFrame, *, extras: str = "possible") -> DataFrame:
    """Return the answers for all positions, for ``translate``.

    Keep it (``cache()``, or a table): it is read twice by each ``translate``.

    Args:
        syncs: ``topic``, ``partition``, ``upstream``, ``downstream`` and ``offset``, their order.
            Rows with a null or a negative number are skipped.
        extras: ``none`` if you know that each target offset holds a record copied for the first
            time: no transaction markers, no duplicate copies, no records of other writers.

    Returns:
        A row for each ``topic`` and ``partition``, several for a very long log. A row is for the
        positions from ``begin`` to ``end``; only ``translate`` reads its other columns.

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
    segment_table: DataFrame,
    *,
    topic: Column | str = "topic",
    partition: Column | str = "partition",
    offset: Column | str = "offset",
    prefix: str = "",
) -> DataFrame:
    """Return ``rows`` with the target's offsets; no row is dropped or doubled.

    Args:
        rows: A batch or streaming DataFrame that holds the Kafka coordinates of its rows.
        segment_table: What ``segments`` returned, cached or stored. It is broadcast: docs/bulk.md
            tells its size.
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
    columns = {"topic": topic, "partition": partition, "position": offset}
    answered: DataFrame = look_up(_with_coordinates(rows, columns, names), segment_table)
    return answered.select(
        *(F.col(f"`{name}`") for name in rows.columns),
        *(answer.alias(name) for name, answer in zip(names, _answers())),
    )


def _answers() -> tuple[Column, ...]:
    """Return the columns that ``COLUMNS`` names."""
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


def _with_coordinates(
    rows: DataFrame, coordinates: dict[str, Column | str], names: list[str]
) -> DataFrame:
    """Return ``rows`` with topic, partition and position, after a check of names and types."""
    taken = {name.lower() for name in rows.columns} & {name.lower() for name in names}
    if taken:
        raise ValueError(f"there is a column {min(taken)} already; give another prefix")
    columns = {
        name: F.col(column) if isinstance(column, str) else column
        for name, column in coordinates.items()
    }
    types = dict(rows.select(*(column.alias(name) for name, column in columns.items())).dtypes)
    for name, kind in types.items():
        allowed = ("string",) if name == "topic" else _WHOLE
        if kind not in allowed:
            raise ValueError(f"the {name}'s column is {kind}; it must be {' or '.join(allowed)}")
    offset = columns["position"].cast("bigint")
    return rows.withColumns(
        {
            "_mm2_topic": columns["topic"],
            "_mm2_partition": columns["partition"].cast("bigint"),
            "_mm2_position": F.when(offset >= 0, offset),
        }
    )
