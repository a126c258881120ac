"""The completed writes of a Hudi table; the check of sinks and ``positions`` read them.

A completed write is a file in ``.hoodie`` (``20230913001000000.deltacommit``, JSON), or from table
version 8 on in ``.hoodie/timeline`` (``<requested>_<completed>.deltacommit``, Avro). A write that
was rolled back has no such file any more (``HoodieActiveTimeline.revertToInflight``).
"""

import json
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from io import BytesIO
from typing import Any, NamedTuple

from upath import UPath

from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError
from airflow_mm2_offsets.storage import list_directory, read_bytes

_WRITE = re.compile(r"(\d{14,17})(_\d{14,17})?\.(commit|deltacommit|replacecommit)")
_AVRO = b"Obj\x01"


class CompletedWrite(NamedTuple):
    """One completed write."""

    requested: str
    """Its instant: when it was requested. Hudi compares instants as text."""
    action: str
    """``commit``, ``deltacommit`` or ``replacecommit``."""
    path: UPath


def list_timeline(table: UPath, error: type[Mm2OffsetsError]) -> dict[str, UPath]:
    """Return the files of a table's active timeline by their names, of both layouts."""
    folder = table / ".hoodie"
    return {
        name: place / name
        for place in (folder, folder / "timeline")
        for name in list_directory(place, error)
    }


def completed_writes(timeline: Mapping[str, UPath]) -> list[CompletedWrite]:
    """Return the completed writes of ``list_timeline``, newest first."""
    writes = {
        match[1]: CompletedWrite(match[1], match[3], path)
        for name, path in timeline.items()
        if (match := _WRITE.fullmatch(name))
    }
    return [write for _, write in sorted(writes.items(), reverse=True)]


def read_extra_metadata(path: UPath, error: type[Mm2OffsetsError]) -> Mapping[str, Any] | None:
    """Return what a writer noted with its write: ``HoodieCommitMetadata.extraMetadata``.

    An empty file notes nothing, as for Hudi itself. None if the file is gone.

    Raises:
        ConfigurationError: It is Avro, and fastavro is not installed.
        error: It can't be read, or is damaged.
    """
    data = read_bytes(path, error)
    if not data:
        return None if data is None else {}
    parse = _avro_reader(path) if data.startswith(_AVRO) else json.loads
    try:
        extra = parse(data).get("extraMetadata") or {}
        return {name: extra[name] for name in extra}
    except Exception as cause:
        raise error(
            f"{path} does not hold the metadata of a write: {type(cause).__name__}: {cause}; it "
            f"is damaged: let Hudi's own tools repair the table"
        ) from cause


def _avro_reader(path: UPath) -> Callable[[bytes], Mapping[str, Any]]:
    try:
        fastavro = import_module("fastavro")
    except ImportError as error:
        raise ConfigurationError(
            f"{path} is read with fastavro alone ({error}); pip install 'airflow-mm2-offsets[hudi]'"
        ) from error
    return lambda data: next(fastavro.reader(BytesIO(data)))
