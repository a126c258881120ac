"""Iceberg tables: ``SparkWrite.BaseStreamingWrite.commit`` skips epochs that the table has.

``findLastCommittedEpochId`` goes from the current snapshot to its parents, to the newest whose
summary names the query's id. A fresh checkpoint has a new id, so nothing of it is dropped; a
checkpoint that keeps the id and begins lower (an older copy, one put together by hand) loses.

Where that stands is in Iceberg's table spec: ``metadata/vN.metadata.json``, or with a catalog
``metadata/NNNNN-<uuid>.metadata.json``; ``.gz.metadata.json`` where it is compressed.
"""

import gzip
import json
import re
from collections.abc import Iterator
from typing import Any

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.spark.sinks.writer import SinkWriter
from airflow_mm2_offsets.storage import list_directory, read_bytes, storage_errors

_METADATA = re.compile(r"(v(?P<version>\d+)|(?P<number>\d+)-.+)(\.gz)?\.metadata\.json(\.gz)?")
_QUERY, _EPOCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"
_GZIP = b"\x1f\x8b"


def find(output: UPath, writer: SinkWriter) -> Iterator[str]:
    """Yield what the job would lose."""
    if writer.query_id is None:
        return
    epochs = [
        epoch
        for path in _newest(output / "metadata")
        if (epoch := _last_epoch(path, writer.query_id)) is not None
    ]
    if epochs and writer.loses(last := max(epochs)):
        has = f"the Iceberg table has epochs up to {last} of the query {writer.query_id}"
        yield writer.problem(output, has=has, who="Iceberg", remedy="a new checkpoint")


def _newest(folder: UPath) -> list[UPath]:
    """Return the newest metadata file; several where writers raced, for the catalog knows which."""
    numbers = {
        name: int(match["version"] or match["number"])
        for name in list_directory(folder, CheckpointError)
        if (match := _METADATA.fullmatch(name))
    }
    last = max(numbers.values(), default=None)
    return [folder / name for name, number in sorted(numbers.items()) if number == last]


def _last_epoch(path: UPath, query_id: str) -> int | None:
    data = read_bytes(path, CheckpointError) or b"{}"
    with storage_errors(path, CheckpointError):
        table = json.loads(gzip.decompress(data) if data.startswith(_GZIP) else data)
        for snapshot in _history(table):
            summary = snapshot.get("summary") or {}
            if summary.get(_QUERY) == query_id:
                return int(summary[_EPOCH])
    return None


def _history(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the current snapshot, its parent, and so on."""
    snapshots = {entry["snapshot-id"]: entry for entry in table.get("snapshots") or ()}
    at = table.get("current-snapshot-id")
    while (snapshot := snapshots.get(at)) is not None:
        yield snapshot
        at = snapshot.get("parent-snapshot-id")
