"""The files of a control location as a job writes them, on real Spark."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_mm2_offsets.job.files import HadoopFiles

WRITES = 300


def test_a_local_file_is_never_missing_while_it_is_replaced(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A reader sees the old or the new file; without driver.json no job would ever have run."""
    files, path = HadoopFiles(spark, str(tmp_path)), tmp_path / "driver.json"
    files.write(path.name, {"heartbeat": 0})

    def write() -> None:
        for heartbeat in range(1, WRITES + 1):
            files.write(path.name, {"heartbeat": heartbeat})

    looks = missing = 0
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while not writing.done():
            looks += 1
            missing += not path.exists()
        writing.result()
    assert (missing, looks > WRITES) == (0, True)
    assert files.read(path.name) == {"heartbeat": WRITES}
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
