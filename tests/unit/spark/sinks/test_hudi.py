"""Hudi tables that would drop what a job begins with.

The files are as Hudi's ``TestCommitUtils`` and ``CommitMetadataSerDeV1`` and ``V2`` have them, the
Avro schema is that of Hudi's ``HoodieCommitMetadata.avsc``, without the statistics of writes.
"""

import json
import sys
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError, ConfigurationError
from airflow_mm2_offsets.spark.sinks import SinkWriter, find_sink_problems

ONE_WRITER = "default_single_writer"
SCHEMA = {
    "namespace": "org.apache.hudi.avro.model",
    "type": "record",
    "name": "HoodieCommitMetadata",
    "fields": [
        {
            "name": "extraMetadata",
            "type": ["null", {"type": "map", "values": "string", "default": None}],
            "default": None,
        },
        {"name": "version", "type": ["int", "null"], "default": 1},
        {"name": "operationType", "type": ["null", "string"], "default": None},
    ],
}


def _json(checkpoint: Mapping[str, str] | None) -> bytes:
    extra = {"schema": '{"type":"record","name":"trip"}'}
    if checkpoint is not None:
        extra["_hudi_streaming_sink_checkpoint"] = json.dumps(checkpoint)
    metadata = {"partitionToWriteStats": {}, "compacted": False, "extraMetadata": extra}
    return json.dumps(metadata | {"operationType": "UPSERT"}, indent=2).encode()


def _avro(checkpoint: Mapping[str, str] | None) -> bytes:
    record: dict[str, Any] = json.loads(_json(checkpoint))
    data = BytesIO()
    fastavro.writer(data, SCHEMA, [record | {"version": 1}])
    return data.getvalue()


def _write(table: Path, name: str, data: bytes) -> None:
    path = table / ".hoodie" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def test_a_table_of_hudi_0(tmp_path: Path) -> None:
    """The newest completed write with a batch counts, whatever was compacted or begun since."""
    _write(tmp_path, "20230913001000000.deltacommit", _json({ONE_WRITER: "3"}))
    _write(tmp_path, "20230913003000000.deltacommit", _json({ONE_WRITER: "5"}))
    _write(tmp_path, "20230913005000000.deltacommit.requested", b"")
    _write(tmp_path, "20230913005000000.deltacommit.inflight", _json({ONE_WRITER: "7"}))
    _write(tmp_path, "20230913006000000.commit", _json(None))
    _write(tmp_path, "20230913007000000.replacecommit", b"")
    _write(tmp_path, "20230913008000000.clean", b"Obj\x01 of another schema")
    (problem,) = find_sink_problems(UPath(tmp_path))
    assert f"has batches up to 5 of the checkpoint identifier {ONE_WRITER}," in problem
    assert problem.endswith(
        "give the job on the target a hoodie.datasource.write.streaming.checkpoint.identifier of "
        "its own"
    )


def test_a_table_of_hudi_1(tmp_path: Path) -> None:
    """The timeline has a folder of its own, and its metadata is Avro."""
    _write(tmp_path, "hoodie.properties", b"hoodie.table.version=8\n")
    early, late = "20250113001000000", "20250113003000000"
    _write(tmp_path, f"timeline/{early}_20250113001002000.deltacommit", _avro({ONE_WRITER: "3"}))
    _write(tmp_path, f"timeline/{late}_20250113003002000.commit", _avro({ONE_WRITER: "5"}))
    _write(tmp_path, "timeline/20250113005000000.deltacommit.inflight", _avro({ONE_WRITER: "7"}))
    (problem,) = find_sink_problems(UPath(tmp_path))
    assert "has batches up to 5 of" in problem


def test_a_table_that_was_upgraded(tmp_path: Path) -> None:
    """Both layouts are read; JSON may lie in the new one."""
    _write(tmp_path, "20230913001000000.deltacommit", _json({"a": "3", "b": "1"}))
    name = "timeline/20250113003000000_20250113003002000.deltacommit"
    _write(tmp_path, name, _json({"a": "5"}))
    first, second = find_sink_problems(UPath(tmp_path))
    assert "up to 5 of the checkpoint identifier a," in first
    assert "up to 1 of the checkpoint identifier b," in second
    (problem,) = find_sink_problems(UPath(tmp_path), SinkWriter(txn_app_id="b"))
    assert problem == second
    assert find_sink_problems(UPath(tmp_path), SinkWriter(txn_app_id="c")) == []


def test_before_there_were_identifiers(tmp_path: Path) -> None:
    """Hudi 0.12 noted the batch beside its writer, and asked for neither."""
    writer = "application_1-f9935b59-ce2d-43f1-9db5-7073e52f8d53"
    _write(tmp_path, "20220913001000000.commit", _json({"12": writer}))
    (problem,) = find_sink_problems(UPath(tmp_path), SinkWriter(txn_app_id="mine"))
    assert "the Hudi table has batches up to 12, whatever query wrote them;" in problem


def test_a_job_that_goes_on(tmp_path: Path) -> None:
    """A migrated checkpoint counts on."""
    _write(tmp_path, "20230913001000000.commit", _json({ONE_WRITER: "12"}))
    assert find_sink_problems(UPath(tmp_path), SinkWriter(query_id="id", first_batch=13)) == []
    assert find_sink_problems(UPath(tmp_path), SinkWriter(query_id="id", first_batch=12))


def test_a_table_without_streams(tmp_path: Path) -> None:
    """What no stream wrote drops nothing."""
    _write(tmp_path, "hoodie.properties", b"hoodie.table.version=6\n")
    _write(tmp_path, "20230913001000000.commit", _json(None))
    assert find_sink_problems(UPath(tmp_path)) == []


def test_damage_is_named(tmp_path: Path) -> None:
    """A file that can't be read is no table without batches."""
    _write(tmp_path, "20230913001000000.commit", b'{"extraMetadata":')
    with pytest.raises(
        CheckpointError,
        match=r"20230913001000000\.commit does not hold the metadata of a write: .* it is damaged",
    ):
        find_sink_problems(UPath(tmp_path))


def test_without_the_library_nothing_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timeline that can't be read is told with what to install."""
    name = "timeline/20250113003000000_20250113003002000.deltacommit"
    _write(tmp_path, name, _avro({ONE_WRITER: "5"}))
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'airflow-mm2-offsets\[hudi\]'"):
        find_sink_problems(UPath(tmp_path))
