"""Collects the syncs of each topic-partition in log order; core makes their tables on executors.

``columns.segments`` calls it.
"""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 - as everybody names it

from airflow_mm2_offsets.job.translation.tables import tables_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

PLACE: Final = ("topic", "partition")
MOST_ROWS: Final = 2**21
"""A table holds no more rows; each has 8 to 80 bytes."""
_TABLES: Final = (
    "array<struct<begin:bigint,end:bigint,kind:int,search_depth:int,lookup:array<bigint>>>"
)
_PYTHON: Final = (3, 11)


def logs_of(syncs: DataFrame) -> DataFrame:
    """Return the valid syncs of each topic-partition, in log order.

    Their offsets are in ``upstream`` and ``downstream``: big-endian numbers, 8 bytes each. Python
    reads those a hundred times faster than an array of numbers, and in an eighth of the memory.
    """
    numbers = ("partition", "upstream", "downstream", "offset")
    valid = syncs.where(" and ".join(f"{name} >= 0" for name in numbers) + " and topic is not null")
    sync = F.struct(
        # This tells Spark that no number is null; otherwise it checks all of them repeatedly.
        *(
            F.coalesce(F.col(name).cast("bigint"), F.lit(0)).alias(name)
            for name in ("offset", "upstream", "downstream")
        )
    )
    logs = valid.groupBy(*PLACE).agg(F.sort_array(F.collect_list(sync)).alias("log"))
    return logs.select(*PLACE, *(_bytes(name).alias(name) for name in ("upstream", "downstream")))


def tables_of_logs(logs: DataFrame, extras: str) -> DataFrame:
    """Return the tables of each log, made by core on the executors; see ``tables``."""
    make = F.udf(_maker(extras, MOST_ROWS), _TABLES, useArrow=False)
    tables = logs.select(*PLACE, F.explode(make("upstream", "downstream")).alias("table"))
    return tables.select(*PLACE, "table.*")


def check_python(version: tuple[int, ...] = sys.version_info[:2]) -> None:
    """Raise RuntimeError where Python is too old for core."""
    if version < _PYTHON:
        raise RuntimeError(
            "segments() needs Python {}.{} or newer, on the driver and the executors; this is "
            "{}.{}. Call it in a job that has such a Python and write the result as Parquet; "
            "translate() reads that table on any Python that PySpark runs on.".format(
                *_PYTHON, *version
            )
        )


def _bytes(name: str) -> Column:
    digits = F.transform("log", lambda sync: F.lpad(F.hex(sync[name]), 16, "0"))
    return F.unhex(F.array_join(digits, ""))


def _maker(extras: str, most: int) -> Callable[[bytes, bytes], list[tuple[Any, ...]]]:
    """Return the function that makes the tables of one log."""

    def make(upstream: bytes, downstream: bytes) -> list[tuple[Any, ...]]:
        # Imported here: if another job makes the tables, this Python may be too old for core.
        from airflow_mm2_offsets.core import Extras  # noqa: PLC0415
        from airflow_mm2_offsets.core.epochs import PartitionSyncs  # noqa: PLC0415
        from airflow_mm2_offsets.core.rows import rows_of  # noqa: PLC0415

        syncs = PartitionSyncs(zip(_numbers(upstream), _numbers(downstream)))
        return list(tables_of(rows_of(syncs, extras=Extras(extras)), extras=extras, most=most))

    return make


def _numbers(column: bytes) -> array[int]:
    numbers = array("q", bytes(column))
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
