"""Sinks that would drop what a fresh checkpoint begins with."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from airflow_mm2_offsets.service.sinks import find_sink_problems

QUERY = "f9935b59-ce2d-43f1-9db5-7073e52f8d53"


def _touch(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("v1\n")


def _commit(table: Path, number: int, application: str, version: int) -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    actions = [
        {"commitInfo": {"operation": "WRITE"}},
        {"txn": {"appId": application, "version": version, "lastUpdated": 1}},
        {"add": {"path": "part-0.parquet"}},
    ]
    (log / f"{number:020}.json").write_text("\n".join(map(json.dumps, actions)))


def test_what_is_new_drops_nothing(tmp_path: Path) -> None:
    """An output that is not there, or holds files that no query wrote, is no trap."""
    assert find_sink_problems(UPath(tmp_path / "nothing")) == []
    _touch(tmp_path, "part-0.parquet")
    _touch(tmp_path / "_spark_metadata", ".0.crc", "_note")
    assert find_sink_problems(UPath(tmp_path)) == []


def test_a_file_sink_that_knows_batches(tmp_path: Path) -> None:
    """Compacted logs count too."""
    _touch(tmp_path / "_spark_metadata", "9.compact", "10", ".10.crc", "8")
    (problem,) = find_sink_problems(UPath(tmp_path))
    assert problem.startswith(f"{tmp_path}: its _spark_metadata has batches up to 10;")
    assert "MigrateSparkCheckpointOperator" in problem
    assert problem.endswith("give the job on the target an output of its own")


def test_a_delta_table_that_knows_an_application(tmp_path: Path) -> None:
    """The newest version of each name that a user chose counts."""
    for number, version in enumerate((3, 7, 5)):
        _commit(tmp_path, number, "orders-job", version)
    (problem,) = find_sink_problems(UPath(tmp_path))
    assert "has txnVersion 7 of txnAppId orders-job;" in problem


def test_delta_s_own_sink_is_no_trap(tmp_path: Path) -> None:
    """It goes by the query's id, and a fresh checkpoint has a new one."""
    _commit(tmp_path, 0, QUERY, 12)
    assert find_sink_problems(UPath(tmp_path)) == []


def test_a_delta_checkpoint_is_read(tmp_path: Path) -> None:
    """What older commits said stands in the table's checkpoint once they are gone."""
    _commit(tmp_path, 11, "late-job", 1)
    txns = [None, {"appId": "early-job", "version": 40}]
    for number, txn in ((10, txns), (5, [{"appId": "older", "version": 1}])):
        place = tmp_path / "_delta_log" / f"{number:020}.checkpoint.parquet"
        pq.write_table(pa.table({"txn": txn, "add": [None] * len(txn)}), place)
    _commit(tmp_path, 9, "gone", 1)
    early, late = find_sink_problems(UPath(tmp_path))
    assert "txnVersion 40 of txnAppId early-job" in early
    assert "txnVersion 1 of txnAppId late-job" in late


def test_a_delta_checkpoint_may_be_json(tmp_path: Path) -> None:
    """Those of the newer kind are; the commits before them may be gone as well."""
    _commit(tmp_path, 3, "gone", 1)
    log = tmp_path / "_delta_log"
    actions = [{"checkpointMetadata": {"version": 4}}, {"txn": {"appId": "job", "version": 40}}]
    name = f"{4:020}.checkpoint.{QUERY}.json"
    (log / name).write_text("\n".join(map(json.dumps, actions)))
    (problem,) = find_sink_problems(UPath(tmp_path))
    assert "txnVersion 40 of txnAppId job" in problem
