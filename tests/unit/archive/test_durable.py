"""A crash, a power cut or a bad disk never loses a sync."""

import errno
import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from upath import UPath

from airflow_mm2_offsets.archive import Header, SyncArchive, TopicIncarnation, codec, compaction
from airflow_mm2_offsets.archive.columns import SyncColumns
from airflow_mm2_offsets.errors import ArchiveError
from tests.unit.archive.archive_builder import append, contents, index_of
from tests.unit.archive.test_store import LOG, files

_NAMES = ("mkdir", "write_bytes", "replace", "unlink")


def _owners(name: str) -> set[type]:
    """Return whose method it is: universal-pathlib before 0.3 has its own beside pathlib's."""
    kinds = type(UPath("/")).__mro__
    return {Path, next(kind for kind in kinds if name in vars(kind))}


_STEPS = (
    (os, "fsync"),
    *((owner, name) for name in _NAMES for owner in _owners(name)),
)
"""Everything that a run or a compaction does to a disk."""


class KilledError(BaseException):
    """The process is gone: nothing after it happens, no cleaning up either."""


class Disk:
    """Notes what is done to the disk, and kills the process before a step."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[str] = []
        self.kill_at: int | None = None
        for owner, name in _STEPS:
            monkeypatch.setattr(owner, name, self._noting(name, getattr(owner, name)))

    def _noting(self, name: str, do: Callable[..., Any]) -> Callable[..., Any]:
        def step(first: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as the real one
            if self.kill_at is not None and len(self.steps) >= self.kill_at:
                raise KilledError
            self.steps.append(f"{name} {_named(first)}")
            return do(first, *args, **options)

        return step


def _named(what: int | Path) -> str:
    path = Path(f"/proc/self/fd/{what}").readlink() if isinstance(what, int) else Path(what)
    if path.suffix == ".tmp":
        return "temporary"
    return "file" if path.suffix == ".parquet" else "folder"


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_content_is_on_disk_before_its_name_and_both_before_more(
    tmp_path: Path, disk: Disk
) -> None:
    """A power cut leaves no empty file under a final name, and loses no name."""
    append(SyncArchive(str(tmp_path / "new" / "archive")), LOG)
    end = ["fsync temporary", "replace temporary", "fsync folder", "unlink temporary"]
    assert disk.steps[-5:] == ["write_bytes temporary", *end]
    # The names of two new folders are in theirs.
    assert disk.steps[:-5].count("fsync folder") == 2


def test_originals_go_once_the_new_file_is_on_disk(tmp_path: Path, disk: Disk) -> None:
    """Compaction deletes no file before the new one is on disk."""
    archive = SyncArchive(str(tmp_path))
    for first in range(0, 40, 10):
        append(archive, LOG, first, first + 10)
    disk.steps.clear()
    archive.compact(over=0)
    first_deleted = disk.steps.index("unlink file")
    assert disk.steps[:first_deleted][-4:-1] == [
        "fsync temporary",
        "replace temporary",
        "fsync folder",
    ]
    assert disk.steps[first_deleted:] == ["unlink file"] * 4


@pytest.mark.parametrize("keep", [None, timedelta(days=1)])
def test_a_compaction_killed_at_any_step_loses_nothing(
    tmp_path: Path, disk: Disk, keep: timedelta | None
) -> None:
    """The files left read as the archive before or after the compaction; so does a second one."""
    whole = SyncArchive(str(tmp_path / "whole"))
    for number in range(4):
        append(whole, LOG, 10 * number, 10 * number + 10, time=number)
    append(whole, LOG[:7], incarnation=TopicIncarnation(2, "second-life"), time=4_000_000_000_000)
    done = SyncArchive(str(shutil.copytree(tmp_path / "whole", tmp_path / "done")))
    disk.steps.clear()
    assert done.compact(over=0, keep=keep) > 3
    right = [contents(each.read().index()) for each in (whole, done)]
    for kill_at in range(len(disk.steps)):
        archive = SyncArchive(
            str(shutil.copytree(tmp_path / "whole", tmp_path / f"killed-{kill_at}"))
        )
        disk.steps.clear()
        disk.kill_at = kill_at
        with pytest.raises(KilledError):
            archive.compact(over=0, keep=keep)
        disk.kill_at = None
        assert contents(archive.read().index()) in right
        archive.compact(over=0, keep=keep)
        assert contents(archive.read().index()) == right[1]


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("damage", ["shortened", "gone"])
def test_a_file_that_does_not_read_back_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str, *, lenient: bool
) -> None:
    """If the disk stored other bytes than were written, the original files stay."""
    archive = SyncArchive(str(tmp_path), skip_damaged=lenient)
    for first in range(0, 40, 10):
        append(archive, LOG, first, first + 10)
    before = files(archive)
    rename = Path.replace

    def replace(path: Path, target: str) -> None:
        rename(path, target)
        if damage == "gone":
            Path(target).unlink()
        else:
            Path(target).write_bytes(Path(target).read_bytes()[:-1])

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(ArchiveError):
        archive.compact(over=0)
    assert set(before) <= set(files(archive))


def test_a_codec_that_drops_a_sync_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The written file is compared with the expected contents, not only with its digest."""
    archive = SyncArchive(str(tmp_path))
    for first in range(0, 40, 10):
        append(archive, LOG, first, first + 10)
    before = files(archive)

    def encode(header: Header, columns: SyncColumns, watermarks: Any) -> bytes:  # noqa: ANN401 - a table
        return codec.encode(header, columns.take(np.arange(len(columns) - 1)), watermarks)

    monkeypatch.setattr(compaction, "encode", encode)
    with pytest.raises(ArchiveError, match="does not hold the same syncs"):
        archive.compact(over=0)
    monkeypatch.undo()
    assert set(before) < set(files(archive))
    assert contents(archive.read().index()) == contents(index_of(LOG))


def test_a_folder_without_fsync_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mounted object stores refuse the fsync of a folder; only that of the file is required."""
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().is_dir():
            raise OSError(errno.EINVAL, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    archive = SyncArchive(str(tmp_path / "archive"))
    append(archive, LOG)
    assert len(archive.read()) == len(LOG)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "bad")))
    with pytest.raises(ArchiveError, match="bad"):
        append(archive, LOG[:5])
