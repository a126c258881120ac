"""Asking a job to stop, its answer, and taking the stop back."""

from collections.abc import Callable

import pytest
from upath import UPath

from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.errors import LockedError, StopError
from airflow_mm2_offsets.locations import same_folder
from airflow_mm2_offsets.moves.journal import Event, FenceState
from airflow_mm2_offsets.moves.move import Move, Mover
from airflow_mm2_offsets.moves.stopping import Withdrawal, answer_for, check_asked, withdraw
from airflow_mm2_offsets.spark.control import StopProof, read_last_acknowledgement
from tests.unit.moves.stage import ONE, TWO, Asked, Stage, step
from tests.unit.operators.spark_job import Job


def test_an_answer_in_the_place_of_a_driver(asked: Asked) -> None:
    """It says what proves the end, and counts for each later stop while nothing runs."""
    asked.answer(asked.mover().ask(), StopProof.SILENT)
    last = read_last_acknowledgement(asked.control)
    assert last is not None
    assert (last.proof, last.clean, last.batch_id) == (StopProof.SILENT, False, None)
    assert asked.answered("a later stop")
    asked.driver.beat(1, application_id="app-2")
    assert not asked.answered("a later stop")


def test_it_counts_until_the_driver_lives(asked: Asked) -> None:
    """A driver that was silent and beats again has not stopped."""
    asked.answer(asked.mover().ask(), StopProof.SILENT)
    asked.driver.beat(2)
    assert not asked.answered("a later stop")


def test_what_a_job_has_said_is_kept(asked: Asked) -> None:
    """Answered for a second run, the answer still holds the job's own words, and the folders."""
    mover = asked.mover(ONE)
    mover.ask()
    said = asked.driver.query_answer(7)
    asked.driver.acknowledge(batch_id=7, queries=[said])
    move = asked.mover(TWO).ask(takes_over=ONE)
    asked.answer(move, StopProof.ACKNOWLEDGED)
    last = read_last_acknowledgement(asked.control)
    assert last is not None
    assert (last.request_id, last.batch_id, last.clean) == (move.request_id, 7, True)
    assert last.proof is StopProof.ACKNOWLEDGED
    assert same_folder(asked.control, last.proved_control or "")
    assert same_folder(UPath(move.here.checkpoint), last.proved_checkpoint or "")


def test_a_driver_that_has_begun_since_the_answer_is_not_answered_for(asked: Asked) -> None:
    """Its run answers nothing yet; who clears the task asks it."""
    move = asked.mover().ask()
    asked.driver.acknowledge()
    asked.driver.beat(1, application_id="app-2")
    with pytest.raises(StopError, match="app-2 has begun since"):
        asked.answer(move, StopProof.ACKNOWLEDGED)


def test_a_folder_without_a_driver_is_not_answered_for(stage: Stage) -> None:
    """No job has ever run there: the folder may be a wrong one."""
    move = stage.mover().ask()
    control = UPath(move.here.control)
    with pytest.raises(StopError, match="no job has ever run here"):
        answer_for(control, move, StopProof.SILENT, checkpoint=UPath(move.here.checkpoint))


def test_a_stop_is_withdrawn_and_asked_again(asked: Asked) -> None:
    """By the same run and by another; each stop has a name of its own."""
    east = asked.job.homes[0]
    names = []
    for run in (ONE, ONE, TWO):
        move = asked.mover(run).ask()
        names.append(move.request_id)
        check_asked(asked.control, move.request_id)
        assert withdraw(asked.mover(run), move.request_id) is Withdrawal.WITHDRAWN
        assert asked.states(east) == [FenceState.OPEN]
        with pytest.raises(StopError, match="was withdrawn"):
            check_asked(asked.control, move.request_id)
    assert len({*names}) == 3


@pytest.mark.parametrize("says", [Job.acknowledge, lambda job: job.beat(2, stopping="{}")])
def test_a_job_that_stops_is_not_given_back(asked: Asked, says: Callable[[Job], None]) -> None:
    """It has answered, or has announced that it carries the stop out: the fence stays."""
    move = asked.mover().ask()
    says(asked.driver)
    driver = asked.control / "driver.json"
    driver.write_text(driver.read_text().replace("{}", move.request_id))
    assert withdraw(asked.mover(), move.request_id) is Withdrawal.STOPPED
    assert asked.states(asked.job.homes[0]) == [FenceState.STOPPING]


class _Late(Mover):
    """A run whose job answers at the moment of the withdrawal."""

    def record(self, move: Move, event: Event, **facts: object) -> Move:
        """Record it; the job has looked at the fence a moment before."""
        answer = _answers.get(event)
        if answer:
            answer()
        return super().record(move, event, **facts)


_answers: dict[Event, Callable[[], None]] = {}


def test_an_answer_at_the_moment_of_the_withdrawal(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is found stopped, and is asked anew: the fence closes again."""
    move = asked.mover().ask()
    monkeypatch.setitem(_answers, Event.WITHDRAW, asked.driver.acknowledge)
    late = _Late(asked.job, ONE, PLANNED, UPath)
    assert withdraw(late, move.request_id) is Withdrawal.STOPPED
    assert asked.states(asked.job.homes[0]) == [FenceState.STOPPING]
    assert [each.event for each in late.journal.entries()] == ["ask", "withdraw", "ask"]


def test_a_withdrawal_that_was_cut_off_says_the_same_again(asked: Asked) -> None:
    """The entry is there, and the second look was not: the job has answered beside it."""
    move = asked.mover().ask()
    step(asked.mover(), Event.WITHDRAW)
    assert withdraw(asked.mover(), move.request_id) is Withdrawal.WITHDRAWN
    asked.driver.beat(2, stopping=move.request_id, ended=True)
    assert withdraw(asked.mover(), move.request_id) is Withdrawal.STOPPED
    assert asked.states(asked.job.homes[0]) == [FenceState.STOPPING]


def test_a_withdrawal_touches_nothing_of_another_run(asked: Asked) -> None:
    """Nor of the run's own next move."""
    first = asked.mover(ONE).ask()
    second = asked.mover(TWO).ask(takes_over=ONE)
    assert withdraw(asked.mover(ONE), first.request_id) is Withdrawal.STOPPED
    check_asked(asked.control, second.request_id)
    with pytest.raises(LockedError, match="is over"):
        withdraw(asked.mover(TWO), "dag:two#1")
    with pytest.raises(StopError, match=f"{TWO}#2.*, and not by"):
        check_asked(asked.control, first.request_id)
