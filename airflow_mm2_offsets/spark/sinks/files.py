"""Spark's file sink: ``FileStreamSink.addBatch`` skips batches that its log has."""

import re
from collections.abc import Iterator

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.spark.sinks.writer import SinkWriter
from airflow_mm2_offsets.storage import list_directory

_BATCH = re.compile(r"(\d+)(\.compact)?")


def find(output: UPath, writer: SinkWriter) -> Iterator[str]:
    """Yield what the job would lose."""
    log = list_directory(output / "_spark_metadata", CheckpointError)
    batches = [int(match[1]) for name in log if (match := _BATCH.fullmatch(name))]
    if batches and writer.loses(last := max(batches)):
        has = f"its _spark_metadata has batches up to {last}"
        yield writer.problem(output, has=has, who="Spark", remedy="an output of its own")
