"""A Spark program that writes to sinks with one checkpoint, and then with a fresh one.

It leaves a file with what the package says of each sink in between, and what each then holds.
"""

import json
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from upath import UPath

from airflow_mm2_offsets.spark.sinks import SinkWriter, find_sink_problems

DELTA: dict[str, bool | float | int | str | None] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "3",
    "spark.sql.shuffle.partitions": "1",
}
Start = Callable[[DataFrame, str, str], None]


def _write(application: str, table: str, batch: DataFrame, batch_id: int) -> None:
    append = batch.write.format("delta").mode("append")
    append.options(txnAppId=application, txnVersion=batch_id).save(table)


def into_files(rows: DataFrame, output: str, checkpoint: str) -> None:
    writer = rows.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(output).awaitTermination()


def into_delta(rows: DataFrame, output: str, checkpoint: str) -> None:
    """Write as a user does who wants each batch once."""
    writer = rows.writeStream.foreachBatch(partial(_write, "orders-job", output))
    writer = writer.option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


def into_delta_itself(rows: DataFrame, output: str, checkpoint: str) -> None:
    """Write through Delta's own streaming sink."""
    writer = rows.writeStream.format("delta").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(output).awaitTermination()


def aged(output: str, name: str) -> UPath:
    """Return a copy without what a Delta table loses after a month: commits before a checkpoint."""
    copy = Path(output).with_name(name)
    shutil.copytree(output, copy)
    log = copy / "_delta_log"
    newest = max((path.name[:20] for path in log.glob("0*.checkpoint.*")), default="")
    for commit in log.glob("0*.json"):
        if ".checkpoint." not in commit.name and commit.name[:20] <= newest:
            commit.unlink()
    return UPath(copy)


def writer(kind: str, checkpoint: Path) -> SinkWriter:
    """Return what the user knows of the job that comes after one that had a checkpoint."""
    if kind != "delta itself":
        return SinkWriter(txn_app_id="orders-job")
    metadata = checkpoint / "metadata"
    query_id = json.loads(metadata.read_text())["id"] if metadata.exists() else None
    return SinkWriter(replaced_query_id=query_id)


SINKS: dict[str, tuple[Start, str, dict[str, str]]] = {
    "files": (into_files, "parquet", {}),
    "delta": (into_delta, "delta", {"checkpointPolicy": "classic"}),
    "delta v2": (into_delta, "delta", {"checkpointPolicy": "v2"}),
    "delta itself": (into_delta_itself, "delta", {"checkpointPolicy": "classic"}),
}


def main() -> None:
    folder = sys.argv[1]
    spark = SparkSession.builder.config(map=DELTA).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    results = {}
    for name, (start, kind, properties) in SINKS.items():
        for key, value in properties.items():
            spark.conf.set(f"spark.databricks.delta.properties.defaults.{key}", value)
        output = f"{folder}/{name}/output"
        first = Path(folder, name, "checkpoint-0")
        problems = [find_sink_problems(UPath(output), writer(name, first))]
        for number in (0, 1):
            rows = spark.readStream.option("maxFilesPerTrigger", 1).text(f"{folder}/input-{number}")
            start(rows, output, f"{folder}/{name}/checkpoint-{number}")
            copy = aged(output, f"aged-{number}")
            problems.append(find_sink_problems(copy, writer(name, first)))
        row_count = spark.read.format(kind).load(output).count()
        checkpoints = [path.name for path in Path(output).glob("_delta_log/0*.checkpoint.*")]
        results[name] = {"problems": problems, "row_count": row_count, "checkpoints": checkpoints}
    Path(folder, "results.json").write_text(json.dumps(results))
    spark.stop()


if __name__ == "__main__":
    main()
