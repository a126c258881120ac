"""A Spark program that runs streaming queries to the end of what there is to read.

It takes a file with a list of queries, each with what it reads and where it writes, and leaves a
file with what each one failed of, if anything.
"""

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

SCHEMA = "id INT, user STRING, at TIMESTAMP"
STATE = "org.apache.spark.sql.execution.streaming.state."
ATTEMPTS = 20
"""On a busy machine one Python worker after the other may take more than ten seconds."""
STARTING = Lock()
"""One at a time: a query takes what the session is set to when it starts."""
PROVIDERS = {"hdfs": "HDFSBackedStateStoreProvider", "rocksdb": "RocksDBStateStoreProvider"}


def read(spark: SparkSession, query: dict[str, Any], topic: str) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": query["servers"],
        "kafka.isolation.level": "read_committed",
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(query["batch_size"]),
    }
    records = spark.readStream.format("kafka").options(**options).load()
    rows = records.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("row"))
    return rows.select("row.*").withColumn("id", stumble(query))


def stumble(query: dict[str, Any]) -> Column:
    """Return the id, or fail the batch at the row that the query is to stumble over."""
    if query.get("fails_at") is None:
        return F.col("id")
    message = F.lit("this batch is to be left pending")
    return F.when(F.col("id") == query["fails_at"], F.raise_error(message)).otherwise(F.col("id"))


def stateful(spark: SparkSession, query: dict[str, Any]) -> DataFrame:
    """Deduplicate orders, join each with its payment, and count by window and user."""
    orders = read(spark, query, query["orders"]).withWatermark("at", "30 seconds")
    payments = read(spark, query, query["payments"]).withWatermark("at", "30 seconds")
    paid = orders.dropDuplicates(["id", "at"]).join(
        payments.select(F.col("id").alias("paid_id"), F.col("at").alias("paid_at")),
        F.expr("id = paid_id AND paid_at BETWEEN at AND at + INTERVAL 20 SECONDS"),
    )
    windows = paid.groupBy(F.window("at", "20 seconds"), "user")
    return windows.agg(F.count("*").alias("orders"), F.sum("id").alias("ids")).select(
        F.col("window.start").alias("since"), "user", "orders", "ids"
    )


def plain(spark: SparkSession, query: dict[str, Any]) -> DataFrame:
    return read(spark, query, query["orders"]).select("id", "user", "at")


class Count(StatefulProcessor):
    """Counts the rows of each user."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.rows = handle.getValueState("rows", "n INT")

    def handleInputRows(  # noqa: N802 - Spark's name
        self, key: tuple[str], rows: Iterator[Row], timers: object
    ) -> Iterator[Row]:
        del timers
        (before,) = self.rows.get() or (0,)
        count = before + sum(1 for _ in rows)
        self.rows.update((count,))
        yield Row(user=key[0], rows=count)

    def close(self) -> None:
        """Do nothing."""


def custom(spark: SparkSession, query: dict[str, Any]) -> DataFrame:
    """Count rows of files and of a topic by user, in custom state."""
    files = spark.readStream.schema(SCHEMA).json(query["files"])
    rows = files.union(read(spark, query, query["orders"]))
    return rows.groupBy("user").transformWithState(
        Count(), "user STRING, rows INT", "append", "none"
    )


def start(spark: SparkSession, query: dict[str, Any]) -> StreamingQuery:
    provider = STATE + PROVIDERS[query.get("state", "hdfs")]
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
    frame = {"stateful": stateful, "plain": plain, "custom": custom}[query["kind"]](spark, query)
    writer = frame.writeStream.format("parquet").option("path", query["output"])
    writer = writer.option("checkpointLocation", query["checkpoint"]).queryName(query["name"])
    return writer.trigger(availableNow=True).start()


def run(spark: SparkSession, query: dict[str, Any]) -> str | None:
    """Run a query to its end, again where Spark's wait of 10 s for a Python worker ran out."""
    for _ in range(ATTEMPTS):
        failure = outcome(spark, query)
        if "Python worker failed to connect back" not in (failure or ""):
            break
    return failure


def outcome(spark: SparkSession, query: dict[str, Any]) -> str | None:
    try:
        with STARTING:
            begun = start(spark, query)
        begun.awaitTermination()
    except (PySparkException, Py4JError) as error:
        return str(error)
    return None


def main() -> None:
    given, results = map(Path, sys.argv[1:])
    spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    queries = json.loads(given.read_text())
    with ThreadPoolExecutor(len(queries)) as pool:
        running = {each["name"]: pool.submit(run, spark, each) for each in queries}
    failed = {name: query.result() for name, query in running.items()}
    results.write_text(json.dumps(failed))
    spark.stop()


if __name__ == "__main__":
    main()
