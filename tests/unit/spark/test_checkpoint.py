"""Reading checkpoints: every format that is read."""

from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.spark.checkpoint import listing, read_checkpoint
from tests.unit.spark.checkpoints import (
    METADATA,
    QUERY_ID,
    batch,
    commit,
    orders,
    simple,
    start,
    write,
)


def test_committed_positions(tmp_path: Path) -> None:
    """With every batch committed, the positions are the last batch's end, and nothing is reread."""
    checkpoint = read_checkpoint(str(simple(tmp_path)))

    assert checkpoint.location == str(tmp_path)
    assert checkpoint.query_id == QUERY_ID
    assert checkpoint.committed_batch == 1
    assert checkpoint.positions == {"orders": {0: 4, 1: 6}}
    assert checkpoint.start == {"orders": {0: 1, 1: 2}}
    assert (checkpoint.pending_batch, checkpoint.pending, checkpoint.reread) == (None, None, 0)


def test_a_pending_batch_is_reread(tmp_path: Path) -> None:
    """A batch begun and not committed leaves the positions before it, and says how much it is."""
    checkpoint = read_checkpoint(UPath(simple(tmp_path, offsets__2=batch(orders(10, 7)))))

    assert checkpoint.positions == {"orders": {0: 4, 1: 6}}
    assert checkpoint.pending_batch == 2
    assert checkpoint.pending == {"orders": {0: 10, 1: 7}}
    assert checkpoint.reread == (10 - 4) + (7 - 6)


def test_a_new_partition_in_the_pending_batch_counts_from_0(tmp_path: Path) -> None:
    """Where it begins is not logged, so the bound takes it whole."""
    checkpoint = read_checkpoint(UPath(simple(tmp_path, offsets__2=batch(orders(4, 6, 5)))))

    assert checkpoint.positions == {"orders": {0: 4, 1: 6}}
    assert checkpoint.reread == 5


def test_nothing_committed_starts_where_the_first_batch_began(tmp_path: Path) -> None:
    """Without commits the base is sources/0/0, with its leading NUL."""
    files = {"sources/0/0": start(orders(5)), "offsets/0": batch(orders(9))}
    checkpoint = read_checkpoint(UPath(write(tmp_path, files)))

    assert checkpoint.committed_batch is None
    assert checkpoint.positions == {"orders": {0: 5}}
    assert (checkpoint.pending_batch, checkpoint.reread) == (0, 4)


def test_commits_far_behind_still_count(tmp_path: Path) -> None:
    """Spark would rerun only the last batch; what is loss-free begins at the last commit."""
    simple(tmp_path, offsets__2=batch(orders(6, 6)), offsets__3=batch(orders(9, 6)))
    checkpoint = read_checkpoint(str(tmp_path))

    assert checkpoint.positions == {"orders": {0: 4, 1: 6}}
    assert (checkpoint.pending_batch, checkpoint.reread) == (3, 5)


@pytest.mark.parametrize("committed", ["5", "7"])
def test_gaps_of_asynchronous_progress(tmp_path: Path, committed: str) -> None:
    """Where only some batches are logged, the largest logged one up to the commit is the base."""
    files = {
        "sources/0/0": start(orders(0)),
        "offsets/0": batch(orders(1)),
        "offsets/5": batch(orders(50)),
        "offsets/9": batch(orders(90)),
        "commits/0": commit(),
        f"commits/{committed}": commit(),
    }
    checkpoint = read_checkpoint(UPath(write(tmp_path, files)))

    assert checkpoint.committed_batch == int(committed)
    assert checkpoint.positions == {"orders": {0: 50}}
    assert (checkpoint.pending_batch, checkpoint.reread) == (9, 40)


def test_offset_log_v2(tmp_path: Path) -> None:
    """Named sources come in any order, are split at the first colon, and may have none yet."""
    lines = ['quiet:{"logOffset":0}', f"stream:{orders(4)}", "late:-"]
    files = {"offsets/0": batch(*lines, version="v2"), "commits/0": commit()}

    assert read_checkpoint(UPath(write(tmp_path, files))).positions == {"orders": {0: 4}}


def test_a_renamed_source_s_start_is_left_out(tmp_path: Path) -> None:
    """Spark keeps sources/OLD when a named source is replaced; it must not contradict the new."""
    files = {
        "sources/old/0": start(orders(1)),
        "sources/new/0": start(orders(7)),
        "offsets/0": batch(f"new:{orders(8)}", version="v2"),
        "commits/0": commit(),
    }

    assert read_checkpoint(UPath(write(tmp_path, files))).start == {"orders": {0: 7}}


@pytest.mark.parametrize(
    "text",
    [
        commit("v1"),
        commit("v1", "{}"),
        commit("v2", '{"nextBatchWatermarkMs":0,"stateUniqueIds":{"0":[["a"]]}}'),
        commit("v3", '{"nextBatchWatermarkMs":0,"stateUniqueIds":{},"sinkMetadataMap":{}}'),
    ],
)
def test_every_commit_version(tmp_path: Path, text: str) -> None:
    """Commits v1 to v3 are read."""
    assert read_checkpoint(UPath(simple(tmp_path, commits__1=text))).committed_batch == 1


def test_continuous_processing(tmp_path: Path) -> None:
    """It leaves the metadata line empty."""
    simple(tmp_path, offsets__1=batch(orders(8, 9), metadata=""))
    checkpoint = read_checkpoint(str(tmp_path))

    assert checkpoint.positions == {"orders": {0: 8, 1: 9}}


def test_other_names_in_the_logs_are_no_batches(tmp_path: Path) -> None:
    """Check sums, temporary files and notes beside the numbers are passed over."""
    names = ("offsets/.9.crc", "offsets/.9.abc.tmp", "offsets/9.tmp", "commits/_9", "offsets/٩")
    write(simple(tmp_path), dict.fromkeys(names, "junk"))

    assert read_checkpoint(tmp_path.as_uri()).committed_batch == 1


def test_several_kafka_sources_merge(tmp_path: Path) -> None:
    """Two topics, or one topic twice at the same offsets, make one map; others are passed over."""
    lines = [orders(4), "-", '{"logOffset":3}', "17", '{"refunds":{"0":2}}', orders(4)]
    files = {"offsets/0": batch(*lines), "commits/0": commit()}
    checkpoint = read_checkpoint(UPath(write(tmp_path, files)))

    assert checkpoint.positions == {"orders": {0: 4}, "refunds": {0: 2}}
    assert checkpoint.start == {}


def test_any_storage(tmp_path: Path) -> None:
    """A checkpoint away from the local disk reads the same, also after it has changed."""
    root = UPath("memory://lake/checkpoint")
    for path in simple(tmp_path).rglob("*"):
        if path.is_file():
            target = root / path.relative_to(tmp_path).as_posix()
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())

    assert read_checkpoint("memory://lake/checkpoint").committed_batch == 1
    before = listing(root)
    assert len(before) == 4
    (root / "offsets" / "2").write_text(batch(orders(5, 6)))
    assert read_checkpoint(root).pending_batch == 2
    assert listing(root) - before


def test_two_listings_tell_whether_it_stands_still(tmp_path: Path) -> None:
    """They are equal until a log changes, be it by a file that is still being written."""
    simple(tmp_path)
    before = listing(tmp_path.as_posix())
    assert before == listing(UPath(tmp_path))
    assert {Path(file.path).name for file in before} == {"0", "1"}

    (tmp_path / "state").mkdir()
    assert listing(str(tmp_path)) == before
    (tmp_path / "offsets" / ".2.tmp").write_text(METADATA)
    assert listing(str(tmp_path)) != before


def test_beside_a_file_source(tmp_path: Path) -> None:
    """A file source's first log has a line per file: it is no damaged Kafka offset."""
    files = {
        "sources/0/0": "v1\n"
        '{"path":"file:///in/a.txt","timestamp":1,"batchId":0}\n'
        '{"path":"file:///in/b.txt","timestamp":2,"batchId":0}',
        "sources/1/0": start(orders(1)),
        "offsets/0": batch('{"logOffset":0}', orders(4)),
        "commits/0": commit(),
    }
    checkpoint = read_checkpoint(str(write(tmp_path, files)))
    assert checkpoint.positions == {"orders": {0: 4}}
    assert checkpoint.start == {"orders": {0: 1}}


@pytest.mark.parametrize("theirs", [b"", b"v1\n{", b"v1\n[1,2]\n", b"\xff\xfe\x01", b"{"])
def test_what_other_sources_wrote_is_theirs(tmp_path: Path, theirs: bytes) -> None:
    """Whatever a source that is not Kafka's keeps of its beginning, it is not looked into."""
    simple(tmp_path, offsets__1=batch(orders(4, 6), "17"))
    place = tmp_path / "sources" / "1" / "0"
    place.parent.mkdir()
    place.write_bytes(theirs)
    assert read_checkpoint(str(tmp_path)).positions == {"orders": {0: 4, 1: 6}}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_spark_takes_them(tmp_path: Path, end: str) -> None:
    """Spark's getLines takes any line ending, and one after the last line."""
    simple(tmp_path, offsets__2=batch(orders(9, 9)))
    for name in ("offsets/1", "offsets/2", "commits/1"):
        path = tmp_path / name
        path.write_bytes(path.read_bytes().replace(b"\n", end.encode()) + end.encode())
    checkpoint = read_checkpoint(str(tmp_path))
    assert checkpoint.positions == {"orders": {0: 4, 1: 6}}
    assert checkpoint.pending == {"orders": {0: 9, 1: 9}}
