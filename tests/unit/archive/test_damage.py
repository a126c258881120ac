"""A damaged file is named, and skipped only with skip_damaged."""

import json
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from upath import UPath

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.filenames import FileName
from airflow_mm2_offsets.core import Basis
from airflow_mm2_offsets.errors import ArchiveError, Mm2OffsetsError
from airflow_mm2_offsets.storage import read_bytes
from tests.unit.archive.archive_builder import append, contents, index_of
from tests.unit.archive.test_store import LOG


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An archive of three files, each 10 syncs."""
    archive = SyncArchive(str(tmp_path))
    for first in (0, 10, 20):
        append(archive, LOG, first, first + 10, time=first)
    return tmp_path


def second(folder: Path) -> Path:
    return sorted(folder.iterdir())[1]


def refuses(folder: Path, match: str) -> None:
    """Check that the archive is refused, and read without the damage when told to."""
    with pytest.raises(ArchiveError, match=match):
        SyncArchive(str(folder)).read()
    with pytest.raises(ArchiveError, match=match):
        SyncArchive(str(folder), skip_damaged=True).compact(over=0)
    archived = SyncArchive(str(folder), skip_damaged=True).read()
    assert len(archived.damaged) >= 1
    assert len(archived) >= 20


@pytest.mark.parametrize("place", [0, 100, -100, -1])
def test_a_flipped_bit(folder: Path, place: int) -> None:
    """A flipped bit anywhere in a file is reported as damage."""
    data = bytearray(second(folder).read_bytes())
    data[place] ^= 4
    second(folder).write_bytes(data)
    refuses(folder, rf"{second(folder).name} is damaged: its {len(data)} bytes .*skip_damaged")


@pytest.mark.parametrize("size", [0, 1, 500])
def test_a_half_written_file(folder: Path, size: int) -> None:
    """A truncated file is reported as damage."""
    second(folder).write_bytes(second(folder).read_bytes()[:size])
    refuses(folder, rf"{second(folder).name} is damaged: its {size} bytes")


def test_a_missing_file(folder: Path) -> None:
    """A missing file is reported as a gap, and the next read begins at the gap."""
    second(folder).unlink()
    refuses(folder, r"covers offsets 10 to 19 of incarnation 1 is missing")
    lenient = SyncArchive(str(folder), skip_damaged=True)
    incarnation, first = lenient.read().next_read("first-life", 40)
    assert first == 10
    append(lenient, LOG, first, 40, incarnation=incarnation)
    assert contents(SyncArchive(str(folder)).read().index()) == contents(index_of(LOG))


def test_a_missing_first_file(folder: Path) -> None:
    """If its first file is missing, the archive's first sync is not treated as the first ever."""
    min(folder.iterdir()).unlink()
    refuses(folder, r"covers offsets 0 to 9 of incarnation 1 is missing")
    index = SyncArchive(str(folder), skip_damaged=True).read().index()
    assert index.translate("orders", 0, 5).basis is Basis.HISTORY_CUT


def rewritten(path: Path, **changes: object) -> None:
    """Write a file's content with another header, under a name that fits."""
    table = pq.read_table(path)
    key = b"airflow_mm2_offsets.archive"
    header = json.loads(table.schema.metadata[key]) | changes
    pq.write_table(table.replace_schema_metadata({key: json.dumps(header)}), path)
    renamed(path)


def renamed(path: Path) -> None:
    digest = sha256(path.read_bytes()).hexdigest()
    name = FileName.parse(path.name)
    assert name is not None
    path.rename(path.with_name(str(FileName(name.incarnation, name.first, name.stop, digest))))


@pytest.mark.parametrize("version", [0, 2, None])
def test_another_format_version(folder: Path, version: int | None) -> None:
    """A file of an older or newer format is named with both versions."""
    rewritten(second(folder), format=version)
    refuses(folder, rf"is of format version {version}, and this release reads 1")


def test_a_foreign_parquet_file(folder: Path) -> None:
    """A Parquet file with other contents is refused, even under a valid name."""
    table = pq.read_table(second(folder)).replace_schema_metadata({})
    pq.write_table(table, second(folder))
    renamed(second(folder))
    refuses(folder, r"is not a file of an archive")


def test_a_foreign_file(folder: Path) -> None:
    """A file with another name is refused; hidden files and those of a killed writer are not."""
    (folder / ".syncs.tmp").write_text("half")
    (folder / "_SUCCESS").write_text("")
    assert len(SyncArchive(str(folder)).read()) == 30
    (folder / "part-0000.parquet").write_text("")
    with pytest.raises(ArchiveError, match=r"part-0000.parquet is not a file of an archive"):
        SyncArchive(str(folder)).read()
    assert len(SyncArchive(str(folder), skip_damaged=True).read()) == 30


def test_a_folder_that_changes_while_it_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction between listing and reading causes no gap and no duplicate."""
    compacted: list[bool] = []

    def compact_first(path: UPath, error: type[Mm2OffsetsError]) -> bytes | None:
        if not compacted:
            compacted.append(True)
            SyncArchive(str(folder)).compact(over=0)
        return read_bytes(path, error)

    monkeypatch.setattr("airflow_mm2_offsets.archive.store.read_bytes", compact_first)
    assert contents(SyncArchive(str(folder)).read().index()) == contents(index_of(LOG[:30]))
    assert len(list(folder.iterdir())) == 1
