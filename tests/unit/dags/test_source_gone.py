"""A failover whose source job's storage is lost, by the user's word."""

import shutil

import pytest

from airflow_mm2_offsets.errors import ConfigurationError, HandoverError, Mm2OffsetsError
from tests.unit.dags.failovers import STARTING, Failover
from tests.unit.operators.spark_job import Job


def _lose(job: Job) -> None:
    job.folder.rename(job.folder.parent / "lost")


def _give_word(run: Failover, word: object = "True") -> None:
    for task_id in ("stop_source", "submit_target"):
        vars(run.task(task_id))["source_is_gone"] = word


def test_a_stop_takes_the_users_word_where_the_storage_is_lost(run: Failover) -> None:
    """The proof is called asserted, and the reason is kept: an auditor sees both."""
    run.run("check")
    _give_word(run)
    _lose(run.source)
    run.run("stop_source")
    stopped = run.worker.xcoms["stop_source", "return_value"]
    assert (stopped["proof"], stopped["clean"]) == ("asserted", False)
    assert "does not exist" in stopped["error"]


def test_a_storage_that_answers_is_asked_whatever_the_user_says(run: Failover) -> None:
    """The word counts only for what can't be reached: a job that runs is stopped with proof."""
    _give_word(run)
    run.run("stop_source")
    assert run.worker.xcoms["stop_source", "return_value"]["proof"] == "acknowledged"
    assert run.fence_state() is not None


def test_a_lost_storage_ends_the_stop_without_the_users_word(run: Failover) -> None:
    """Nobody guesses that a job is dead."""
    _lose(run.source)
    with pytest.raises(Mm2OffsetsError, match="control"):
        run.run("stop_source")


def test_a_storage_that_is_lost_before_the_hand_over(run: Failover) -> None:
    """With the user's word the positions that were read stand; without it nothing is started."""
    run.run_until("submit_target")
    _lose(run.source)
    with pytest.raises(Mm2OffsetsError):
        run.run("submit_target")
    assert not run.worker.triggered
    _give_word(run)
    run.run("submit_target")
    (conf,) = run.worker.triggered.values()
    assert conf["starting_offsets"] == STARTING


def test_a_storage_that_is_back_at_the_hand_over_is_compared(run: Failover) -> None:
    """No fence could be raised while it was lost, so a driver may have run since: refused."""
    for task_id in ("check", "read_positions"):
        run.run(task_id)
    _give_word(run)
    _lose(run.source)
    run.run("stop_source")
    shutil.rmtree(run.source.folder, ignore_errors=True)
    run.source.folder.parent.joinpath("lost").rename(run.source.folder)
    for task_id in ("wait_replicated", "translate"):
        run.run(task_id)
    with pytest.raises(HandoverError, match="fence"):
        run.run("submit_target")
    assert not run.worker.triggered


def test_a_word_that_is_no_truth_value_is_named(run: Failover) -> None:
    """A typing error must not pass for a yes."""
    _give_word(run, "yes, it is")
    with pytest.raises(ConfigurationError, match="source_is_gone is 'yes, it is'"):
        run.run("stop_source")
