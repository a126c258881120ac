"""One run's move: where the job goes, its journal's entries, and the fences that follow."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.core.policy import DISASTER, PLANNED, Policy
from airflow_mm2_offsets.errors import HandoverError, LockedError, StopError
from airflow_mm2_offsets.moves.checks import find_move_problems
from airflow_mm2_offsets.moves.fences import raise_fence
from airflow_mm2_offsets.moves.journal import Event, FenceState, Journal, State, Step
from airflow_mm2_offsets.moves.move import Mover, job_at, write_fences
from airflow_mm2_offsets.moves.settle import settle
from airflow_mm2_offsets.moves.status import status_of
from tests.unit.moves.stage import OFFSETS, ONE, TWO, Stage, step


def test_a_move_fences_the_old_home_and_opens_the_new_one(stage: Stage) -> None:
    """The fence at the target says where the job begins."""
    east, west = stage.job.homes
    mover = stage.mover()
    assert mover.find().number == 0
    move = mover.ask()
    assert (move.here, move.there, move.number) == (east, west, 1)
    assert stage.states(east, west) == [FenceState.STOPPING, FenceState.MOVED]
    assert stage.fence(east).request_id == move.request_id == "dag:one#1"  # type: ignore[union-attr]
    step(mover, Event.PROVE, proof="acknowledged")
    step(mover, Event.HAND_OVER, starting_offsets=OFFSETS, topics="orders")
    assert stage.states(east, west) == [FenceState.MOVED, FenceState.OPEN]
    opened = stage.fence(west)
    assert opened is not None
    assert (opened.starting_offsets, opened.topics) == (OFFSETS, "orders")
    move = step(mover, Event.ARRIVE)
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
    assert (home.here, home.there) == (west, east.stay(2))
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
    step(mover, Event.PROVE)
    step(mover, Event.HAND_OVER)
    with pytest.raises(HandoverError, match="the fence 3"):
        raise_fence(UPath(east.control), late)
    assert stage.states(east) == [FenceState.MOVED]


@pytest.mark.parametrize("policy", [PLANNED, DISASTER])
def test_a_journal_that_was_lost_is_not_begun_again(stage: Stage, policy: Policy) -> None:
    """The job may be anywhere: its homes say that it had one. A person says where it runs."""
    east, west = stage.job.homes
    stage.move()
    shutil.rmtree(stage.job.journal)
    with pytest.raises(HandoverError, match="has been in it"):
        stage.mover(TWO, policy).ask()
    assert stage.states(east, west) == [FenceState.MOVED, FenceState.OPEN]

    entry, problems = settle(stage.job, west.folder, UPath, by="ada", seen=0)
    assert (entry.number, problems) == (4, [])
    assert stage.states(east, west) == [FenceState.MOVED, FenceState.OPEN]
    back = stage.mover(TWO).ask()
    assert (back.here, back.there, back.number) == (west, east.stay(2), 5)
    step(stage.mover(TWO), Event.PROVE)
    step(stage.mover(TWO), Event.HAND_OVER, starting_offsets=OFFSETS)
    assert stage.states(west, east.stay(2)) == [FenceState.MOVED, FenceState.OPEN]


def test_a_journal_that_has_lost_entries_opens_nothing(stage: Stage) -> None:
    """In a disaster neither: the target's drivers would not obey its numbers."""
    east, west = stage.job.homes
    stage.move()
    stage.move(TWO)
    for number in (6, 7, 8):
        Path(stage.job.journal, f"{number:06d}.json").unlink()
    for policy in (PLANNED, DISASTER):
        with pytest.raises(HandoverError, match="lost or replaced"):
            stage.mover("dag:three", policy).ask(takes_over=TWO)
    assert stage.states(east, west) == [FenceState.MOVED, FenceState.MOVED]


def test_a_journal_that_was_moved_is_taken_over_by_a_person_s_word(stage: Stage) -> None:
    """As one that a stop without a file of jobs has begun."""
    east, west = stage.job.homes
    by_hand = Mover(job_at(east.folder, UPath), "cli:somebody", PLANNED, UPath)
    by_hand.ask()
    step(by_hand, Event.PROVE)
    with pytest.raises(HandoverError, match="two journals"):
        stage.mover().ask()
    assert settle(stage.job, east.folder, UPath, by="ada", seen=0)[1] == []
    assert stage.states(east) == [FenceState.OPEN]
    assert stage.mover().ask().there == west
    with pytest.raises(HandoverError, match="it belongs to the journal"):
        step(by_hand, Event.PROVE, batch="9")


def test_each_open_fence_says_where_the_job_began(stage: Stage) -> None:
    """A stop that was withdrawn comes after the hand-over, and its driver may not have begun."""
    _, west = stage.job.homes
    mover = stage.mover()
    mover.ask()
    step(mover, Event.PROVE)
    step(mover, Event.HAND_OVER, starting_offsets=OFFSETS, topics="orders")
    shutil.rmtree(Path(west.control, "fence"))  # as if a kill had come before it was written
    stage.mover(TWO).ask(takes_over=ONE)
    step(stage.mover(TWO), Event.WITHDRAW)
    fence = stage.fence(west)
    assert fence is not None
    assert (fence.number, fence.starting_offsets, fence.topics) == (5, OFFSETS, "orders")


def test_the_next_move_writes_a_fence_that_was_left_out(stage: Stage) -> None:
    """A person's word was cut off before the home that it closed was told."""
    east, west = stage.job.homes
    stage.move()
    Journal(UPath(stage.job.journal)).record(
        Step(event=Event.SETTLE, run="ada", home=east.folder, seen=4)
    )
    assert stage.states(west) == [FenceState.OPEN]
    move = stage.mover(TWO).ask()
    assert (move.here, move.there) == (east, west.stay(2))
    assert stage.states(east, west) == [FenceState.STOPPING, FenceState.MOVED]


def test_a_home_that_is_gone_holds_no_later_move_up(stage: Stage) -> None:
    """Its cluster was decommissioned, and no driver can start there."""
    east, west = stage.job.homes
    stage.move()
    stage.move(TWO)
    shutil.rmtree(Path(east.folder, "control"))
    Path(east.folder, "control").write_text("no folder")
    assert stage.mover("dag:three").ask().there == west.stay(2)


def test_a_step_that_was_paused_changes_nothing_in_the_next_move(stage: Stage) -> None:
    """It goes on when its own run has been rolled back, and has asked again."""
    mover = stage.mover()
    mover.ask()
    paused = step(mover, Event.PROVE)
    step(mover, Event.RETURN)
    step(mover, Event.ARRIVE)
    mover.ask()
    step(mover, Event.PROVE)
    with pytest.raises(LockedError, match="can't hand over by its move 1"):
        mover.record(paused, Event.HAND_OVER, starting_offsets=OFFSETS)


def test_what_was_decided_by_an_earlier_proof_counts_no_more(stage: Stage) -> None:
    """The plan and its approval are of the positions before."""
    mover = stage.mover()
    mover.ask()
    step(mover, Event.NOTE, ended_by="a cancel")
    step(mover, Event.PROVE, batch="7")
    assert step(mover, Event.NOTE, plan="p1").noted("plan") == "p1"
    move = step(mover, Event.PROVE, batch="8")
    assert (move.noted("plan"), move.noted("ended_by")) == (None, "a cancel")
    assert move.facts(Event.PROVE) == {"batch": "8"}


def test_a_job_that_is_there_already_is_not_moved_back(stage: Stage) -> None:
    """A second trigger of one move names the same cluster."""
    stage.move()
    with pytest.raises(HandoverError, match=r"is already at west"):
        replace(stage.mover(TWO), to="west").ask()
    assert replace(stage.mover(TWO), to="east").ask().number == 5


def test_a_damaged_fence_is_written_again(stage: Stage) -> None:
    """Nobody deletes a file."""
    east, _ = stage.job.homes
    mover = stage.mover()
    mover.ask()
    (path,) = Path(east.control, "fence").iterdir()
    path.write_text("{")
    assert write_fences(stage.job, mover.journal.entries(), UPath) == []
    assert stage.states(east) == [FenceState.STOPPING]


def test_a_person_s_word_opens_a_home_while_the_other_is_lost(stage: Stage) -> None:
    """In the disaster that it is for; the other home's fence is owed, and said to be."""
    east, west = stage.job.homes
    mover = stage.mover()
    mover.ask()
    real = Path(east.folder).parent
    real.rename(real.with_name("lost"))
    real.write_text("no folder")
    entry, problems = settle(stage.job, west.folder, UPath, by="ada", seen=1)
    assert entry.state is State.HOME
    assert [each.split(":")[0].split()[-1] for each in problems] == [
        east.folder,
        east.stay(2).folder,
    ]
    assert stage.states(west) == [FenceState.OPEN]


def test_the_job_of_another_run_is_left_alone(stage: Stage) -> None:
    """Until that run is named as ended; then it can do no more."""
    stage.mover(ONE).ask()
    with pytest.raises(LockedError, match=ONE):
        stage.mover(TWO).ask()
    taken = stage.mover(TWO).ask(takes_over=ONE)
    assert taken.number == 2
    with pytest.raises(LockedError):
        step(stage.mover(ONE), Event.PROVE)


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
    step(mover, Event.PROVE, proof="asserted")
    step(mover, Event.HAND_OVER, starting_offsets=OFFSETS)
    assert stage.states(west) == [FenceState.OPEN]

    real.unlink()
    lost.rename(real)
    assert stage.states(east) == [None]
    assert write_fences(stage.job, mover.journal.entries(), UPath) == []
    assert stage.states(east, west) == [FenceState.MOVED, FenceState.OPEN]


def test_a_job_without_stop_control_is_submitted_once(stage: Stage) -> None:
    """Its platform stops it. It reads where it begins, and obeys no fence."""
    east, west = stage.job.homes
    mover = stage.mover(is_controlled=False)
    mover.ask()
    step(mover, Event.PROVE)
    move = step(mover, Event.HAND_OVER, starting_offsets=OFFSETS)
    assert move.last is not None
    assert not move.last.is_fenced
    assert stage.states(east, west) == [FenceState.MOVED, FenceState.OPEN]
    for number in (1, 1, 2):
        move = step(mover, Event.SUBMIT, number=str(number))
    assert [each.facts["number"] for each in move.entries_of(Event.SUBMIT)] == ["1", "2"]


def test_a_damaged_fence_starts_no_job(stage: Stage) -> None:
    """It names the file; a later one may be written over it."""
    east, _ = stage.job.homes
    mover = stage.mover()
    mover.ask()
    (path,) = Path(east.control, "fence").iterdir()
    path.write_text("{")
    with pytest.raises(StopError, match=path.name):
        stage.fence(east)
    step(mover, Event.WITHDRAW)
    assert stage.states(east) == [FenceState.OPEN]


def test_a_job_is_stopped_by_its_folder_alone(stage: Stage) -> None:
    """Without a file of jobs, in the journal that its home names; the next run moves it."""
    east, west = stage.job.homes
    stage.mover().ask()
    step(stage.mover(), Event.WITHDRAW)
    job = job_at(east.folder, UPath)
    assert job.journal == stage.job.journal
    by_hand = Mover(job, "cli:somebody", PLANNED, UPath)
    assert by_hand.ask().there is None
    step(by_hand, Event.PROVE)
    assert stage.states(east) == [FenceState.STOPPING]
    with pytest.raises(HandoverError, match="nowhere"):
        step(by_hand, Event.HAND_OVER)
    assert stage.mover(TWO).ask().there == west


def test_a_run_that_is_cleared_late_does_not_move_the_job_back(stage: Stage) -> None:
    """Another run has brought it where this one was to move it."""
    step_back = stage.mover(ONE)
    step_back.ask()
    step(step_back, Event.WITHDRAW)
    stage.move(TWO)
    with pytest.raises(HandoverError, match="is already at west"):
        stage.mover(ONE).ask()


@pytest.mark.parametrize("name", ["7.json", "99999.json", "\u0669" * 6 + ".json", "notes"])
def test_what_is_no_fence_by_its_name_counts_nowhere(stage: Stage, name: str) -> None:
    """As for the job's drivers, which look for the same names."""
    east, west = stage.job.homes
    stage.mover().ask()
    Path(east.control, "fence", name).write_text("{}")
    step(stage.mover(), Event.WITHDRAW)
    assert stage.states(east, west) == [FenceState.OPEN, FenceState.MOVED]


def test_a_journal_has_one_identity_in_any_spelling(stage: Stage) -> None:
    """``check`` and the stop agree."""
    stage.move()
    records = f"file://{stage.job.records}/"
    mover = stage.mover(TWO, records=records)
    assert find_move_problems(mover, None) == []
    assert mover.ask().number == 5


@pytest.mark.parametrize(
    ("event", "before"),
    [(Event.ARRIVE, "A new move brings it back"), (Event.WITHDRAW, "runs at east")],
)
def test_the_next_step_of_an_old_move_does_not_count_any_more(
    stage: Stage, event: Event, before: str
) -> None:
    """A later one has moved the job: what was true then could start two jobs."""
    if event is Event.ARRIVE:
        stage.move(ONE)
    else:
        stage.mover(ONE).ask()
        step(stage.mover(ONE), Event.WITHDRAW)
    assert before in status_of(stage.mover(ONE).find()).next
    stage.move(TWO)
    old = status_of(stage.mover(ONE).find())
    assert before not in old.next
    assert "jobs show orders" in old.next
    assert before not in old.with_cause("it failed").next
