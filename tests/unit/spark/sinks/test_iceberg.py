"""Iceberg tables that would drop what a job begins with.

The metadata is as the table spec's appendix C has it; what a stream notes in a snapshot's summary
is what ``SparkWrite.BaseStreamingWrite`` sets.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.spark.sinks import SinkWriter, find_sink_problems

QUERY, OTHER = "f9935b59-ce2d-43f1-9db5-7073e52f8d53", "0b8d9e60-0000-4000-8000-000000000000"


def _snapshot(number: int, parent: int | None, query: str | None, epoch: int = 0) -> dict[str, Any]:
    summary = {"operation": "append", "spark.app.id": "local-1", "added-records": "2"}
    if query is not None:
        stream = "spark.sql.streaming"
        summary |= {f"{stream}.queryId": query, f"{stream}.epochId": str(epoch)}
    snapshot = {
        "snapshot-id": number,
        "timestamp-ms": 1515100955770 + number,
        "sequence-number": number,
        "summary": summary,
        "manifest-list": f"s3://a/b/{number}.avro",
        "schema-id": 0,
    }
    return snapshot if parent is None else snapshot | {"parent-snapshot-id": parent}


def _metadata(*snapshots: dict[str, Any], current: int) -> bytes:
    return json.dumps(
        {
            "format-version": 2,
            "table-uuid": "fb072c92-a02b-11e9-ae9c-1bb7bc9eca94",
            "location": "s3://b/wh/data.db/table",
            "last-sequence-number": len(snapshots),
            "current-snapshot-id": current,
            "snapshots": snapshots,
            "snapshot-log": [],
            "metadata-log": [],
        }
    ).encode()


def _write(table: Path, name: str, data: bytes) -> None:
    path = table / "metadata" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


HISTORY = (
    _snapshot(1, None, QUERY, 3),
    _snapshot(2, 1, QUERY, 4),
    _snapshot(3, 2, OTHER, 90),
    _snapshot(4, 3, None),  # a compaction
    _snapshot(5, 2, QUERY, 70),  # rolled back
)


@pytest.mark.parametrize(
    "name", ["v10.metadata.json", "00010-e3b0c442.metadata.json", "v10.gz.metadata.json"]
)
def test_what_is_behind_the_table_is_found(tmp_path: Path, name: str) -> None:
    """The newest epoch of the query, from the current snapshot back through its parents."""
    data = _metadata(*HISTORY, current=4)
    old = _metadata(_snapshot(1, None, QUERY, 99), current=1)
    _write(tmp_path, name, gzip.compress(data) if ".gz." in name else data)
    _write(tmp_path, name.replace("10", "9"), gzip.compress(old) if ".gz." in name else old)
    _write(tmp_path, "version-hint.text", b"10")
    _write(tmp_path, "snap-4-1-uuid.avro", b"Obj\x01")
    assert find_sink_problems(UPath(tmp_path), SinkWriter(query_id=QUERY, first_batch=5)) == []
    (problem,) = find_sink_problems(UPath(tmp_path), SinkWriter(query_id=QUERY, first_batch=4))
    assert f"the Iceberg table has epochs up to 4 of the query {QUERY};" in problem
    (fresh_but_for_its_id,) = find_sink_problems(UPath(tmp_path), SinkWriter(query_id=QUERY))
    assert "with a fresh checkpoint begins at 0" in fresh_but_for_its_id


def test_a_fresh_checkpoint_has_a_new_id(tmp_path: Path) -> None:
    """Nothing of it is dropped, whatever the query before it wrote."""
    _write(tmp_path, "v1.metadata.json", _metadata(*HISTORY, current=4))
    assert find_sink_problems(UPath(tmp_path), SinkWriter(replaced_query_id=QUERY)) == []


def test_writers_that_raced(tmp_path: Path) -> None:
    """Only the catalog knows which of two files became the table: both count."""
    for name, epoch in (("00007-a.metadata.json", 4), ("00007-b.metadata.json", 6)):
        _write(tmp_path, name, _metadata(_snapshot(1, None, QUERY, epoch), current=1))
    (problem,) = find_sink_problems(UPath(tmp_path), SinkWriter(query_id=QUERY, first_batch=5))
    assert "epochs up to 6" in problem


@pytest.mark.parametrize("data", [b'{"snapshots":[', b'{"snapshots":[{}]}'])
def test_damage_is_named(tmp_path: Path, data: bytes) -> None:
    """A file that can't be read is no table without epochs."""
    _write(tmp_path, "v1.metadata.json", data)
    with pytest.raises(CheckpointError, match=r"v1\.metadata\.json is out of reach"):
        find_sink_problems(UPath(tmp_path), SinkWriter(query_id=QUERY))
