"""Positions that a HoodieStreamer notes in a Hudi table's timeline.

The two recorded timelines are of Hudi's own classes (hudi/WriteTimeline.java); the others have the
same names and JSON.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.errors import StoredPositionsError
from airflow_mm2_offsets.positions.hudi import read_hudi_positions

RECORDED = Path(__file__).with_name("hudi")
KEY, RESET = "deltastreamer.checkpoint.key", "deltastreamer.checkpoint.reset_key"
KEY_V2, RESET_V2 = "streamer.checkpoint.key.v2", "streamer.checkpoint.reset.key.v2"
MERGE_ON_READ = "#Properties saved\nhoodie.table.name=orders\nhoodie.table.type=MERGE_ON_READ\n"
COPY_ON_WRITE = MERGE_ON_READ.replace("MERGE_ON_READ", "COPY_ON_WRITE")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A copy-on-write table without a write."""
    (tmp_path / ".hoodie" / "timeline").mkdir(parents=True)
    (tmp_path / ".hoodie" / "hoodie.properties").write_text(COPY_ON_WRITE)
    return tmp_path


def note(table: Path, name: str, metadata: dict[str, Any] | None) -> None:
    content = {"partitionToWriteStats": {}, "compacted": False, "extraMetadata": metadata}
    (table / ".hoodie" / name).write_text(json.dumps(content, indent=2))


@pytest.mark.parametrize("version", ["version-6", "version-8"])
def test_the_timeline_that_hudi_itself_wrote(version: str) -> None:
    """The newest completed write with a checkpoint counts, and none that was taken back."""
    expected = {"orders": {0: 25, 1: 7}}
    assert read_hudi_positions(UPath(RECORDED / version)) == expected
    assert read_hudi_positions(str(RECORDED / version), topic="orders") == expected


def test_a_damaged_avro_file_is_named(tmp_path: Path) -> None:
    """No older write is taken for the one that can't be read."""
    shutil.copytree(RECORDED / "version-8", tmp_path, dirs_exist_ok=True)
    timeline = tmp_path / ".hoodie" / "timeline"
    damaged = next(timeline.glob("20260101000200000_*.deltacommit"))
    damaged.write_bytes(damaged.read_bytes()[:-40])
    with pytest.raises(StoredPositionsError, match=f"{damaged.name} does not hold the metadata"):
        read_hudi_positions(UPath(tmp_path))


@pytest.mark.parametrize("content", ["{", "[]", '"text"', "7", '{"extraMetadata":7}'])
def test_a_damaged_json_file_is_named(table: Path, content: str) -> None:
    """Whatever else the newest file holds is damage, and no reason to go back further."""
    note(table, "20260101000000000.commit", {KEY: "orders,0:1"})
    (table / ".hoodie" / "20260101000100000.commit").write_text(content)
    with pytest.raises(StoredPositionsError, match=r"000100000\.commit does not hold the metadata"):
        read_hudi_positions(UPath(table))


@pytest.mark.parametrize("empty", [None, {}, {KEY: ""}, {KEY: None}])
def test_a_write_without_a_checkpoint_is_passed_over(
    table: Path, empty: dict[str, Any] | None
) -> None:
    """HoodieStreamer goes on from the newest write that has one: so does the reader."""
    note(table, "20260101000000000.commit", {KEY: "orders,0:1"})
    note(table, "20260101000100000.replacecommit", empty)
    (table / ".hoodie" / "20260101000200000.commit").write_bytes(b"")
    assert read_hudi_positions(UPath(table)) == {"orders": {0: 1}}


def test_the_later_key_counts(table: Path) -> None:
    """``CheckpointUtils.getCheckpoint`` asks for version 2 first."""
    note(table, "20260101000000000.commit", {KEY: "orders,0:1", KEY_V2: "orders,0:2"})
    assert read_hudi_positions(UPath(table)) == {"orders": {0: 2}}


@pytest.mark.parametrize(("key", "reset"), [(KEY, RESET), (KEY_V2, RESET_V2)])
def test_a_reset_without_a_checkpoint_is_refused(table: Path, key: str, reset: str) -> None:
    """HoodieStreamer fails there; beside a checkpoint, a reset key changes nothing."""
    note(table, "20260101000000000.commit", {key: "orders,0:1", reset: "orders,0:0"})
    assert read_hudi_positions(UPath(table)) == {"orders": {0: 1}}
    note(table, "20260101000100000.commit", {key: "", reset: "orders,0:0"})
    with pytest.raises(StoredPositionsError, match=f"has a {reset} and no {key}"):
        read_hudi_positions(UPath(table))


def test_deltacommits_count_in_a_merge_on_read_table(table: Path) -> None:
    """A compaction may carry a checkpoint on; HoodieStreamer asks the deltacommits alone."""
    (table / ".hoodie" / "hoodie.properties").write_text(MERGE_ON_READ)
    note(table, "20260101000200000.commit", {KEY: "orders,0:9"})
    assert read_hudi_positions(UPath(table)) == {"orders": {0: 9}}
    note(table, "20260101000100000.deltacommit", {KEY: "orders,0:5"})
    assert read_hudi_positions(UPath(table)) == {"orders": {0: 5}}


def test_pending_writes_do_not_count(table: Path) -> None:
    """What is requested or in flight may never be completed."""
    note(table, "20260101000000000.commit", {KEY: "orders,0:1"})
    for name in ("commit.requested", "inflight", "deltacommit.inflight", "commit.inflight"):
        note(table, f"20260101000100000.{name}", {KEY: "orders,0:9"})
    assert read_hudi_positions(UPath(table)) == {"orders": {0: 1}}


@pytest.mark.parametrize("folder", ["", "timeline/"])
@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_restore_under_way_is_refused(table: Path, state: str, folder: str) -> None:
    """Writes that it has yet to remove would count; one that has ended is no obstacle."""
    note(table, "20260101000000000.commit", {KEY: "orders,0:1"})
    pending = table / ".hoodie" / f"{folder}20260101000300000.restore.{state}"
    pending.write_bytes(b"")
    with pytest.raises(StoredPositionsError, match="the restore 20260101000300000 has not ended"):
        read_hudi_positions(UPath(table))
    done = "20260101000300000_20260101000400000" if folder else "20260101000300000"
    (table / ".hoodie" / f"{folder}{done}.restore").write_bytes(b"Obj\x01")
    assert read_hudi_positions(UPath(table)) == {"orders": {0: 1}}


def test_an_archived_checkpoint_is_not_guessed(table: Path) -> None:
    """Where the active timeline has no checkpoint, the message says what is there."""
    note(table, "20260101000000000.commit", {"schema": "{}"})
    message = "none of the 1 completed writes of the active timeline has a checkpoint"
    with pytest.raises(StoredPositionsError, match=message):
        read_hudi_positions(UPath(table))


def test_a_table_without_writes_has_no_positions(table: Path) -> None:
    """A new table is an error, too."""
    with pytest.raises(StoredPositionsError, match="none of the 0 completed writes"):
        read_hudi_positions(UPath(table))


def test_two_topics_need_a_choice(table: Path) -> None:
    """Two streamers may write to a table, or one has changed its topic: the user knows."""
    note(table, "20260101000000000.commit", {KEY: "payments,0:7"})
    note(table, "20260101000100000.commit", {KEY: "orders,0:1"})
    note(table, "20260101000200000.commit", {KEY: "orders,0:2"})
    with pytest.raises(StoredPositionsError, match="of several topics, orders, payments; give top"):
        read_hudi_positions(UPath(table))
    both = {name: read_hudi_positions(UPath(table), topic=name) for name in ("orders", "payments")}
    assert both == {"orders": {"orders": {0: 2}}, "payments": {"payments": {0: 7}}}
    with pytest.raises(StoredPositionsError, match="no checkpoint is of the topic returns; the ac"):
        read_hudi_positions(UPath(table), topic="returns")


def test_what_another_source_noted_before_is_no_obstacle(table: Path) -> None:
    """A table that was once filled from files has a time as its older checkpoint."""
    note(table, "20260101000000000.commit", {KEY: "1767225600000"})
    note(table, "20260101000100000.commit", {KEY: "orders,0:2"})
    assert read_hudi_positions(UPath(table)) == {"orders": {0: 2}}


@pytest.mark.parametrize(
    ("noted", "expected"),
    [
        ("orders,0:42", {"orders": {0: 42}}),
        ("orders.eu-1_x,10:42,2:0", {"orders.eu-1_x": {2: 0, 10: 42}}),
        ("orders,0:9223372036854775807", {"orders": {0: 2**63 - 1}}),
    ],
)
def test_the_form_of_offsets(table: Path, noted: str, expected: Positions) -> None:
    """As ``KafkaOffsetGen.CheckpointUtils.offsetsToStr`` writes it."""
    note(table, "20260101000000000.commit", {KEY: noted})
    assert read_hudi_positions(UPath(table)) == expected


@pytest.mark.parametrize(
    ("noted", "problem"),
    [
        ("1767225600000", "'1767225600000' is not offsets, as in 'orders,0:42,1:7'"),
        ("orders", "is not offsets"),
        ("orders,", "is not offsets"),
        ("orders,0", "is not offsets"),
        ("orders,0:1,payments,0:2", "is not offsets"),
        ("orders,0:1 ", "is not offsets"),
        ("orders,٣:1", "is not offsets"),
        ("orders,0:1,00:2", "names a partition twice"),
        ("orders,0:-1", r"orders\[0\]: -1 is not a position"),
        ("orders,2147483648:1", "is not a partition"),
        ("x" * 200, r"'x{60}\.\.\.' is not offsets"),
    ],
)
def test_what_is_not_offsets_is_refused(table: Path, noted: str, problem: str) -> None:
    """The message names the file and the value; an older checkpoint is not taken instead."""
    note(table, "20260101000000000.commit", {KEY: "orders,0:1"})
    note(table, "20260101000100000.commit", {KEY: noted})
    with pytest.raises(StoredPositionsError, match=problem) as refused:
        read_hudi_positions(UPath(table))
    assert f"{table}/.hoodie/20260101000100000.commit: " in str(refused.value)


def test_another_format_at_the_path_is_named(tmp_path: Path) -> None:
    """What lies there helps to find the mistake."""
    with pytest.raises(StoredPositionsError, match=r"is not a Hudi table: .* and holds nothing"):
        read_hudi_positions(UPath(tmp_path))
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(StoredPositionsError, match=r"is not a Hudi table: .* and holds _delta_log"):
        read_hudi_positions(UPath(tmp_path))


def test_a_storage_without_a_library_is_refused() -> None:
    """The storage's own error is one of this package, which may be tried again."""
    with pytest.raises(StoredPositionsError, match="nowhere://lake/orders is out of reach"):
        read_hudi_positions("nowhere://lake/orders")
