"""A job that writes each batch to its own file, so that a repeated write shows.

Its query is started again and again in one session: after each stop it waits for a file "go-N".
"""

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from airflow_mm2_offsets.job import StopControl


def write(folder: Path, batch: DataFrame, number: int) -> None:
    """Write lineage alone; the folder is another one each time a batch runs.

    What is written and not committed is what is written again: let there be time for a kill.
    """
    place = folder / "output" / f"{time.time_ns()}-{number}"
    batch.select("partition", "offset").write.parquet(str(place))
    time.sleep(0.5)


def start(
    spark: SparkSession, servers: str, topic: str, folder: Path, trigger: str
) -> StreamingQuery:
    """Start the query."""
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    return (
        source.option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .writeStream.foreachBatch(lambda batch, number: write(folder, batch, number))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime=trigger)
        .start()
    )


def main() -> None:
    """Run ``rounds`` queries one after the other; every second one never pauses."""
    servers, topic, place, rounds = sys.argv[1:]
    folder = Path(place)
    spark = SparkSession.builder.getOrCreate()
    control = StopControl(spark, str(folder), interval=0.2)
    for number in range(int(rounds)):
        while number and not (folder / f"go-{number}").exists():
            time.sleep(0.05)
        trigger = "500 milliseconds" if number % 2 else "0 seconds"
        control.run(start(spark, servers, topic, folder, trigger))


if __name__ == "__main__":
    main()
