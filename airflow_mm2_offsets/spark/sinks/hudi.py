"""Hudi tables: ``HoodieStreamingSink.canSkipBatch`` skips batches that the table has.

It asks the newest completed write of the active timeline whose metadata has a batch under the
sink's identifier (``CommitUtils.getValidCheckpointForCurrentWriter``), whatever the query. Before
Hudi 0.13 there was no identifier, and the newest batch of all counted.

A completed write is a file in ``.hoodie`` (``20230913001000000.deltacommit``, JSON), or from table
version 8 on in ``.hoodie/timeline`` (``<requested>_<completed>.deltacommit``, Avro).
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from io import BytesIO
from typing import Any

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError, ConfigurationError
from airflow_mm2_offsets.spark.sinks.writer import SinkWriter
from airflow_mm2_offsets.storage import list_directory, read_bytes, storage_errors

_WRITE = re.compile(r"(\d{14,17})(_\d{14,17})?\.(commit|deltacommit|replacecommit)")
_KEY = "_hudi_streaming_sink_checkpoint"
_AVRO = b"Obj\x01"
_NO_IDENTIFIER = ""


def find(output: UPath, writer: SinkWriter) -> Iterator[str]:
    """Yield what the job would lose."""
    for identifier, last in sorted(_newest(output / ".hoodie").items()):
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


def _newest(folder: UPath) -> dict[str, int]:
    """Return the newest batch of each identifier."""
    writes = {
        match[1]: place / name
        for place in (folder, folder / "timeline")
        for name in list_directory(place, CheckpointError)
        if (match := _WRITE.fullmatch(name))
    }
    newest: dict[str, int] = {}
    for _, path in sorted(writes.items(), reverse=True):
        for identifier, batch in _batches(path):
            newest.setdefault(identifier, batch)
    return newest


def _batches(path: UPath) -> Iterator[tuple[str, int]]:
    data = read_bytes(path, CheckpointError) or b""
    parse = _avro_reader(path) if data.startswith(_AVRO) else json.loads
    with storage_errors(path, CheckpointError):
        metadata = parse(data or b"{}")
        noted = (metadata.get("extraMetadata") or {}).get(_KEY) or "{}"
        batches = [_batch(key, value) for key, value in json.loads(noted).items()]
    yield from batches


def _batch(key: str, value: str) -> tuple[str, int]:
    """Return identifier and batch; older tables have the batch for a key, beside its writer."""
    return (key, int(value)) if value.isdecimal() else (_NO_IDENTIFIER, int(key))


def _avro_reader(path: UPath) -> Callable[[bytes], Mapping[str, Any]]:
    try:
        fastavro = import_module("fastavro")
    except ImportError as error:
        raise ConfigurationError(
            f"{path} is read with fastavro alone ({error}); pip install 'airflow-mm2-offsets[hudi]'"
        ) from error
    return lambda data: next(fastavro.reader(BytesIO(data)))
