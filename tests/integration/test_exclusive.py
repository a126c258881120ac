"""Files that are created only if there are none, on real storages: what the journal rests on."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.moves.journal import Event, Journal, State, Step
from airflow_mm2_offsets.storage import check_exclusive, create_new, list_directory, write_bytes
from airflow_mm2_offsets.whole_files import create_whole
from tests.integration.s3 import BUCKET, PASSWORD, USER, Server


@pytest.fixture(params=["file", "s3", "memory"])
def folder(request: pytest.FixtureRequest, s3_server: Server, tmp_path: Path) -> UPath:
    """A folder on each storage."""
    match request.param:
        case "file":
            return UPath(tmp_path / "records")
        case "s3":
            options = {"endpoint_url": s3_server.url, "key": USER, "secret": PASSWORD}
            return UPath(f"s3://{BUCKET}/{uuid4().hex}", **options)
        case _:
            return UPath(f"memory://{uuid4().hex}")


@pytest.fixture
def heedless(s3_server: Server) -> Iterator[None]:
    """A storage like S3 that writes over a file that was to be created."""
    s3_server.ignores_conditions = True
    yield
    s3_server.ignores_conditions = False


def test_a_file_is_created_once(folder: UPath) -> None:
    """The first content stays."""
    file = folder / "000001.json"
    assert create_new(file, b"first", HandoverError)
    assert not create_new(file, b"second", HandoverError)
    assert file.read_bytes() == b"first"


def test_a_lost_answer_is_found_again(folder: UPath) -> None:
    """A try whose answer was lost finds what it has written itself."""
    file = folder / "000001.json"
    write_bytes(file, b"own", HandoverError)
    assert create_new(file, b"own", HandoverError)


def test_a_journal_is_kept(folder: UPath) -> None:
    """Of two runs the one that takes over goes on."""
    kept = Journal(folder)
    one = Step(event=Event.ASK, run="dag: one", move=1, home="east", target="west")
    kept.record(one)
    kept.record(replace(one, event=Event.PROVE))
    two = replace(one, run="dag: two", move=3, target="north", takes_over=one.run)
    kept.record(two)
    with pytest.raises(HandoverError, match="'dag: two' stops the job at east"):
        kept.record(replace(one, event=Event.HAND_OVER))
    kept.record(replace(two, event=Event.PROVE))
    recorded = kept.record(replace(two, event=Event.HAND_OVER, seen=4))
    entry = recorded.entry
    assert (entry.state, entry.home, entry.number) == (State.STARTING, "north", 5)
    assert recorded.is_new
    assert kept.entries() == list(recorded.entries)


def test_the_probe_leaves_nothing(folder: UPath) -> None:
    """A storage that can do it passes."""
    write_bytes(folder / "other", b"", HandoverError)
    check_exclusive(folder, HandoverError)
    assert [*list_directory(folder, HandoverError)] == ["other"]


@pytest.mark.usefixtures("heedless")
@pytest.mark.parametrize("folder", ["s3"], indirect=True)
def test_a_storage_that_writes_over_is_refused(folder: UPath) -> None:
    """With the places where a journal can lie."""
    with pytest.raises(HandoverError, match=r"writes over a file.* Give a folder on .* S3, GCS"):
        check_exclusive(folder, HandoverError)


def test_a_driver_that_looks_first_is_refused() -> None:
    """The "create" of fsspec itself is no exclusion; sftp, smb and others have no other."""
    with pytest.raises(OSError, match="sftp:// can't create a file only if there is none"):
        create_whole(UPath("sftp://host/records/1.json"), b"")
