"""What Spark itself writes into a checkpoint."""

from pathlib import Path

import pytest
from packaging.version import Version
from pyspark import __version__
from pyspark.sql import SparkSession

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint

FROM_SPARK_4_2 = pytest.mark.skipif(
    Version(__version__) < Version("4.2"), reason="Spark writes this format from 4.2 on"
)


@pytest.mark.filterwarnings("ignore")  # PySpark's own, on pandas and on sockets
@pytest.mark.parametrize("version", ["1", pytest.param("2", marks=FROM_SPARK_4_2)])
def test_a_real_query_without_kafka(spark: SparkSession, tmp_path: Path, version: str) -> None:
    """The checkpoint of a rate source, as Spark writes it, is read, and refused as not Kafka's."""
    spark.conf.set("spark.sql.streaming.offsetLog.formatVersion", version)
    query = (
        spark.readStream.format("rate")
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(once=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert (tmp_path / "offsets" / "0").read_text().startswith(f"v{version}\n")
    with pytest.raises(CheckpointError) as refused:
        read_checkpoint(str(tmp_path))
    assert f"{tmp_path}/offsets/0" in str(refused.value)
    assert "none of its 1 sources is Kafka" in str(refused.value)
