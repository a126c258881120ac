"""The translation of columns through pandas UDFs, to compare with."""

from collections.abc import Iterator

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql.pandas.functions import pandas_udf

from airflow_mm2_offsets.core import SyncIndex
from benchmarks.load import TOPIC

_WIDE = 2**40
"""More than any offset here."""
_KIND = "target bigint, low bigint, high bigint, status string"


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
        "low_knee": _WIDE,
        "high": next_down,
        "high_knee": 0,
    }
    known = pd.DataFrame({"partition": syncs["partition"], **behind})
    first = known.groupby("partition", as_index=False).first()
    before = first.assign(begin=0, at_low=-1, at_high=-1, low=0, high=first["at_low"])
    return pd.concat([before[first["begin"] > 0], known], ignore_index=True)


def through_numpy(rows: DataFrame, known: pd.DataFrame) -> DataFrame:
    """Do the same in a pandas UDF, as well as numpy does it: one search over all partitions."""
    known = known.sort_values(["partition", "begin"], ignore_index=True)
    columns = {name: known[name].to_numpy() for name in known.columns}
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
            low = of["low"][at] + np.maximum(position - of["low_knee"][at], 0)
            high = of["high"][at] - np.maximum(of["high_knee"][at] - position, 0)
            low, high = (
                np.where(sync, of["at_low"][at], low),
                np.where(sync, of["at_high"][at], high),
            )
            status = np.where(
                topic.to_numpy() != TOPIC, "refused", np.where(low == high, "exact", "bounded")
            )
            yield pd.DataFrame({"target": low, "low": low, "high": high, "status": status})

    udf = pandas_udf(answer, _KIND)  # type: ignore[call-overload]  # its stubs know no such iterator
    return rows.withColumn("answer", udf("topic", "partition", "offset"))


def through_core(rows: DataFrame, index: SyncIndex) -> DataFrame:
    """Ask the package itself about each row, as one does who has it on the executors."""
    shared = rows.sparkSession.sparkContext.broadcast(index)

    def answer(batches: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.DataFrame]:
        index = shared.value
        for columns in batches:
            found = (index.translate(*row) for row in zip(*columns, strict=True))
            each = [(one.target, one.low, one.high, str(one.status)) for one in found]
            yield pd.DataFrame(each, columns=["target", "low", "high", "status"])

    udf = pandas_udf(answer, _KIND)  # type: ignore[call-overload]  # its stubs know no such iterator
    return rows.withColumn("answer", udf("topic", "partition", "offset"))
