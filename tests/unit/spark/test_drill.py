"""The throw-away folder of a drill: marked first, removed last, and only if it is the drill's."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from upath import UPath

from airflow_mm2_offsets.errors import DrillError, Mm2OffsetsError
from airflow_mm2_offsets.spark import drill
from airflow_mm2_offsets.spark.drill import MARK, mark_drill, read_mark, remove_drill
from airflow_mm2_offsets.storage import TreeEntry, create_new, remove_entry, write_text

OWN, OTHER = "mm2_failover:drill__1", "mm2_failover:drill__2"
Remove = Callable[[UPath, TreeEntry, type[Mm2OffsetsError]], None]


@pytest.fixture(params=["file", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> UPath:
    """A folder on a local disk, and on a storage without folders of its own."""
    return UPath(tmp_path) if request.param == "file" else UPath(f"memory:/{tmp_path}")


def _fill(folder: UPath) -> None:
    """Write what a job and the failover's steps leave there."""
    for name in (
        *("checkpoint/offsets/0", "checkpoint/commits/0", "checkpoint/.metadata.crc"),
        *("checkpoint.control.json", "checkpoint.clusters.json", "checkpoint.claims/1.json"),
        *("control/driver.json", "output/batch_id=0/part-[0]*.parquet", "output/_temporary/x"),
    ):
        write_text(folder / name, name, DrillError)


def _files(root: UPath) -> set[str]:
    names = root.fs.find(root.path) if root.exists() else []
    return {name.removeprefix(root.path.rstrip("/") + "/") for name in names}


def test_nothing_is_left_of_a_drill(root: UPath) -> None:
    """Files, folders and notes beside the checkpoint are gone; what lies beside it stays."""
    write_text(root / "drills-of-others" / "a", "a", DrillError)
    folder = root / "drills" / "orders"
    mark_drill(folder, OWN)
    _fill(folder)
    assert remove_drill(folder, OWN) == 9
    assert _files(root) == {"drills-of-others/a"}
    assert not folder.exists()
    assert remove_drill(folder, OWN) == 0


def test_folders_that_the_drill_created_are_removed(tmp_path: Path) -> None:
    """A folder that was there before stays, and so does one that holds something else by now."""
    made = UPath(tmp_path / "a" / "b")
    mark_drill(made, OWN)
    (tmp_path / "a" / "theirs").touch()
    remove_drill(made, OWN)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["theirs"]

    (tmp_path / "mine").mkdir()
    mark_drill(UPath(tmp_path / "mine"), OWN)
    remove_drill(UPath(tmp_path / "mine"), OWN)
    assert [*(tmp_path / "mine").iterdir()] == []


@pytest.mark.parametrize("steps", range(1, 9))
def test_a_removal_that_was_cut_off_is_repeated(
    root: UPath, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """The mark stays until all else is gone, so another try finds the folder its own."""
    folder = root / "drill"
    mark_drill(folder, OWN)
    _fill(folder)
    remove: Remove = remove_entry
    done: list[TreeEntry] = []

    def cut_off(root: UPath, entry: TreeEntry, error: type[Mm2OffsetsError]) -> None:
        if len(done) == steps:
            raise DrillError("the storage is gone")
        done.append(entry)
        remove(root, entry, error)

    monkeypatch.setattr(drill, "remove_entry", cut_off)
    with pytest.raises(DrillError, match="storage is gone"):
        remove_drill(folder, OWN)
    monkeypatch.undo()
    assert read_mark(folder) is not None
    remove_drill(folder, OWN)
    assert _files(root) == set()


def test_a_folder_without_a_mark_is_never_removed(root: UPath) -> None:
    """Nor is it marked: what it holds is somebody's."""
    folder = root / "theirs"
    _fill(folder)
    before = _files(folder)
    assert remove_drill(folder, OWN) == 0
    with pytest.raises(DrillError, match=r"holds checkpoint, .* and 1 more already"):
        mark_drill(folder, OWN)
    assert _files(folder) == before


def test_another_drills_folder_is_never_removed(root: UPath) -> None:
    """Each drill removes what it has marked, and names the drill whose folder it is."""
    folder = root / "drill"
    mark_drill(folder, OTHER)
    _fill(folder)
    with pytest.raises(DrillError, match=f"is of the drill '{OTHER}', and not of '{OWN}'"):
        remove_drill(folder, OWN)
    assert len(_files(folder)) == 10


def test_a_copy_of_a_drills_folder_is_never_removed(root: UPath) -> None:
    """A backup that was restored elsewhere holds the mark, too."""
    mark_drill(root / "drill", OWN)
    write_text(root / "copy" / MARK, (root / "drill" / MARK).read_text(), DrillError)
    _fill(root / "copy")
    with pytest.raises(DrillError, match="is a copy, and stays"):
        remove_drill(root / "copy", OWN)
    with pytest.raises(DrillError, match="is a copy, and stays"):
        mark_drill(root / "copy", OWN)
    with pytest.raises(DrillError, match="is a copy, and stays"):
        mark_drill(root / "copy", OTHER)
    assert len(_files(root / "copy")) == 10


def test_the_folder_of_another_drill_inside_stays(root: UPath) -> None:
    """Nothing is removed until that one is."""
    mark_drill(root / "drill", OWN)
    mark_drill(root / "drill" / "inner", OTHER)
    with pytest.raises(DrillError, match=r"another drill \(inner/drill.json\), so nothing is rem"):
        remove_drill(root / "drill", OWN)
    assert _files(root / "drill") == {MARK, f"inner/{MARK}"}


def test_links_are_removed_and_what_they_lead_to_stays(tmp_path: Path) -> None:
    """A link to a folder, to a file, to nothing, and a loop."""
    kept = tmp_path / "production"
    (kept / "checkpoint").mkdir(parents=True)
    (kept / "checkpoint" / "0").touch()
    folder = tmp_path / "drill"
    mark_drill(UPath(folder), OWN)
    (folder / "sub").mkdir()
    (folder / "production").symlink_to(kept)
    (folder / "sub" / "file").symlink_to(kept / "checkpoint" / "0")
    (folder / "nothing").symlink_to(tmp_path / "nothing")
    (folder / "sub" / "loop").symlink_to(folder)
    assert remove_drill(UPath(folder), OWN) == 4
    assert [*tmp_path.iterdir()] == [kept]
    assert (kept / "checkpoint" / "0").exists()


def test_a_new_drill_removes_what_an_earlier_one_left(root: UPath) -> None:
    """Its own tear-down never came; a second mark of the same drill changes nothing."""
    mark_drill(root / "drill", OTHER)
    _fill(root / "drill")
    mark = mark_drill(root / "drill", OWN, dag_id="orders_stream", run_id="r")
    assert _files(root / "drill") == {MARK}
    _fill(root / "drill")
    assert mark_drill(root / "drill", OWN) == read_mark(root / "drill") == mark
    assert len(_files(root / "drill")) == 10


def test_files_that_appear_keep_the_mark(root: UPath, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job still writes there: the folder stays the drill's, and the task can be cleared."""
    folder = root / "drill"
    mark_drill(folder, OWN)
    _fill(folder)
    remove: Remove = remove_entry

    def write_meanwhile(root: UPath, entry: TreeEntry, error: type[Mm2OffsetsError]) -> None:
        remove(root, entry, error)
        write_text(folder / "control" / "driver.json", "{}", error)

    monkeypatch.setattr(drill, "remove_entry", write_meanwhile)
    with pytest.raises(DrillError, match=r"control/driver\.json appeared .* still writes"):
        remove_drill(folder, OWN)
    monkeypatch.undo()
    assert read_mark(folder) is not None
    assert remove_drill(folder, OWN) == 1


def test_a_mark_that_was_cut_off_does_not_block_the_folder(tmp_path: Path) -> None:
    """The temporary file of a write that ended halfway is a drill's own."""
    folder = tmp_path / "drill"
    folder.mkdir()
    (folder / f".{MARK}.0123.tmp").touch()
    mark_drill(UPath(folder), OWN)
    assert remove_drill(UPath(folder), OWN) == 1


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"request_id": "a", "at": "then"}'])
def test_a_damaged_mark_is_named(root: UPath, text: str) -> None:
    """Nothing is removed: it may not be a drill's."""
    write_text(root / "drill" / MARK, text, DrillError)
    for call in (mark_drill, remove_drill):
        with pytest.raises(DrillError, match=r"drill\.json does not say which drill"):
            call(root / "drill", OWN)
    assert _files(root / "drill") == {MARK}


def test_of_two_drills_at_once_one_goes_on(root: UPath, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one has marked the folder between the look and the mark."""

    def create_second(path: UPath, data: bytes, error: type[Mm2OffsetsError]) -> bool:
        write_text(path, json.dumps({**json.loads(data), "request_id": OTHER}), error)
        return create_new(path, data, error)

    monkeypatch.setattr(drill, "create_new", create_second)
    with pytest.raises(DrillError, match="another drill has just marked"):
        mark_drill(root / "drill", OWN)
    mark = read_mark(root / "drill")
    assert mark is not None
    assert mark.request_id == OTHER


def test_of_two_tries_at_once_both_have_one_mark(
    root: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that was lost goes on beside its retry."""

    def create_second(path: UPath, data: bytes, error: type[Mm2OffsetsError]) -> bool:
        write_text(path, json.dumps({**json.loads(data), "run_id": "first"}), error)
        return create_new(path, data, error)

    monkeypatch.setattr(drill, "create_new", create_second)
    assert mark_drill(root / "drill", OWN, run_id="second").run_id == "first"


NAMES = st.lists(
    st.lists(st.sampled_from(["a", "b", "[a]", "*", "c d", MARK + "x"]), min_size=1, max_size=3),
    max_size=8,
)


@given(inside=NAMES, outside=NAMES)
def test_a_removal_takes_all_inside_and_nothing_outside(
    inside: list[list[str]], outside: list[list[str]]
) -> None:
    """Whatever the names: none is taken for a pattern, and no longer name for a folder's."""
    root = UPath("memory://any")
    if root.exists():
        root.fs.rm(root.path, recursive=True)
    for names in outside:
        write_text(root.joinpath("drill-of-others", *names, "f"), "f", DrillError)
    before = _files(root)
    mark_drill(root / "drill", OWN)
    for names in inside:
        write_text(root.joinpath("drill", *names, "f"), "f", DrillError)
    assert remove_drill(root / "drill", OWN) == len({tuple(names) for names in inside})
    assert _files(root) == before
