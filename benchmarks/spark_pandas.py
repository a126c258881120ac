"""The translation of columns through pandas UDFs, to compare with."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql.pandas.functions import pandas_udf

from airflow_mm2_offsets.bulk import STATUSES, translate_many
from airflow_mm2_offsets.core import SyncIndex
from benchmarks.load import TOPIC

_WIDE = 2**40
"""More than any offset here."""
_NAMES = ("target", "low", "high", "status", "basis")
_BASES = ("sync", "before-first-sync", "after-last-sync", "between-syncs")

Answer: TypeAlias = Callable[[Iterator[tuple[pd.Series, ...]]], Iterator[pd.DataFrame]]


def known_to_numpy(syncs: pd.DataFrame) -> pd.DataFrame:
    """Return what lies behind each sync, as columns that numpy can search."""
    syncs = syncs.sort_values(["partition", "upstream"], ignore_index=True)
    up, down = syncs["upstream"], syncs["downstream"]
    next_down = syncs.groupby("partition")["downstream"].shift(-1).fillna(-1).astype(np.int64)
    behind = {
        "begin": up,
        "at_low": down,
        "at_high": down,
        "low": down + 1,
        "low_rises_from": _WIDE,
        "high": next_down,
        "high_rises_until": 0,
    }
    segments = pd.DataFrame({"partition": syncs["partition"], **behind})
    first = segments.groupby("partition", as_index=False).first()
    before = first.assign(begin=0, at_low=-1, at_high=-1, low=0, high=first["at_low"])
    return pd.concat([before[first["begin"] > 0], segments], ignore_index=True)


def through_numpy(rows: DataFrame, segments: pd.DataFrame) -> DataFrame:
    """Do the same in a pandas UDF, as well as numpy does it: one search over all partitions."""
    segments = segments.sort_values(["partition", "begin"], ignore_index=True)
    columns = {name: segments[name].to_numpy() for name in segments.columns}
    keys = columns["partition"].astype(np.int64) * _WIDE + columns["begin"]
    shared = rows.sparkSession.sparkContext.broadcast((keys, columns))

    def answer(batches: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.DataFrame]:
        keys, of = shared.value
        for topic, partition, offset in batches:
            position = offset.to_numpy()
            at = (
                np.searchsorted(
                    keys, partition.to_numpy().astype(np.int64) * _WIDE + position, "right"
                )
                - 1
            )
            sync = (position == of["begin"][at]) & (of["at_low"][at] >= 0)
            low = of["low"][at] + np.maximum(position - of["low_rises_from"][at], 0)
            high = of["high"][at] - np.maximum(of["high_rises_until"][at] - position, 0)
            low, high = (
                np.where(sync, of["at_low"][at], low),
                np.where(sync, of["at_high"][at], high),
            )
            status = np.where(
                topic.to_numpy() != TOPIC, "refused", np.where(low == high, "exact", "bounded")
            )
            places = sync, of["at_low"][at] < 0, high < 0
            basis = np.select(places, _BASES[:-1], _BASES[-1])
            columns = low, low, high, status, basis
            yield pd.DataFrame(dict(zip(_NAMES, columns, strict=True)))

    return _asked(rows, answer)


def through_bulk(rows: DataFrame, index: SyncIndex) -> DataFrame:
    """Ask the package about all rows of a partition that come together; it says no basis then."""
    shared = rows.sparkSession.sparkContext.broadcast(index)

    def answer(batches: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.DataFrame]:
        index, statuses = shared.value, np.array(STATUSES, dtype=object)
        for topic, partition, offset in batches:
            position = offset.to_numpy()
            answers = np.empty((4, len(position)), dtype=np.int64)
            for (name, number), at in offset.groupby([topic, partition]).indices.items():
                many = translate_many(index, name, number, position[at])
                answers[:, at] = many.target, many.low, many.high, many.status
            columns = *answers[:3], statuses[answers[3]], None
            yield pd.DataFrame(dict(zip(_NAMES, columns, strict=True)))

    return _asked(rows, answer)


def through_core(rows: DataFrame, index: SyncIndex) -> DataFrame:
    """Ask the package about each row."""
    shared = rows.sparkSession.sparkContext.broadcast(index)

    def answer(batches: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.DataFrame]:
        index = shared.value
        for columns in batches:
            found = (index.translate(*row) for row in zip(*columns, strict=True))
            each = [
                (one.target, one.low, one.high, str(one.status), str(one.basis)) for one in found
            ]
            yield pd.DataFrame(each, columns=_NAMES)

    return _asked(rows, answer)


def _asked(rows: DataFrame, answer: Answer) -> DataFrame:
    kind = "target bigint, low bigint, high bigint, status string, basis string"
    udf = pandas_udf(answer, kind)  # type: ignore[call-overload]  # its stubs know no such iterator
    return rows.withColumn("answer", udf("topic", "partition", "offset"))
