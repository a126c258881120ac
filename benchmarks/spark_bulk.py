"""Columns of offsets translated in Spark: native expressions beside pandas UDFs.

Run it with `make bench-spark`. Seconds on the clock depend on what else the machine does; those
of the processors (the JVM's and its Python workers') hardly do, so the ratio is of the latter.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import DataFrame, SparkSession

from airflow_mm2_offsets.job import py_files, segments, translate
from benchmarks.load import COPIED, JITTER, LAG, REWIND, SURPLUS, TOPIC, Kind, Load
from benchmarks.results import about
from benchmarks.spark_pandas import known_to_numpy, through_bulk, through_core, through_numpy
from stack import jars

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
        run = Run(
            what=what,
            rows=rows,
            seconds=time.perf_counter() - begin,
            cpu_seconds=self._cpu() - used,
            peak_bytes=self._peak(),
        )
        print(run, flush=True)  # noqa: T201 - it speaks to the person who started it
        return run

    def _cpu(self) -> float:
        """Return what the JVM and its Python workers have used; a worker that ended, included."""
        processes = (self.jvm, *self.jvm.children(recursive=True))
        times = [process.cpu_times() for process in processes]
        return float(sum(t.user + t.system + t.children_user + t.children_system for t in times))

    def _peak(self) -> int:
        status = Path(f"/proc/{self.jvm.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024


def made_syncs(spark: SparkSession, count: int, kind: Kind = Kind.RISING) -> DataFrame:
    """Return the syncs of ``benchmarks.load``, made by Spark."""
    turn, partition = f"(id div {PARTITIONS})", f"(id % {PARTITIONS})"
    jitter = f"(({turn} * 31 + {partition} * 17) % {JITTER})"
    upstream, downstream = f"{turn} * {LAG}", f"{turn} * {COPIED}"
    match kind:
        case Kind.REWINDS:
            upstream += f" - least({turn} div {count // PARTITIONS // 3}, 2) * {REWIND}"
        case Kind.SURPLUS:
            downstream = f"{turn} * {LAG} + {turn} div 3 * {SURPLUS}"
        case Kind.ALL_SURPLUS:
            downstream = f"{turn} * {LAG + SURPLUS}"
    return spark.range(count).selectExpr(
        f"'{TOPIC}' topic",
        f"int({partition}) partition",
        f"{upstream} + {jitter} upstream",
        f"{downstream} + {jitter} downstream",
        "id offset",
    )


def made_rows(spark: SparkSession, count: int, syncs: int, hot: float = 0) -> DataFrame:
    """Return rows of a table: partitions and offsets in no order at all, the worst for a cache."""
    span = syncs // PARTITIONS * LAG
    chance = "pmod(xxhash64(id, 2L), 1000)"
    return spark.range(count).selectExpr(
        "id",
        # A constant would be no column: Spark would take it out of the join.
        f"if(id < 0, '', '{TOPIC}') topic",
        f"if({chance} < {int(hot * 1000)}, 0, int(pmod(xxhash64(id), {PARTITIONS}))) partition",
        f"pmod(xxhash64(id, 1L), {span}L) offset",
    )


def measure(meter: Meter, syncs: int, sizes: list[int], core_rows: int) -> list[Run]:
    """Measure everything."""
    spark = meter.spark
    made = made_syncs(spark, syncs)
    whats = ("segments, first of all", "segments, compiled")
    runs = [meter.run(what, syncs, segments(made)) for what in whats]
    segment_table = segments(made).cache()
    segment_table.count()
    local = known_to_numpy(made.toPandas())
    # What is compiled and started at the first run is not what is asked about.
    few = made_rows(spark, 1000, syncs)
    meter.run("(warm up)", 1000, translate(few, segment_table))
    meter.run("(warm up)", 1000, through_numpy(few, local))
    for size in sizes:
        for place, hot in (("", 0.0), (", one hot partition", HOT)):
            rows = made_rows(spark, size, syncs, hot)
            runs += [
                meter.run(f"rows alone{place}", size, rows),
                meter.run(f"native{place}", size, translate(rows, segment_table)),
                meter.run(f"numpy UDF{place}", size, through_numpy(rows, local)),
            ]
    index = Load(partitions=PARTITIONS, syncs=syncs // PARTITIONS).index()
    rows = made_rows(spark, core_rows, syncs)
    runs.append(meter.run("rows alone", core_rows, rows))
    runs.append(meter.run("translate_many UDF", core_rows, through_bulk(rows, index)))
    runs.append(meter.run("SyncIndex UDF", core_rows, through_core(rows, index)))
    segment_table.unpersist()
    kinds = (kind for kind in Kind if kind is not Kind.RISING)
    return runs + [run for kind in kinds for run in measure_kind(meter, kind, syncs, sizes[0])]


def measure_kind(meter: Meter, kind: Kind, syncs: int, size: int) -> list[Run]:
    """Measure syncs that do not only rise."""
    made = made_syncs(meter.spark, syncs, kind)
    segment_table = segments(made).cache()
    runs = [meter.run(f"segments, {kind}", syncs, segments(made))]
    rows = made_rows(meter.spark, size, syncs)
    meter.run("(warm up)", 1000, translate(made_rows(meter.spark, 1000, syncs), segment_table))
    runs.append(meter.run(f"native, {kind}", size, translate(rows, segment_table)))
    segment_table.unpersist()
    return runs


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_bulk", description=__doc__)
    parser.add_argument("--syncs", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**7, 10**8])
    parser.add_argument("--core-rows", type=int, default=10**6, help="those of the slow UDFs")
    parser.add_argument("--memory", default="8g")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable  # that of the pandas UDF's workers
    described = about(jars.fetch(BUILD).kafka, {"syncs": arguments.syncs, "partitions": PARTITIONS})
    options = {
        "spark.driver.memory": arguments.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    spark = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    spark.sparkContext.addPyFile(py_files())
    try:
        runs = measure(Meter.of(spark), arguments.syncs, arguments.rows, arguments.core_rows)
        write(arguments.out, described | {"spark": spark.version, "memory": arguments.memory}, runs)
    finally:
        spark.stop()


def ratios(runs: list[Run]) -> list[dict[str, Any]]:
    """Return how many times the processor's time of native expressions each UDF takes, a row.

    Once with all that a query does, once without what it takes to make its rows; where a UDF had
    fewer rows, beside the native run of the fewest.
    """
    each = {(run.what, run.rows): run.cpu_seconds / run.rows for run in runs}
    least = min(run.rows for run in runs if run.what == "native")
    found = []
    for udf in (run for run in runs if "UDF" in run.what):
        place = udf.what.partition("UDF")[2]
        size = udf.rows if (f"native{place}", udf.rows) in each else least
        native, bare = each[f"native{place}", size], each[f"rows alone{place}", size]
        slow, slow_bare = each[udf.what, udf.rows], each[f"rows alone{place}", udf.rows]
        found.append(
            {
                "against": udf.what,
                "rows": udf.rows,
                "native_rows": size,
                "udf_us_per_row": slow * 1e6,
                "native_us_per_row": native * 1e6,
                "times_as_fast_per_core": slow / native,
                "without_making_the_rows": (slow - slow_bare) / (native - bare),
            }
        )
    return found


def write(path: Path, described: dict[str, Any], runs: list[Run]) -> None:
    """Write the runs, with the ratios, as JSON."""
    compared = ratios(runs)
    for ratio in compared:
        print(ratio)  # noqa: T201 - it speaks to the person who started it
    found = {"about": described, "runs": [asdict(run) for run in runs], "ratios": compared}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
