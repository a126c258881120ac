"""One run's move: where the job goes, its journal's entries, and the fences that follow."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.core.policy import DISASTER, PLANNED, Policy
from airflow_mm2_offsets.errors import HandoverError, LockedError, StopError
from airflow_mm2_offsets.moves.fences import Fence, find_differing, raise_fence, read_fence
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.journal import Event, FenceState, State
from airflow_mm2_offsets.moves.move import Mover, job_at

ONE, TWO = "dag:one", "dag:two"
OFFSETS = '{"orders":{"0":7}}'


class Stage:
    """A job with two homes on this disk, whose first one has been used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        east, west = (
            Home(cluster=name, folder=str(folder / name / "orders")) for name in ("east", "west")
        )
        self.job = SparkJob(name="orders", homes=(east, west), records=str(folder / "records"))
        self.use(east)

    def use(self, home: Home) -> None:
        """Let a job have run at a home."""
        offsets = Path(home.checkpoint, "offsets")
        offsets.mkdir(parents=True)
        (offsets / "0").write_text("{}")

    def mover(self, run: str = ONE, policy: Policy = PLANNED, **changes: object) -> Mover:
        return Mover(replace(self.job, **changes), run, policy, UPath)  # type: ignore[arg-type]

    def move(self, run: str = ONE, **facts: str) -> None:
        """Move the job to its other cluster."""
        mover = self.mover(run)
        there = mover.ask().there
        assert there is not None
        mover.record(Event.PROVE)
        mover.record(Event.HAND_OVER, starting_offsets=OFFSETS, topics="orders", **facts)
        mover.record(Event.ARRIVE)
        self.use(there)

    def fence(self, home: Home) -> Fence | None:
        return read_fence(UPath(home.control))

    def states(self, *homes: Home) -> list[FenceState | None]:
        fences = map(self.fence, homes)
        return [None if fence is None else fence.state for fence in fences]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A job that runs at its first home."""
    return Stage(tmp_path)


def test_a_move_fences_the_old_home_and_opens_the_new_one(stage: Stage) -> None:
    """The fence at the target says where the job begins."""
    east, west = stage.job.homes
    mover = stage.mover()
    assert mover.find().number == 0
    move = mover.ask()
    assert (move.here, move.there, move.number) == (east, west, 1)
    assert stage.states(east, west) == [FenceState.STOPPING, FenceState.MOVED]
    assert stage.fence(east).request_id == move.request_id == "dag:one#1"  # type: ignore[union-attr]
    mover.record(Event.PROVE, proof="acknowledged")
    mover.record(Event.HAND_OVER, starting_offsets=OFFSETS, topics="orders")
    assert stage.states(east, west) == [FenceState.MOVED, FenceState.OPEN]
    opened = stage.fence(west)
    assert opened is not None
    assert (opened.starting_offsets, opened.topics) == (OFFSETS, "orders")
    move = mover.record(Event.ARRIVE)
    assert (move.last and move.last.state, move.last and move.last.home) == (
        State.HOME,
        west.folder,
    )
    assert move.facts(Event.PROVE) == {"proof": "acknowledged"}


def test_each_stay_gets_a_fresh_folder(stage: Stage) -> None:
    """There, home, and there again: nobody names a folder, and it is known beforehand."""
    east, west = stage.job.homes
    stage.move(ONE)
    home = stage.mover(TWO).find()
    assert (home.here, home.there, home.is_way_home) == (west, east.stay(2), True)
    stage.move(TWO)
    assert stage.states(east, west, east.stay(2)) == [
        FenceState.MOVED,
        FenceState.MOVED,
        FenceState.OPEN,
    ]
    third = stage.mover("dag:three").find()
    assert (third.here, third.there) == (east.stay(2), west.stay(2))


def test_a_folder_that_another_job_has_used_is_passed_over(stage: Stage) -> None:
    """The job goes to the next one."""
    west = stage.job.homes[1]
    stage.use(west)
    assert stage.mover().find().there == west.stay(2)


def test_a_step_may_be_repeated(stage: Stage) -> None:
    """It finds its entry, and writes the fences that a kill has left out."""
    east, west = stage.job.homes
    mover = stage.mover()
    mover.ask()
    for fence in Path(east.control, "fence").iterdir():
        fence.unlink()
    again = mover.ask()
    assert (again.number, len(again.entries)) == (1, 1)
    assert stage.states(east, west) == [FenceState.STOPPING, FenceState.MOVED]


def test_a_fence_that_is_written_late_changes_nothing(stage: Stage) -> None:
    """A run was paused before it wrote its fence; the job was moved meanwhile."""
    east, _ = stage.job.homes
    mover = stage.mover()
    mover.ask()
    late = stage.fence(east)
    assert late is not None
    mover.record(Event.PROVE)
    mover.record(Event.HAND_OVER)
    with pytest.raises(StopError, match="the fence 3"):
        raise_fence(UPath(east.control), late)
    assert stage.states(east) == [FenceState.MOVED]


def test_a_journal_that_was_replaced_opens_nothing(stage: Stage) -> None:
    """Its numbers begin again, and drivers would not obey them."""
    east, _ = stage.job.homes
    stage.move()
    for entry in Path(stage.job.journal).iterdir():
        entry.unlink()
    with pytest.raises(StopError, match="lost or replaced"):
        stage.mover(TWO).ask()
    assert stage.states(east) == [FenceState.MOVED]


def test_the_job_of_another_run_is_left_alone(stage: Stage) -> None:
    """Until that run is named as ended; then it can do no more."""
    stage.mover(ONE).ask()
    with pytest.raises(LockedError, match=ONE):
        stage.mover(TWO).ask()
    taken = stage.mover(TWO).ask(takes_over=ONE)
    assert taken.number == 2
    with pytest.raises(LockedError):
        stage.mover(ONE).record(Event.PROVE)


def test_two_journals_for_one_home_are_refused(stage: Stage) -> None:
    """A second ``records`` would let two runs start two jobs."""
    stage.mover().ask()
    with pytest.raises(HandoverError, match="two journals"):
        stage.mover(TWO, records=str(stage.folder / "others")).ask()


def test_a_storage_that_is_lost_in_a_disaster_holds_nothing_up(stage: Stage) -> None:
    """The fence is owed: the storage that comes back has none, and one call writes it."""
    east, west = stage.job.homes
    real = Path(east.folder).parent
    real.rename(lost := real.with_name("lost"))
    real.write_text("no folder")

    with pytest.raises((StopError, HandoverError)):
        stage.mover(policy=PLANNED).ask()
    mover = stage.mover(policy=DISASTER)
    mover.ask()
    mover.record(Event.PROVE, proof="asserted")
    mover.record(Event.HAND_OVER, starting_offsets=OFFSETS)
    assert stage.states(west) == [FenceState.OPEN]

    real.unlink()
    lost.rename(real)
    homes = [(home.folder, UPath(home.control)) for home in (east, west)]
    assert find_differing(mover.fences(), homes) == {east.folder: None}
    assert mover.write_fences() == []
    assert stage.states(east, west) == [FenceState.MOVED, FenceState.OPEN]


def test_a_job_without_stop_control_is_submitted_once(stage: Stage) -> None:
    """Its platform stops it. It reads where it begins, and obeys no fence."""
    east, west = stage.job.homes
    mover = stage.mover(is_controlled=False)
    mover.ask()
    mover.record(Event.PROVE)
    move = mover.record(Event.HAND_OVER, starting_offsets=OFFSETS)
    assert move.last is not None
    assert not move.last.is_fenced
    assert stage.states(east, west) == [FenceState.MOVED, FenceState.OPEN]
    assert mover.attempt(Event.SUBMIT)
    assert not mover.attempt(Event.SUBMIT)


def test_a_damaged_fence_starts_no_job(stage: Stage) -> None:
    """It names the file; a later one may be written over it."""
    east, _ = stage.job.homes
    mover = stage.mover()
    mover.ask()
    (path,) = Path(east.control, "fence").iterdir()
    path.write_text("{")
    with pytest.raises(StopError, match=path.name):
        stage.fence(east)
    mover.record(Event.WITHDRAW)
    assert stage.states(east) == [FenceState.OPEN]


def test_no_login_reaches_a_fence(stage: Stage) -> None:
    """Drivers read it, and logs show it."""
    east, _ = stage.job.homes
    stage.mover().ask()
    for path in Path(east.control, "fence").iterdir():
        assert json.loads(path.read_text())["home"] == east.folder


def test_a_job_is_stopped_by_its_folder_alone(stage: Stage) -> None:
    """Without a file of jobs, in the journal that its home names; the next run moves it."""
    east, west = stage.job.homes
    stage.mover().ask()
    stage.mover().record(Event.WITHDRAW)
    job = job_at(east.folder, UPath)
    assert job.journal == stage.job.journal
    by_hand = Mover(job, "cli:somebody", PLANNED, UPath)
    assert by_hand.ask().there is None
    by_hand.record(Event.PROVE)
    assert stage.states(east) == [FenceState.STOPPING]
    with pytest.raises(HandoverError, match="nowhere"):
        by_hand.record(Event.HAND_OVER)
    assert stage.mover(TWO).ask().there == west
