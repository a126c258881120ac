"""A hand-over without a proof of the stop that belongs to its run: it starts nothing."""

import shutil
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_mm2_offsets.errors import HandoverError, Mm2OffsetsError
from airflow_mm2_offsets.spark.lock import LockPlaces, acquire_lock, new_lock
from airflow_mm2_offsets.storage import open_location
from tests.unit.dags.failovers import STARTING, STOP, Failover
from tests.unit.operators.worker import events, rebuild

BEFORE_START = ("read_positions", "wait_replicated", "translate", "forecast", "approve")
HOOK = "airflow_mm2_offsets.operators.stop.SparkKillHook"
SECONDS = {"kill_after": 0.0, "quiet_period": 0.05, "poll_interval": 0.02}


@pytest.fixture
def bare(run: Failover, monkeypatch: pytest.MonkeyPatch) -> Failover:
    """A run for a job without a control location: it can only be killed."""
    for task in run.dag.tasks:
        if "control" in vars(task):
            vars(task)["control"] = None
    vars(run.task("stop_source")).update(SECONDS)
    monkeypatch.setattr(HOOK, lambda *_: SimpleNamespace(kill=lambda *_: True))
    run.worker.conf = {**run.worker.conf, "on_failure": "keep"}
    return run


def _stop(run: Failover) -> None:
    """Run the stop with its two waits: for an end by itself, and for that of the kill."""
    task = run.task("stop_source")
    ended = run.worker.run(task)
    while ended.type == "DeferTask":
        (event,) = events(rebuild(ended))
        ended = run.worker.run(task, after=ended, event=event)


def _go_on(run: Failover) -> None:
    for each in BEFORE_START:
        run.run(each)
    run.run("submit_target")


def _fail_to_stop(run: Failover, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Mm2OffsetsError("the cluster does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(HOOK, refuse)
        with pytest.raises(Mm2OffsetsError, match="does not answer"):
            _stop(run)


def test_a_killed_job_is_moved(bare: Failover) -> None:
    """The stop's result of this run is the proof."""
    bare.run("check")
    _stop(bare)
    assert bare.worker.xcoms["stop_source", "return_value"]["proof"] == "killed"
    _go_on(bare)
    (conf,) = bare.worker.triggered.values()
    assert conf["starting_offsets"] == STARTING


def test_a_stop_that_was_marked_as_success_by_hand_is_no_proof(
    bare: Failover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job could not be killed, so it runs: the lock alone starts nothing beside it."""
    _fail_to_stop(bare, monkeypatch)
    bare.run("roll_back")
    with pytest.raises(HandoverError, match=r"no proof.*nothing was started.*Clear stop_source"):
        _go_on(bare)
    assert not bare.worker.triggered
    _stop(bare)
    _go_on(bare)
    assert len(bare.worker.triggered) == 1


def test_a_proof_of_another_run_is_none(bare: Failover) -> None:
    """As where a user gives the result of a task of another DAG."""
    _stop(bare)
    bare.worker.xcoms["stop_source", "return_value"]["request_id"] = "another:1"
    with pytest.raises(HandoverError, match=f"of 'another:1', and not of '{STOP}'"):
        _go_on(bare)
    assert not bare.worker.triggered


def test_a_proof_from_before_the_job_ran_again_is_none(bare: Failover) -> None:
    """Stopped, started again, stop_source cleared and marked as success: its result stands."""
    _stop(bare)
    bare.source.commit(1, 4, 0, 0, 0)
    with pytest.raises(HandoverError, match="written to since its stop was proved"):
        _go_on(bare)
    assert not bare.worker.triggered


def test_a_fence_is_no_proof_either(run: Failover) -> None:
    """The worker died in its wait, and a user went on by hand: nobody has answered."""
    task = run.task("stop_source")
    run.worker.run(task)
    assert run.fence_state() is not None
    with pytest.raises(HandoverError, match="no proof"):
        _go_on(run)
    assert not run.worker.triggered
    run.source.acknowledge()
    run.run("stop_source")
    _go_on(run)
    assert len(run.worker.triggered) == 1


def test_a_lost_control_location_is_no_proof(run: Failover) -> None:
    """The user's word is given to the stop, which says so; no success by hand stands for it."""
    for task_id in ("stop_source", "submit_target"):
        vars(run.task(task_id))["source_is_gone"] = "True"
    for each in BEFORE_START:
        run.run(each)
    shutil.rmtree(run.source.folder)
    with pytest.raises(HandoverError, match="no proof"):
        run.run("submit_target")
    assert not run.worker.triggered
    run.run("stop_source")
    run.run("submit_target")
    assert len(run.worker.triggered) == 1


def test_a_word_counts_only_while_the_storage_is_lost(bare: Failover) -> None:
    """The storage of a job without a control location is back: a driver may have run since."""
    for task_id in ("stop_source", "submit_target"):
        vars(bare.task(task_id))["source_is_gone"] = "True"
    lost = bare.source.folder.rename(bare.source.folder.parent / "lost")
    _stop(bare)
    shutil.rmtree(bare.source.folder, ignore_errors=True)
    lost.rename(bare.source.folder)
    places = LockPlaces(
        source=open_location(str(bare.source.checkpoint), HandoverError), target=None
    )
    acquire_lock(places, new_lock(STOP, "planned"))
    with pytest.raises(HandoverError, match="can be reached again"):
        _go_on(bare)
    assert not bare.worker.triggered


@pytest.mark.parametrize("proof", [{}, {"request_id": STOP, "proof": None}, "None"])
def test_a_result_that_proves_nothing(bare: Failover, proof: Any) -> None:  # noqa: ANN401 - JSON
    """A result without a proof, or what a template makes of a missing one."""
    _stop(bare)
    bare.worker.xcoms["stop_source", "return_value"] = proof
    with pytest.raises(HandoverError, match="no proof"):
        _go_on(bare)
    assert not bare.worker.triggered
