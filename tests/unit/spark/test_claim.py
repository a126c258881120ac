"""The claim on a target's checkpoint location."""

from collections.abc import Callable
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import HandoverError, Mm2OffsetsError
from airflow_mm2_offsets.spark import claim, position_ids
from airflow_mm2_offsets.spark.claim import claim_target, has_claimed, read_claim
from airflow_mm2_offsets.storage import write_text

Write = Callable[[UPath, str, type[Mm2OffsetsError]], None]


@pytest.fixture(params=["file", "memory"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> UPath:
    """A checkpoint location on a local disk, and on a storage without folders of its own."""
    folder = UPath(tmp_path) if request.param == "file" else UPath(f"memory:/{tmp_path}")
    return folder / "t" / "checkpoint"


def _claims(target: UPath, request_id: str) -> bool:
    """Tell whether a run goes on."""
    try:
        claim_target(target, request_id)
    except HandoverError:
        return False
    return True


def test_a_claim_stays_with_its_run(target: UPath) -> None:
    """Its tries go on; another run is refused, and told by which run and which file."""
    claim_target(target, "dag:manual__1+00:00")
    claim_target(target, "dag:manual__1+00:00")
    assert read_claim(target) == "dag:manual__1+00:00"
    with pytest.raises(
        HandoverError, match=r"of the run 'dag:manual__1\+00:00' .* or delete .*json"
    ):
        claim_target(target, "B")
    assert not has_claimed(target, "B")
    (own,) = target.parent.rglob("*.json")
    own.unlink()
    claim_target(target, "B")


@pytest.mark.parametrize("order", ["before", "after", "between"])
def test_of_two_runs_that_claim_at_once_at_most_one_goes_on(
    target: UPath, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """Run B looks when A has looked and has not written: before, after or while A writes."""
    write: Write = write_text
    on = []

    def write_between(path: UPath, text: str, error: type[Mm2OffsetsError]) -> None:
        """Write A's claim when B has written its own and not looked again."""

        def write_both(*other: object) -> None:
            write(*other)  # type: ignore[arg-type]
            write(path, text, error)

        with monkeypatch.context() as patch:
            patch.setattr(claim, "write_text", write if order == "before" else write_both)
            if order != "after":
                on.append(_claims(target, "B"))
        write(path, text, error)
        if order == "after":
            on.append(_claims(target, "B"))

    monkeypatch.setattr(claim, "write_text", write_between)
    on.append(_claims(target, "A"))
    monkeypatch.undo()
    assert sum(on) <= 1
    # Whichever gave way leaves nothing behind that holds the other up.
    assert sum(_claims(target, each) for each in "AB") == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 1}'])
def test_a_claim_that_is_damaged_is_named(target: UPath, text: str) -> None:
    """It may be of a run that has started a job."""
    claim_target(target, "A")
    (path,) = target.parent.rglob("*.json")
    path.write_text(text)
    with pytest.raises(HandoverError, match=r"json holds .*; delete it if no run starts a job"):
        claim_target(target, "B")


@pytest.mark.parametrize("path_of", [claim._claims_folder, position_ids._note_path])  # noqa: SLF001 - no HDFS at hand
def test_a_slash_at_the_end_makes_no_other_place(path_of: Callable[[UPath], UPath]) -> None:
    """Of hdfs:// it counts as a name of its own: the file would lie in the folder, not beside."""
    assert path_of(UPath("hdfs://nn/lake/x/")) == path_of(UPath("hdfs://nn/lake/x"))
