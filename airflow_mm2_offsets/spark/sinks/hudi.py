"""Hudi tables: ``HoodieStreamingSink.canSkipBatch`` skips batches that the table has.

It asks the newest completed write of the active timeline whose metadata has a batch under the
sink's identifier (``CommitUtils.getValidCheckpointForCurrentWriter``), whatever the query. Before
Hudi 0.13 there was no identifier, and the newest batch of all counted.
"""

import json
from collections.abc import Iterator

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.spark.sinks.hudi_timeline import (
    completed_writes,
    list_timeline,
    read_extra_metadata,
)
from airflow_mm2_offsets.spark.sinks.writer import SinkWriter
from airflow_mm2_offsets.storage import storage_errors

_KEY = "_hudi_streaming_sink_checkpoint"
_NO_IDENTIFIER = ""


def find(output: UPath, writer: SinkWriter) -> Iterator[str]:
    """Yield what the job would lose."""
    for identifier, last in sorted(_newest(output).items()):
        if writer.txn_app_id and identifier not in (_NO_IDENTIFIER, writer.txn_app_id):
            continue
        if writer.loses(last):
            named = f" of the checkpoint identifier {identifier}" if identifier else ""
            yield writer.problem(
                output,
                has=f"the Hudi table has batches up to {last}{named}, whatever query wrote them",
                who="Hudi",
                remedy=(
                    "a hoodie.datasource.write.streaming.checkpoint.identifier of its own"
                    if identifier
                    else "a table of its own"
                ),
            )


def _newest(table: UPath) -> dict[str, int]:
    """Return the newest batch of each identifier."""
    newest: dict[str, int] = {}
    for write in completed_writes(list_timeline(table, CheckpointError)):
        for identifier, batch in _batches(write.path):
            newest.setdefault(identifier, batch)
    return newest


def _batches(path: UPath) -> Iterator[tuple[str, int]]:
    noted = read_extra_metadata(path, CheckpointError) or {}
    with storage_errors(path, CheckpointError):
        batches = [_batch(*each) for each in json.loads(noted.get(_KEY) or "{}").items()]
    yield from batches


def _batch(key: str, value: str) -> tuple[str, int]:
    """Return identifier and batch; older tables have the batch for a key, beside its writer."""
    return (key, int(value)) if value.isdecimal() else (_NO_IDENTIFIER, int(key))
