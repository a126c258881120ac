"""Folders that a ``foreachBatch`` names after its batches, as dags/jobs/orders_stream.py does.

A batch that runs again replaces its folder. So a job that begins again at batch 0, as one that
comes home to its old folder does, would replace what it wrote there in its earlier life.
"""

import re
from collections.abc import Iterator

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.spark.sinks.writer import SinkWriter
from airflow_mm2_offsets.storage import list_directory

_BATCH = re.compile(r"(?:batch|epoch)(?:_?id)?[=_-]?(\d+)", re.IGNORECASE)
_TABLE_LOGS = frozenset({"_delta_log", ".hoodie", "metadata", "_spark_metadata"})
"""A table adds files under its partitions, and replaces none."""


def find(output: UPath, writer: SinkWriter) -> Iterator[str]:
    """Yield what the job would overwrite."""
    names = list_directory(output, CheckpointError)
    if _TABLE_LOGS & names.keys():
        return
    batches = {int(match[1]): name for name in names if (match := _BATCH.fullmatch(name))}
    if batches and writer.loses(last := max(batches)):
        yield (
            f"{output}: it holds a folder for each batch up to {batches[last]}, and the job on the "
            f"target begins at batch {writer.first_batch}: it would overwrite them one by one. Let "
            f"it write elsewhere, and name that place as the sink; or give another target folder"
        )
