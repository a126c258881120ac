"""A person's word: the job may run at one home, and no driver starts at another."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import ConfigurationError, HandoverError, LostEntriesError
from airflow_mm2_offsets.moves.checks import find_move_problems
from airflow_mm2_offsets.moves.fences import newest_number
from airflow_mm2_offsets.moves.jobs import Home
from airflow_mm2_offsets.moves.journal import Entry, Event, FenceState, Journal
from airflow_mm2_offsets.moves.move import job_at, job_in, write_fences
from airflow_mm2_offsets.moves.overview import overview_of
from airflow_mm2_offsets.moves.settle import find_home, settle
from tests.unit.moves.stage import OFFSETS, ONE, TWO, Stage, step

MOVED, OPEN = FenceState.MOVED, FenceState.OPEN


def say(stage: Stage, home: Home) -> list[str]:
    """Say that the job runs at a home, and return what could not be written."""
    entries = Journal(UPath(stage.job.journal)).entries()
    seen = entries[-1].number if entries else 0
    return settle(stage.job, home.folder, UPath, by="ada", seen=seen)[1]


def lose(home: Home) -> tuple[Path, Path]:
    """Take a home's storage away; return where it was, and where it is."""
    real = Path(home.folder).parent
    real.rename(lost := real.with_name(f"{real.name}-lost"))
    real.write_text("no folder")
    return real, lost


def test_a_job_that_never_moved_is_closed_at_its_first_home(stage: Stage) -> None:
    """Nothing but the declaration names that home."""
    east, west = stage.job.homes
    assert say(stage, west) == []
    assert stage.states(east, west) == [MOVED, OPEN]


def test_records_and_a_storage_that_are_lost_together(stage: Stage) -> None:
    """The job was at a later stay of the storage that comes back: no driver starts there."""
    east, west = stage.job.homes
    stage.move(ONE)
    stage.move(TWO)
    shutil.rmtree(stage.job.journal)
    real, lost = lose(east)
    problems = say(stage, west)
    assert all(east.folder in each for each in problems)
    assert len(problems) == 3
    real.unlink()
    lost.rename(real)
    assert write_fences(stage.job, Journal(UPath(stage.job.journal)).entries(), UPath) == []
    assert stage.states(east, east.stay(2), west) == [MOVED, MOVED, OPEN]


def test_records_that_begin_elsewhere_take_a_lost_home_over_once_it_is_back(stage: Stage) -> None:
    """The word was that all homes belong to this journal."""
    east, west = stage.job.homes
    stage.move(ONE)
    stage.move(TWO)
    stage.job = replace(stage.job, records=str(stage.folder / "other"))
    real, lost = lose(east)
    say(stage, west)
    real.unlink()
    lost.rename(real)
    assert write_fences(stage.job, Journal(UPath(stage.job.journal)).entries(), UPath) == []
    assert stage.states(east, east.stay(2), west) == [MOVED, MOVED, OPEN]


def test_a_stay_whose_number_was_passed_over(stage: Stage) -> None:
    """A foreign checkpoint lay in a folder between two stays."""
    east, west = stage.job.homes
    stage.use(east.stay(2))
    stage.move(ONE)
    stage.move(TWO)
    shutil.rmtree(stage.job.journal)
    assert say(stage, west) == []
    assert stage.states(east, east.stay(3), west) == [MOVED, MOVED, OPEN]


def test_a_stay_that_only_claims_know_is_reported(stage: Stage) -> None:
    """A storage was restored from a copy that is newer than the journal."""
    east, west = stage.job.homes
    stage.move(ONE)
    stage.move(TWO)
    shutil.rmtree(stage.job.journal)
    hidden = Path(east.stay(2).folder)
    hidden.rename(aside := stage.folder / "aside")
    for fence in Path(west.control, "fence").iterdir():
        fence.unlink()  # it names the stay
    say(stage, west)
    aside.rename(hidden)
    (problem,) = find_move_problems(stage.mover("dag:three"), None)
    assert str(hidden) in problem
    assert say(stage, west) == []
    assert stage.states(east.stay(2)) == [MOVED]


def test_where_the_job_began_is_kept(stage: Stage) -> None:
    """Its first batch may not have begun; the topics count in each start."""
    _, west = stage.job.homes
    stage.move(ONE)
    shutil.rmtree(stage.job.journal)
    say(stage, west)
    for _ in range(2):
        fence = stage.fence(west)
        assert fence is not None
        assert (fence.starting_offsets, fence.topics) == (OFFSETS, "orders")
        mover = stage.mover(TWO)
        mover.ask()
        step(mover, Event.WITHDRAW)


@pytest.mark.parametrize("at", [0, 1])
def test_a_journal_that_was_restored_without_its_last_entries(stage: Stage, at: int) -> None:
    """The hand-over is lost: its number is written by another event, and overwrites no fence."""
    home, other = stage.job.homes[at], stage.job.homes[1 - at]
    stage.move(ONE)
    for number in (3, 4):
        Path(stage.job.journal, f"{number:06d}.json").unlink()
    before = newest_number(UPath(other.control))
    with pytest.raises(LostEntriesError, match="was lost or replaced"):
        stage.mover(TWO).ask(takes_over=ONE)
    assert say(stage, home) == []
    assert stage.states(home, other) == [OPEN, MOVED]
    assert newest_number(UPath(other.control)) > before


def test_a_journal_far_behind_the_fences_is_refused(stage: Stage) -> None:
    """It is another job's, or very old."""
    east, west = stage.job.homes
    stage.move(ONE)
    (Path(east.control) / "fence" / "009000.json").write_text("{}")
    with pytest.raises(HandoverError, match="the fence 9000"):
        say(stage, west)


def test_homes_that_were_changed(stage: Stage) -> None:
    """History keeps the old ones. A person says where the job is by now."""
    stage.move(ONE)
    stage.move(TWO)
    east, west = stage.job.homes
    north = Home(cluster="north", folder=str(stage.folder / "north" / "orders"))
    stage.job = replace(stage.job, homes=(west, north))
    with pytest.raises(ConfigurationError, match="says that it lives in"):
        overview_of(stage.job, UPath)
    assert say(stage, west) == []
    assert [each.there for each in overview_of(stage.job, UPath).moves] == [
        str(west),
        f"a former home ({east.stay(2).folder})",
    ]
    assert find_move_problems(stage.mover("dag:three"), None) == []
    assert stage.mover("dag:three").ask().there == north


def test_a_cluster_names_where_the_job_was(stage: Stage) -> None:
    """Not where a run that has handed nothing over was to move it."""
    east, west = stage.job.homes
    stage.move(ONE)
    mover = stage.mover(TWO)
    assert mover.ask().there == east.stay(2)
    entries = mover.journal.entries()
    assert find_home("east", entries, stage.job.homes, UPath) == east.folder
    assert find_home("west", entries, stage.job.homes, UPath) == west.folder


def test_without_entries_and_homes_nothing_can_be_closed() -> None:
    """A journal that was lost does not say where the job has been."""
    with pytest.raises(ConfigurationError, match="which homes the job has"):
        find_home("/anywhere", [], (), UPath)


def test_a_stop_by_hand_names_where_the_job_is_by_now(stage: Stage) -> None:
    """It was moved; its old home has no driver to stop."""
    east, west = stage.job.homes
    stage.move(ONE)
    with pytest.raises(HandoverError, match=rf"stop --home {west.folder}"):
        job_at(east.folder, UPath)
    assert job_at(west.folder, UPath).journal == stage.job.journal


@pytest.mark.parametrize("at", [0, 1])
def test_a_home_that_is_spelled_otherwise_is_the_same_home(stage: Stage, at: int) -> None:
    """Such as after a connection was renamed: it is not closed as another one."""
    stage.move(ONE)
    homes = list(stage.job.homes)
    homes[at] = replace(homes[at], folder=f"file://{homes[at].folder}/")
    stage.job = replace(stage.job, homes=tuple(homes))
    east, west = stage.job.homes
    assert overview_of(stage.job, UPath).home.cluster == "west"
    for _ in range(2):
        assert say(stage, west) == []
        assert stage.states(east, west) == [MOVED, OPEN]
    back = stage.mover(TWO).ask()
    assert (back.here, back.there) == (west, east.stay(2))
    assert stage.states(west) == [FenceState.STOPPING]


def test_a_job_with_another_name_takes_its_later_stays_along(stage: Stage) -> None:
    """Their claims have the old name; the folders are those of its homes."""
    east, west = stage.job.homes
    stage.move(ONE)
    stage.move(TWO)
    stage.job = replace(stage.job, name="orders2")
    assert say(stage, west) == []
    assert stage.states(east, east.stay(2), west) == [MOVED, MOVED, OPEN]
    assert find_move_problems(stage.mover("dag:three"), None) == []


def test_a_journal_alone_does_not_go_on_after_lost_entries(stage: Stage) -> None:
    """It does not know where the job has been since; the file of jobs names all homes."""
    east, west = stage.job.homes
    stage.move(ONE)
    stage.move(TWO)
    for number in range(5, 9):
        Path(stage.job.journal, f"{number:06d}.json").unlink()
    alone = job_in(stage.job.journal, west.folder)
    with pytest.raises(HandoverError, match="has lost entries"):
        settle(alone, west.folder, UPath, by="ada", seen=4)
    assert stage.states(east.stay(2), west) == [OPEN, MOVED]
    assert say(stage, west) == []
    assert stage.states(east.stay(2), west) == [MOVED, OPEN]


def test_a_former_home_may_be_another_job_s(stage: Stage) -> None:
    """Its fences and its claim are left alone, and hold no move up."""
    east, west = stage.job.homes
    stage.move(ONE)
    say(stage, west)
    shutil.rmtree(east.folder)
    other = Stage(stage.folder / "more")
    other.job = replace(other.job, name="payments", homes=(east, other.job.homes[1]))
    other.use(east)
    for run in (ONE, TWO, ONE, TWO, ONE):
        other.mover(run).ask()
        step(other.mover(run), Event.WITHDRAW)
    north = Home(cluster="north", folder=str(stage.folder / "north" / "orders"))
    stage.job = replace(stage.job, homes=(west, north))
    assert find_move_problems(stage.mover(TWO), None) == []
    assert stage.mover(TWO).ask().there == north
    step(stage.mover(TWO), Event.WITHDRAW)
    (problem,) = say(stage, west)
    assert "belongs to the journal" in problem
    assert stage.states(east) == [OPEN]


def test_a_cluster_s_name_is_not_enough_where_folders_are_unknown(stage: Stage) -> None:
    """It would mean the first one, with the oldest checkpoint."""
    east, _ = stage.job.homes
    stage.move(ONE)
    stage.move(TWO)
    with pytest.raises(ConfigurationError, match=str(east.stay(2).folder)):
        find_home("east", [], stage.job.homes, UPath)
    assert find_home(f"{east.folder}/2/", [], stage.job.homes, UPath) == east.stay(2).folder


def test_a_later_fence_at_one_home_leaves_no_other_open(stage: Stage) -> None:
    """Homes that are to be closed are closed first, and none is opened."""
    east, west = stage.job.homes
    stage.move(ONE)
    stage.move(TWO)
    stage.move("dag:three")
    for home in (east.stay(2), west.stay(2)):
        shutil.rmtree(Path(home.control, "fence"))
    late = Path(east.control, "fence", "000900.json")
    late.write_text("{}")
    with pytest.raises(LostEntriesError):
        write_fences(stage.job, Journal(UPath(stage.job.journal)).entries(), UPath)
    assert stage.states(east.stay(2), west.stay(2)) == [MOVED, None]


def test_the_journal_is_read_once_to_catch_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be many entries behind."""
    east, west = stage.job.homes
    stage.move(ONE)
    path = Path(east.control, "fence", "000060.json")
    path.write_text(path.with_name("000003.json").read_text())
    reads = 0
    read = Journal.entries

    def entries(journal: Journal) -> list[Entry]:
        nonlocal reads
        reads += 1
        return read(journal)

    monkeypatch.setattr(Journal, "entries", entries)
    assert say(stage, west) == []
    assert reads < 5
    assert read(Journal(UPath(stage.job.journal)))[-1].number == 61
