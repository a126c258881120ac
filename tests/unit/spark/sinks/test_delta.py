"""Delta tables that would drop what a job begins with; they are written by ``deltalake``."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError, ConfigurationError
from airflow_mm2_offsets.spark.sinks import SinkWriter, find_sink_problems

QUERY = "f9935b59-ce2d-43f1-9db5-7073e52f8d53"
JOB = SinkWriter(txn_app_id="orders-job")
EARLY = 3
"""The last version of the commits that the table's checkpoint is for."""


@pytest.fixture
def lake() -> Iterator[UPath]:
    """A folder on a storage that deltalake can't reach."""
    root = UPath("memory://lake")
    yield root
    root.fs.rm(root.path, recursive=True)


def _write(table: Path, *transactions: tuple[str, int]) -> None:
    properties = CommitProperties(app_transactions=[Transaction(*each) for each in transactions])
    write_deltalake(table, pa.table({"a": [1]}), mode="append", commit_properties=properties)


def _aged(table: Path, parts: int = 1) -> Path:
    """Write a table whose first commits are gone: its checkpoint alone has what they said.

    Returns:
        Its log.
    """
    for version in range(EARLY + 1):
        _write(table, ("orders-job", version))
    DeltaTable(table).create_checkpoint()
    _write(table, ("other-job", 1))
    log = table / "_delta_log"
    (log / "_last_checkpoint").unlink()
    for version in range(EARLY + 1):
        (log / f"{version:020}.json").unlink()
    whole = log / f"{EARLY:020}.checkpoint.parquet"
    actions = pq.read_table(whole)
    if parts > 1:
        whole.unlink()
    for part in range(parts if parts > 1 else 0):
        rows = actions.take(list(range(part, actions.num_rows, parts)))
        pq.write_table(rows, log / f"{EARLY:020}.checkpoint.{part + 1:010}.{parts:010}.parquet")
    return log


def _to(lake: UPath, table: Path) -> UPath:
    for file in table.rglob("*"):
        if file.is_file():
            (lake / str(file.relative_to(table))).write_bytes(file.read_bytes())
    return lake


@pytest.mark.parametrize("application", ["orders-job", QUERY])
def test_a_table_that_knows_the_application(tmp_path: Path, application: str) -> None:
    """The newest version of the job's own name counts; that name may be a UUID."""
    for version in (3, 7, 9):
        _write(tmp_path, (application, version), ("other", 100 + version))
    writer = SinkWriter(txn_app_id=application, replaced_query_id=str(uuid4()))
    (problem,) = find_sink_problems(UPath(tmp_path), writer)
    assert f"has txnVersion 9 of txnAppId {application};" in problem
    assert problem.endswith("give the job on the target a txnAppId of its own")


def test_other_applications_are_let_be(tmp_path: Path) -> None:
    """What another job wrote drops nothing of this one."""
    _write(tmp_path, ("other", 7))
    assert find_sink_problems(UPath(tmp_path), JOB) == []


def test_delta_s_own_sink_is_no_trap(tmp_path: Path) -> None:
    """It goes by the query's id, and a fresh checkpoint has a new one."""
    _write(tmp_path, (QUERY, 12))
    assert find_sink_problems(UPath(tmp_path), SinkWriter(replaced_query_id=QUERY)) == []


def test_a_job_that_keeps_its_id(tmp_path: Path) -> None:
    """Delta's own sink drops what a checkpoint begins with that is older than the table."""
    _write(tmp_path, (QUERY, 12))
    assert find_sink_problems(UPath(tmp_path), SinkWriter(query_id=QUERY, first_batch=13)) == []
    (problem,) = find_sink_problems(UPath(tmp_path), SinkWriter(query_id=QUERY, first_batch=12))
    assert f"has txnVersion 12 of txnAppId {QUERY}" in problem


@pytest.mark.parametrize(
    ("writer", "compared"),
    [
        (SinkWriter(), "nothing could be compared"),
        (
            SinkWriter(replaced_query_id=QUERY),
            f"compared was the query's id {QUERY}, under which nothing was written",
        ),
        (
            SinkWriter(query_id=QUERY, first_batch=9),
            f"compared was the query's id {QUERY}, under which nothing was written",
        ),
    ],
)
def test_what_can_not_be_compared_is_said(
    tmp_path: Path, writer: SinkWriter, compared: str
) -> None:
    """Under any name a foreachBatch may have written: the user must say which."""
    _write(tmp_path, ("orders-job", 7))
    (problem,) = find_sink_problems(UPath(tmp_path), writer)
    assert compared in problem
    assert "give txn_app_id, empty if the job gives none" in problem
    assert find_sink_problems(UPath(tmp_path), SinkWriter(txn_app_id="")) == []


@pytest.mark.parametrize("parts", [1, 3])
def test_a_checkpoint_of_the_log_is_read(tmp_path: Path, lake: UPath, parts: int) -> None:
    """What older commits said stands there alone once they are gone; on any storage."""
    _aged(tmp_path, parts)
    for table in (UPath(tmp_path), _to(lake, tmp_path)):
        (problem,) = find_sink_problems(table, JOB)
        assert f"txnVersion {EARLY} of txnAppId orders-job" in problem


@pytest.mark.parametrize("part", [1, 2, 3])
def test_a_missing_part_is_never_passed_over(tmp_path: Path, lake: UPath, part: int) -> None:
    """With one part gone nobody knows what it said: that is an error, not an empty answer."""
    log = _aged(tmp_path, parts=3)
    (log / f"{EARLY:020}.checkpoint.{part:010}.{3:010}.parquet").unlink()
    for table in (UPath(tmp_path), _to(lake, tmp_path)):
        with pytest.raises(CheckpointError, match="out of reach: DeltaError"):
            find_sink_problems(table, JOB)


def test_an_older_checkpoint_stands_in(tmp_path: Path, lake: UPath) -> None:
    """Where the newest is not whole, the one before and the commits since then still say it."""
    log = _aged(tmp_path)
    part = log / f"{EARLY + 1:020}.checkpoint.{1:010}.{2:010}.parquet"
    part.write_bytes((log / f"{EARLY:020}.checkpoint.parquet").read_bytes())
    for table in (UPath(tmp_path), _to(lake, tmp_path)):
        (problem,) = find_sink_problems(table, JOB)
        assert f"txnVersion {EARLY} of txnAppId orders-job" in problem


@pytest.mark.parametrize("folder", ["_staged_commits", "_commits"])
@pytest.mark.parametrize(("version", "newest"), [(0, 1), (1, 8)])
def test_staged_commits_count(tmp_path: Path, folder: str, version: int, newest: int) -> None:
    """A catalog may have accepted them, though they are not published; older ones are."""
    _write(tmp_path, ("orders-job", 1))
    staged = tmp_path / "_delta_log" / folder
    staged.mkdir()
    actions = [{"commitInfo": {}}, {"txn": {"appId": "orders-job", "version": 8}}]
    (staged / f"{version:020}.{QUERY}.json").write_text("\n".join(map(json.dumps, actions)))
    (problem,) = find_sink_problems(UPath(tmp_path), JOB)
    assert f"has txnVersion {newest} of txnAppId orders-job" in problem


def test_without_the_library_nothing_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that can't be read is told with what to install."""
    _write(tmp_path, ("other", 1))
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'airflow-mm2-offsets\[delta\]'"):
        find_sink_problems(UPath(tmp_path), JOB)
