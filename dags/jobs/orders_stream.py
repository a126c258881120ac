"""Streams a Kafka topic into Parquet, and can be stopped and moved to another cluster.

An example to copy. Three things make a streaming job movable:

1. every row keeps its lineage (topic, partition, offset), so that the sink can be checked;
2. a batch that runs again overwrites its earlier output: the folder's name has the batch's number;
3. it runs under ``StopControl``: it ends between two batches, reports its positions, and never
   runs again once it was moved away.

The Kafka source and the job's part of this package come along with spark-submit::

    spark-submit --jars <spark-sql-kafka and its jars> \
        --py-files <what airflow_mm2_offsets.job.py_files() returns> \
        orders_stream.py --bootstrap-servers source:9092 --home s3a://lake/orders

Its home is a folder on this cluster: it has the checkpoint, what failover and job write for each
other, and the output. Where a failover has moved the job to, it also says where the job starts.
"""

import argparse
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from airflow_mm2_offsets.job import StopControl, kafka_options

TOPIC = "orders"


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--home", required=True, help="never shared by two clusters")
    parser.add_argument("--topic", help=f"by default that of the last failover, or {TOPIC}")
    parser.add_argument(
        "--output",
        help="a folder for this run alone: batch numbers start at 0 with each new checkpoint; by "
        "default in the home",
    )
    parser.add_argument("--trigger", type=float, default=5.0, help="seconds between batches")
    parser.add_argument(
        "--kafka-properties",
        default="",
        metavar="FILE",
        help="Kafka client properties, such as the login: a list of processes would show them",
    )
    return parser.parse_args()


def read_topic(spark: SparkSession, control: StopControl, args: argparse.Namespace) -> DataFrame:
    """Return the topic's committed records with their lineage."""
    properties = kafka_options(spark, args.kafka_properties) if args.kafka_properties else {}
    return (
        spark.readStream.format("kafka")
        .options(**properties)
        .option("kafka.bootstrap.servers", args.bootstrap_servers)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", args.topic or control.topics(TOPIC))
        # Spark uses it only with a new checkpoint.
        .option("startingOffsets", control.starting_offsets("earliest"))
        # Records that were deleted before they were read must fail the job, not be skipped.
        .option("failOnDataLoss", "true")
        .load()
        .selectExpr(
            "CAST(key AS STRING) AS key",
            "CAST(value AS STRING) AS value",
            "topic",
            "partition",
            "offset",
            "timestamp",
        )
    )


def write_batch(output: str, batch: DataFrame, batch_id: int) -> None:
    """Write one batch; written again, it replaces itself."""
    batch.write.mode("overwrite").parquet(f"{output}/batch_id={batch_id}")


def main() -> None:
    """Run until asked to stop."""
    args = parse_args()
    spark = SparkSession.builder.appName("orders-stream").getOrCreate()
    control = StopControl(spark, args.home)  # first: a job that was moved away reads nothing
    query = (
        read_topic(spark, control, args)
        .writeStream.foreachBatch(partial(write_batch, args.output or control.output))
        .option("checkpointLocation", control.checkpoint)
        .trigger(processingTime=f"{args.trigger} seconds")
        .start()
    )
    control.run(query)  # in place of query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
