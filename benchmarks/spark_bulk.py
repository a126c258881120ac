"""Columns of offsets translated in Spark: native expressions beside a pandas UDF.

Run it with `make bench-spark`. Seconds on the clock depend on what else the machine does; those
of the processors (the JVM's and its Python workers') hardly do, so the ratio is of the latter.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import psutil  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.functions import pandas_udf

from airflow_mm2_offsets.spark import job
from benchmarks.load import COPIED, JITTER, LAG, TOPIC
from benchmarks.results import about
from stack import jars

sys.path.append(str(Path(job.__file__).parent))  # as --py-files does
from mm2_offsets_sql import (  # type: ignore[import-not-found] # comes by --py-files
    segments,
    translate,
)

BUILD = Path(__file__).parent.parent / "build"
OUT = Path(__file__).with_name("results") / "spark_bulk.json"
PARTITIONS = 1000
HOT = 0.9
"""The share of the rows that are of one partition, in the skewed run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run took."""

    what: str
    rows: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    """Of the JVM's resident memory, since its start."""

    def __str__(self) -> str:
        """Return it as a line."""
        per = self.rows / self.cpu_seconds
        return (
            f"{self.what:28} {self.rows:>12,} rows {self.seconds:8.1f} s {self.cpu_seconds:8.1f} s "
            f"of processors, {per:>12,.0f} rows each; peak {self.peak_bytes / 2**30:.2f} GiB"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """Runs things in a session and measures them."""

    spark: SparkSession
    jvm: psutil.Process

    @classmethod
    def of(cls, spark: SparkSession) -> "Meter":
        """Find the session's JVM."""
        named = str(spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getName())  # type: ignore[union-attr]  # noqa: SLF001 - there is no other way to its pid
        return cls(spark=spark, jvm=psutil.Process(int(named.partition("@")[0])))

    def run(self, what: str, rows: int, frame: DataFrame) -> Run:
        """Run a query into nowhere."""
        begin, used = time.perf_counter(), self._cpu()
        frame.write.format("noop").mode("overwrite").save()
        found = Run(
            what=what,
            rows=rows,
            seconds=time.perf_counter() - begin,
            cpu_seconds=self._cpu() - used,
            peak_bytes=self._peak(),
        )
        print(found, flush=True)  # noqa: T201 - it speaks to the person who started it
        return found

    def _cpu(self) -> float:
        """Return what the JVM and its Python workers have used; a worker that ended, included."""
        processes = (self.jvm, *self.jvm.children(recursive=True))
        times = [each.cpu_times() for each in processes]
        return float(sum(t.user + t.system + t.children_user + t.children_system for t in times))

    def _peak(self) -> int:
        status = Path(f"/proc/{self.jvm.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024


def made_syncs(spark: SparkSession, count: int) -> DataFrame:
    """Return syncs like those of ``benchmarks.load``, made by Spark."""
    turn, partition = f"(id div {PARTITIONS})", f"(id % {PARTITIONS})"
    jitter = f"(({turn} * 31 + {partition} * 17) % {JITTER})"
    return spark.range(count).selectExpr(
        f"'{TOPIC}' topic",
        f"int({partition}) partition",
        f"{turn} * {LAG} + {jitter} upstream",
        f"{turn} * {COPIED} + {jitter} downstream",
        "id offset",
    )


def made_rows(spark: SparkSession, count: int, syncs: int, hot: float = 0) -> DataFrame:
    """Return rows of a table: partitions and offsets in no order at all, the worst for a cache."""
    span = syncs // PARTITIONS * LAG
    chance = "pmod(xxhash64(id, 2L), 1000)"
    return spark.range(count).selectExpr(
        "id",
        f"'{TOPIC}' topic",
        f"if({chance} < {int(hot * 1000)}, 0, int(pmod(xxhash64(id), {PARTITIONS}))) partition",
        f"pmod(xxhash64(id, 1L), {span}L) offset",
    )


def through_pandas(rows: DataFrame, known: pd.DataFrame) -> DataFrame:
    """Do the same in a pandas UDF, as well as numpy does it: one search over all partitions."""
    known = known.sort_values(["partition", "begin"], ignore_index=True)
    wide = 2**40  # more than any offset here
    columns = {
        name: known[name].to_numpy() for name in known.columns if name not in ("topic", "basis")
    }
    keys = columns["partition"].astype(np.int64) * wide + columns["begin"]
    shared = rows.sparkSession.sparkContext.broadcast((keys, columns))

    def answer(batches: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.DataFrame]:
        keys, of = shared.value
        for topic, partition, offset in batches:
            position = offset.to_numpy()
            at = (
                np.searchsorted(
                    keys, partition.to_numpy().astype(np.int64) * wide + position, "right"
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

    kind = "target bigint, low bigint, high bigint, status string"
    udf = pandas_udf(answer, kind)  # type: ignore[call-overload]  # its stubs know no such iterator
    return rows.withColumn("answer", udf("topic", "partition", "offset"))


def measure(meter: Meter, syncs: int, sizes: list[int], pandas_rows: int) -> list[Run]:
    """Measure everything."""
    spark = meter.spark
    known = segments(made_syncs(spark, syncs)).cache()
    runs = [meter.run("segments", syncs, known)]
    # What is compiled and broadcast at the first run is not what is asked about.
    meter.run("(warm up)", 1000, translate(made_rows(spark, 1000, syncs), known))
    for size in sizes:
        rows = made_rows(spark, size, syncs)
        runs += [
            meter.run("rows made, nothing else", size, rows),
            meter.run("native", size, translate(rows, known)),
        ]
    skewed = made_rows(spark, sizes[-1], syncs, HOT)
    runs.append(meter.run("native, one hot partition", sizes[-1], translate(skewed, known)))
    rows = made_rows(spark, pandas_rows, syncs)
    local = known.drop("topic", "basis").fillna(-1).toPandas()
    runs.append(meter.run("pandas UDF", pandas_rows, through_pandas(rows, local)))
    known.unpersist()
    return runs


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_bulk", description=__doc__)
    parser.add_argument("--syncs", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7, 10**8])
    parser.add_argument("--pandas-rows", type=int, default=10**7)
    parser.add_argument("--memory", default="8g")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable  # that of the pandas UDF's workers
    described = about(jars.fetch(BUILD).kafka, {"syncs": given.syncs, "partitions": PARTITIONS})
    options = {
        "spark.driver.memory": given.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    spark = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    try:
        runs = measure(Meter.of(spark), given.syncs, given.rows, given.pandas_rows)
        write(given.out, described | {"spark": spark.version, "memory": given.memory}, runs)
    finally:
        spark.stop()


def write(path: Path, described: dict[str, Any], runs: list[Run]) -> None:
    """Write the runs, with the ratio, as JSON."""
    each = {run.what: run.rows / run.cpu_seconds for run in runs}
    found = {
        "about": described,
        "runs": [asdict(run) for run in runs],
        "native_rows_per_cpu_second": each["native"],
        "pandas_rows_per_cpu_second": each["pandas UDF"],
        "times_as_fast_per_core": each["native"] / each["pandas UDF"],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
