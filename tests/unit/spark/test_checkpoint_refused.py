"""Checkpoints that prove nothing: one clear error each, with the file's path."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.spark.checkpoint import listing, read_checkpoint
from tests.unit.spark.checkpoints import batch, commit, orders, simple, start, write


def _refused(root: Path | str, *words: str) -> None:
    with pytest.raises(CheckpointError) as refused:
        read_checkpoint(str(root))
    for word in words:
        assert word in str(refused.value)


def test_nothing_there(tmp_path: Path) -> None:
    """A wrong path is said to be no checkpoint."""
    _refused(tmp_path / "typo", f"{tmp_path}/typo/metadata: is missing")


@pytest.mark.parametrize("text", ["", '{"id":', "{}", "[]", '{"id":7}'])
def test_damaged_metadata(tmp_path: Path, text: str) -> None:
    """A checkpoint without its query id can't be told from another."""
    _refused(simple(tmp_path, metadata=text), f"{tmp_path}/metadata")


def test_no_offsets(tmp_path: Path) -> None:
    """A query that never began a batch says nothing of positions."""
    _refused(write(tmp_path, {"sources/0/0": start(orders(1))}), "offsets/ holds no batch")


def test_commits_lost(tmp_path: Path) -> None:
    """Batch 1 is only begun once batch 0 is committed, so an empty commits/ is damage."""
    simple(tmp_path)
    for file in (tmp_path / "commits").iterdir():
        file.unlink()
    _refused(tmp_path, "commits/ is empty", "batch 0 was committed")


def test_nothing_committed_and_no_start(tmp_path: Path) -> None:
    """Without a commit and without sources/0/0 nobody knows where the batch began."""
    _refused(write(tmp_path, {"offsets/0": batch(orders(9))}), "where a Kafka source began")


@pytest.mark.parametrize("name", ["offsets/1", "offsets/2", "commits/1"])
@pytest.mark.parametrize(
    "cut", [lambda _: "", lambda text: text[:-1], lambda text: text[:20], lambda text: text[:3]]
)
def test_half_written(tmp_path: Path, name: str, cut: Callable[[str], str]) -> None:
    """An empty file, or one cut off anywhere, is named."""
    root = simple(tmp_path, offsets__2=batch(orders(9, 9)))
    text = (root / name).read_text()
    (root / name).write_text(cut(text))
    _refused(root, f"{root}/{name}")


def test_cut_off_between_two_sources(tmp_path: Path) -> None:
    """A file that lost a whole line is found out by the sources that began."""
    files = {
        "sources/0/0": start(orders(1)),
        "sources/1/0": start('{"refunds":{"0":1}}'),
        "offsets/0": batch(orders(2)),
        "commits/0": commit(),
    }
    _refused(write(tmp_path, files), f"{tmp_path}/offsets/0", "lacks the Kafka source 1")


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_unknown_layout(tmp_path: Path, version: str) -> None:
    """Unnamed lines in v2, and versions that nobody knows, are not guessed at."""
    _refused(simple(tmp_path, offsets__1=batch(orders(4, 6), version=version).replace(":", " ", 0)))


def test_unknown_commit_version(tmp_path: Path) -> None:
    """A commit log of the future is not guessed at."""
    _refused(simple(tmp_path, commits__1=commit("v9")), "commits/1", "'v9'")


def test_commits_ahead(tmp_path: Path) -> None:
    """A commit without its offsets means two writers or half a copy."""
    _refused(simple(tmp_path, commits__2=commit()), "commits/2 is ahead of offsets/1")


def test_a_hole_at_the_committed_batch(tmp_path: Path) -> None:
    """Where every batch is logged, the missing end of the committed one is damage."""
    root = simple(tmp_path, offsets__2=batch(orders(9, 9)))
    (root / "offsets" / "1").unlink()
    _refused(root, "offsets/1 is missing although commits/1 is there")


def test_no_offsets_up_to_the_commit(tmp_path: Path) -> None:
    """With gaps too, some batch up to the commit must be logged."""
    _refused(
        write(tmp_path, {"offsets/9": batch(orders(9)), "commits/7": commit()}),
        "offsets/7 is missing",
    )


def test_one_partition_at_two_offsets(tmp_path: Path) -> None:
    """Two sources that read a partition apart can't be one map of positions."""
    root = simple(tmp_path, offsets__1=batch(orders(4, 6), orders(4, 5)))
    _refused(root, f"{root}/offsets/1", "orders[1]", "6", "5")


def test_an_offset_that_is_no_position(tmp_path: Path) -> None:
    """A negative offset in the log is named with its file, topic and partition."""
    root = simple(tmp_path, offsets__1=batch(orders(4, -2)))
    _refused(root, f"{root}/offsets/1", "orders[1]", "-2")


def test_unreadable_storage(tmp_path: Path) -> None:
    """A storage nobody knows, or that refuses, is an error of ours with the cause in it."""
    _refused("nosuch://bucket/checkpoint", "nosuch://bucket/checkpoint")
    (tmp_path / "metadata").mkdir()
    _refused(tmp_path, f"{tmp_path}/metadata is out of reach")
    with pytest.raises(CheckpointError, match=re.escape("nosuch://bucket")):
        listing("nosuch://bucket/checkpoint")


@pytest.mark.parametrize(
    ("ends", "found"),
    [
        (orders(3, 9), "orders[0] has its end 3, and batch 2 starts at 4"),
        (orders(9), "orders[1] has no end, and batch 2 starts at 6"),
        ('{"source.orders":{"0":9,"1":9}}', "orders[0] has no end, and batch 2 starts at 4"),
    ],
)
def test_poisoned_by_another_cluster(tmp_path: Path, ends: str, found: str) -> None:
    """A pending batch that ends before it begins was planned on another cluster's offsets."""
    _refused(simple(tmp_path, offsets__2=batch(ends)), "offsets/2: poisoned", found)
