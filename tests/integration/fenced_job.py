"""A job of several queries that need no Kafka; each batch it runs leaves a file "NAME-NUMBER".

While a file "hold" exists, no batch ends; while "hold-NAME" does, none of that query.
"""

import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from airflow_mm2_offsets.job import StopControl


def write(folder: Path, name: str, number: int) -> None:
    """Write down a batch; fail or wait if the test's files say so."""
    (folder / "batches" / f"{name}-{number}").touch()
    if (folder / f"fail-{name}").exists():
        raise ValueError(f"{name} fails")
    while (folder / "hold").exists() or (folder / f"hold-{name}").exists():
        time.sleep(0.02)


TRIGGERS: dict[str, dict[str, Any]] = {
    "stream": {"processingTime": "0 seconds"},  # batch after batch
    "paced": {"processingTime": "3 seconds"},  # with a pause after each
    "once": {"availableNow": True},
}


def start(spark: SparkSession, folder: Path, name: str, trigger: dict[str, Any]) -> StreamingQuery:
    """Start a query."""

    def write_batch(batch: DataFrame, number: int) -> None:  # noqa: ARG001 - as Spark calls it
        write(folder, name, number)

    return (
        spark.readStream.format("rate")
        .load()
        .writeStream.queryName(name)
        .foreachBatch(write_batch)
        .option("checkpointLocation", str(folder / "checkpoints" / name))
        .trigger(**trigger)
        .start()
    )


def main() -> None:
    """Start the queries, and give those before a "not" to the stop control."""
    folder, kind, *names = Path(sys.argv[1]), *sys.argv[2:]
    (folder / "batches").mkdir(exist_ok=True)
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    control = StopControl(spark, str(folder), interval=0.2)
    queries = [start(spark, folder, name, TRIGGERS[kind]) for name in names if name != "not"]
    known = names.index("not") if "not" in names else len(names)
    control.run(*queries[:known])


if __name__ == "__main__":
    main()
