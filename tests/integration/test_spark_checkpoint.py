"""What Spark itself writes into a checkpoint."""

from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint

SPARK = tuple(map(int, pyspark.__version__.split(".")[:2]))


@pytest.mark.filterwarnings("ignore")  # PySpark's own, on pandas and on sockets
@pytest.mark.parametrize(
    "version",
    [
        "1",
        pytest.param(
            "2", marks=pytest.mark.skipif(SPARK < (4, 2), reason="Spark writes it from 4.2 on")
        ),
    ],
)
def test_a_real_query_without_kafka(tmp_path: Path, version: str) -> None:
    """The checkpoint of a rate source, as Spark writes it, is read, and refused as not Kafka's."""
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    try:
        spark.conf.set("spark.sql.streaming.offsetLog.formatVersion", version)
        rate = spark.readStream.format("rate").load()
        query = (
            rate.writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path))
            .trigger(once=True)
            .start()
        )
        query.awaitTermination(60)
    finally:
        spark.stop()
    assert (tmp_path / "offsets" / "0").read_text().startswith(f"v{version}\n")
    with pytest.raises(CheckpointError) as refused:
        read_checkpoint(str(tmp_path))
    assert f"{tmp_path}/offsets/0" in str(refused.value)
    assert "none of its 1 sources is Kafka" in str(refused.value)
