"""Starting offsets that are too long for an argument of a program, on Linux and on real Spark."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from upath import UPath

from airflow_mm2_offsets.job import starting_offsets
from airflow_mm2_offsets.spark.offsets import format_offsets
from airflow_mm2_offsets.spark.offsets_file import MAX_ARGUMENT_BYTES, write_offsets

OFFSETS = format_offsets({"orders": {number: 7_381_000_000 + number for number in range(10_000)}})
LINUX_LIMIT = 131_072
JVM_OPTIONS = 1_400
"""Bytes of Spark's own, for its modules."""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other limits")
def test_linux_takes_the_longest_offsets_as_an_argument() -> None:
    """The limit passes with the option's name before it; what Linux refuses is longer."""
    subprocess.run(["/bin/true", f"--starting-offsets={'7' * MAX_ARGUMENT_BYTES}"], check=True)
    for refused in ("7" * LINUX_LIMIT, OFFSETS):
        with pytest.raises(OSError, match="Argument list too long") as caught:
            subprocess.run(["/bin/true", refused], check=True)
        assert caught.value.errno == errno.E2BIG


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other limits")
@pytest.mark.parametrize(("topics", "partitions"), [(1, 5_500), (470, 12)])
def test_yarn_takes_the_longest_offsets_in_its_command(topics: int, partitions: int) -> None:
    """It starts a driver by one argument of ``bash -c``, with each quotation mark escaped."""
    start = {number: 7_381_000_000 + number for number in range(partitions)}
    text = format_offsets({f"payments.orders.v1-{topic:05}": start for topic in range(topics)})
    assert MAX_ARGUMENT_BYTES * 0.9 < len(text) <= MAX_ARGUMENT_BYTES
    names, escaped = ",".join(json.loads(text)), text.replace('"', r"\"")
    command = f"/bin/true {'-' * JVM_OPTIONS} --topic '{names}' --starting-offsets '{escaped}'"
    subprocess.run(["/bin/bash", "-c", command], check=True)


def test_a_job_reads_its_offsets_from_a_file(spark: SparkSession, tmp_path: Path) -> None:
    """Through Hadoop, 10,000 partitions whole; a file that was changed or is gone ends the job."""
    plan = str(tmp_path / "plans" / "manual__2026-11-21T09:10:00+00:00.json")
    argument = write_offsets(OFFSETS, plan, UPath)
    assert len(argument) < 300
    assert starting_offsets(spark, argument) == OFFSETS
    assert starting_offsets(spark, f"@file:{argument[1:]}") == OFFSETS
    moved = f"@s3://lake/plans/{Path(argument).name}"
    assert starting_offsets(spark, moved, str(tmp_path / "plans")) == OFFSETS
    Path(argument[1:]).write_text(OFFSETS.replace("7381000000", "7381000001"))
    with pytest.raises(ValueError, match="was changed"):
        starting_offsets(spark, argument)
    Path(argument[1:]).unlink()
    with pytest.raises(OSError, match=r"can't be read: .* does not exist; check that the job may"):
        starting_offsets(spark, argument)


def test_a_job_that_has_begun_is_started_again_without_its_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Of a real checkpoint: before its first batch the file is needed, and then no more."""
    checkpoint = str(tmp_path / "checkpoint")
    argument = write_offsets(OFFSETS, str(tmp_path / "plans" / "run.json"), UPath)
    assert starting_offsets(spark, argument, checkpoint=checkpoint) == OFFSETS
    query = (
        spark.readStream.format("rate")
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", checkpoint)
        .start()
    )
    try:
        while query.lastProgress is None:
            query.awaitTermination(1)
    finally:
        query.stop()
    Path(argument[1:]).unlink()
    assert starting_offsets(spark, argument, checkpoint=checkpoint) == "earliest"
    assert starting_offsets(spark, argument, checkpoint=f"file:{checkpoint}") == "earliest"
