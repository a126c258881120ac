"""RollbackFailoverOperator: what it restarts and refuses; test_moves.py has what it undoes."""

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_mm2_offsets.errors import (
    ConfigurationError,
    HandoverError,
    LockedError,
    Mm2OffsetsError,
    NotReadyError,
)
from airflow_mm2_offsets.moves.journal import Event, FenceState, State
from airflow_mm2_offsets.operators import rollback
from airflow_mm2_offsets.operators.rollback import RollbackFailoverOperator
from tests.unit.operators.mover import Mover

RESTART = {"on_failure": "restart"}


@pytest.fixture
def mover(mover: Mover) -> Mover:
    """A job that was stopped and translated."""
    mover.until_start(mover.source.folder)
    return mover


def test_a_paused_dag_restarts_nothing(mover: Mover) -> None:
    """All is undone, and the task says what is missing. A person starts the job then."""
    mover.worker.paused["orders_stream"] = True
    with pytest.raises(NotReadyError, match="rolled back, but the job was not restarted: DAG orde"):
        mover.run(RollbackFailoverOperator, **RESTART)
    assert mover.fence(mover.job.homes[0]) is FenceState.OPEN
    mover.worker.paused["orders_stream"] = False
    assert mover.entries()[-1].state is State.HOME
    assert mover.run(RollbackFailoverOperator, **RESTART)["job"] == "stopped"
    assert mover.worker.triggered == {}


def test_a_job_without_a_dag_is_not_restarted(mover: Mover) -> None:
    """Its user's platform starts it; all else was undone, and the message says so."""
    mover.more = {"dag": None}
    with pytest.raises(NotReadyError, match="was not restarted: no DAG runs it: start it on its"):
        mover.run(RollbackFailoverOperator, **RESTART)
    assert mover.entries()[-1].state is State.HOME


def test_a_job_that_somebody_has_started_is_not_started_beside_itself(mover: Mover) -> None:
    """The roll-back is cleared after that."""
    mover.run(RollbackFailoverOperator)
    mover.source.beat(1, run_id="r2")
    assert mover.run(RollbackFailoverOperator, **RESTART)["job"] == "runs"
    assert mover.worker.triggered == {}


def test_each_stop_of_a_run_is_restarted_by_itself(mover: Mover) -> None:
    """Taken back, cleared from the stop on, and taken back again: two DAG runs."""
    mover.run(RollbackFailoverOperator, **RESTART)
    mover.source.beat(1, run_id="r2")
    mover.stop(mover.source.folder)
    mover.run(RollbackFailoverOperator, **RESTART)
    assert len(mover.worker.triggered) == 2


def test_a_job_that_is_to_be_restarted_is_still_its_run_s(
    mover: Mover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow did not answer. No other run moves it before this task, cleared, has started it."""

    def start_job(*_: object) -> None:
        raise NotReadyError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(rollback, "start_job", start_job)
        with pytest.raises(NotReadyError, match="no answer"):
            mover.run(RollbackFailoverOperator, **RESTART)
    mover.worker.run_id = "manual__2"
    with pytest.raises(LockedError, match="'failover:manual__1' starts the job"):
        mover.stop(mover.source.folder)
    mover.worker.run_id = "manual__1"
    for _ in range(2):
        assert mover.run(RollbackFailoverOperator, **RESTART)["job"] == "restarted"
    assert len(mover.worker.triggered) == 1


def test_a_job_that_another_run_has_moved_since_is_left_to_it(mover: Mover) -> None:
    """It was rolled back, another run moves the job, and this task is cleared afterwards."""
    mover.run(RollbackFailoverOperator)
    mover.worker.run_id = "manual__2"
    mover.stop(mover.source.folder)
    mover.worker.run_id = "manual__1"
    answer = mover.run(RollbackFailoverOperator, **RESTART)
    assert (answer["done"], mover.worker.triggered) == ("nothing_to_undo", {})
    assert "'failover:manual__2' has stopped the job" in answer["next"]
    assert mover.fence(mover.job.homes[0]) is FenceState.STOPPING


def test_keep(mover: Mover) -> None:
    """Nothing changes, and the person is told how to go on."""
    before = mover.events()
    answer = mover.run(RollbackFailoverOperator, on_failure="keep")
    assert (answer["done"], answer["job"]) == ("kept", "untouched")
    assert "clear it to go on" in mover.worker.xcoms["RollbackFailoverOperator", "summary"]
    assert mover.events() == before


def test_a_refusal_is_not_retried(mover: Mover) -> None:
    """Neither of a job that is handed over, nor of another word."""
    with pytest.raises(ConfigurationError, match="give one of withdraw, restart, keep"):
        mover.run(RollbackFailoverOperator, on_failure="undo")
    facts = {"starting_offsets": "{}", "topics": "orders"}
    mover.steps.record(mover.steps.find(), Event.HAND_OVER, **facts)
    with pytest.raises(HandoverError, match="nothing was rolled back") as caught:
        mover.run(RollbackFailoverOperator, **RESTART)
    assert isinstance(caught.value, AirflowFailException)
    assert mover.worker.triggered == {}


def test_a_lost_home_holds_no_roll_back_up_in_a_disaster(mover: Mover) -> None:
    """Its fence is owed. By another policy the storage may answer again soon: a retry."""
    mover.lose_source()
    mover.policy, mover.source_is_gone = "planned", False
    with pytest.raises(Mm2OffsetsError) as caught:
        mover.run(RollbackFailoverOperator)
    assert not isinstance(caught.value, AirflowFailException)
    mover.policy = "disaster"
    answer = mover.run(RollbackFailoverOperator)
    assert (answer["done"], answer["job"]) == ("rolled_back", "stopped")
    assert mover.entries()[-1].state is State.HOME
