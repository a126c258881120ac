"""The way back before the point of no return, and a hand-over that runs at the same moment."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets import storage
from airflow_mm2_offsets.errors import HandoverError, Mm2OffsetsError, StopError
from airflow_mm2_offsets.spark.claim import claim_target, has_claimed, read_claim
from airflow_mm2_offsets.spark.fence import (
    FenceState,
    lift_fence,
    mark_moved,
    new_fence,
    own_fence,
    read_fence,
)
from airflow_mm2_offsets.spark.rollback import FailoverRun, roll_back, set_plan_aside
from airflow_mm2_offsets.spark.stopping import begin_stop, is_withdrawn
from tests.unit.operators.spark_job import Job
from tests.unit.spark.turns import ALL, Killed, race

RUN = "failover:manual__1"


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "job", 4, 6)


@pytest.fixture
def target(tmp_path: Path) -> UPath:
    return UPath(tmp_path / "target" / "checkpoint")


def _stop(job: Job, *, answered: bool = True) -> None:
    begin_stop(str(job.control), new_fence(RUN, "the target"))
    if answered:
        job.acknowledge(queries=[job.query_answer()])


def _run(job: Job, target: UPath, *, has_control: bool = True) -> FailoverRun:
    return FailoverRun(
        request_id=RUN,
        control=UPath(job.control) if has_control else None,
        target_checkpoint=target,
        has_killed=not has_control,
    )


def _in_memory(job: Job, folder: str, *, has_control: bool) -> FailoverRun:
    """Return a run of which all files are in memory: a disk that syncs each write is slow."""
    control = UPath(f"memory:/{folder}/control")
    for path in job.control.iterdir():
        control.joinpath(path.name).write_text(path.read_text())
    return FailoverRun(
        request_id=RUN,
        control=control if has_control else None,
        target_checkpoint=UPath(f"memory:/{folder}/target/checkpoint"),
        has_killed=not has_control,
    )


def _hand_over(run: FailoverRun) -> None:
    """Do what ``TriggerTargetDagOperator`` does before it triggers."""
    if run.control is not None:
        own_fence(run.control, RUN)
    claim_target(run.target_checkpoint, RUN, has_fence=run.control is not None)
    if run.control is not None:
        mark_moved(run.control, RUN, "the target")


def test_a_stopped_job_may_run_again(job: Job, target: UPath) -> None:
    """Request and fence are gone, and the job needs a restart; told so again by a repeated call."""
    _stop(job)
    for _ in range(2):
        undone = roll_back(_run(job, target))
        assert undone.mark is not None
        assert (undone.mark.is_restart_due, undone.job_runs_on) == (True, False)
        assert (read_fence(str(job.control)), job.requested_stop()) == (None, None)
    job.beat(1, run_id="r2")
    assert roll_back(_run(job, target)).was_started_since


def test_a_job_that_has_not_stopped_runs_on(job: Job, target: UPath) -> None:
    """Its stop is withdrawn, and nothing is due: a second driver would write the same folder."""
    _stop(job, answered=False)
    undone = roll_back(_run(job, target))
    assert undone.job_runs_on
    assert undone.mark is not None
    assert not undone.mark.is_restart_due
    assert read_fence(str(job.control)) is None


def test_there_may_be_nothing_to_undo(job: Job, target: UPath) -> None:
    """The check failed, another run moves the job, or the run was rolled back and all is gone."""
    assert roll_back(_run(job, target)).mark is None
    assert not (job.control / "rolled-back.json").exists()
    begin_stop(str(job.control), new_fence("another", "elsewhere"))
    assert roll_back(_run(job, target)).mark is None
    fence = read_fence(str(job.control))
    assert fence is not None
    assert fence.request_id == "another"


def test_a_job_that_is_handed_over_is_left_alone(job: Job, target: UPath) -> None:
    """The error says what to do instead; the fence stands, and the hand-over may be retried."""
    _stop(job)
    run = _run(job, target)
    _hand_over(run)
    with pytest.raises(HandoverError, match="nothing was rolled back: the job was moved to the ta"):
        roll_back(run)
    _hand_over(run)
    lift_fence(str(job.control), RUN)
    with pytest.raises(
        HandoverError, match=r"may have started the target job\. .* delete .*\.json and clear"
    ):
        roll_back(run)


def test_without_a_control_location_the_claim_tells(job: Job, target: UPath) -> None:
    """A claim may have started a job; without one, a hand-over that comes later starts nothing."""
    run = _run(job, target, has_control=False)
    undone = roll_back(run)
    assert undone.mark is not None
    assert undone.mark.is_restart_due
    with pytest.raises(HandoverError, match=f"'{RUN}' was rolled back, since .*Clear stop_source"):
        _hand_over(run)
    assert not has_claimed(target, RUN)
    claim_target(target, "another")
    assert read_claim(target) == "another"


def test_a_claim_without_a_mark_is_taken_back(job: Job, target: UPath) -> None:
    """The hand-over died between the two: it has triggered nothing, and its retry triggers none."""
    _stop(job)
    run = _run(job, target)
    claim_target(target, RUN)
    roll_back(run)
    assert read_claim(target) is None
    with pytest.raises(StopError, match="no fence stands"):
        _hand_over(run)


def test_a_cleared_stop_begins_anew(job: Job, target: UPath) -> None:
    """The same run stops the job again, hands it over, and may not be rolled back any more."""
    _stop(job)
    run = _run(job, target)
    first = roll_back(run).mark
    job.beat(1, run_id="r2")
    _stop(job)
    again = roll_back(run).mark
    assert first is not None
    assert again is not None
    assert first.at < again.at or first != again
    job.beat(1, run_id="r3")
    _stop(job)
    _hand_over(run)
    with pytest.raises(HandoverError, match="nothing was rolled back"):
        roll_back(run)


def test_a_lost_target_holds_up_no_way_back(
    job: Job, target: UPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fence decides where there is one; the claim that may stand is named."""
    _stop(job)
    _fail_below(monkeypatch, str(target.parent))
    undone = roll_back(_run(job, target))
    assert read_fence(str(job.control)) is None
    assert "may stand" in undone.problems[0]
    with pytest.raises(StopError, match="out of reach"):
        roll_back(_run(job, target, has_control=False))


def test_a_plan_is_set_aside(tmp_path: Path) -> None:
    """A new stop gets a new plan, and the auditor finds the old one."""
    plan = UPath(tmp_path / "plans" / "run.json")
    assert set_plan_aside(plan) is None
    plan.parent.mkdir()
    for content in (b"{}", b"\xff{}"):  # a damaged one holds up no way back
        plan.write_bytes(content)
        aside = set_plan_aside(plan)
        assert aside is not None
        assert (aside.read_bytes(), plan.exists()) == (content, False)


def test_each_plan_is_set_aside_under_its_own_name(tmp_path: Path) -> None:
    """What an earlier roll-back has set aside stays; one that was cut off writes it once."""
    plan = UPath(tmp_path / "run.json")
    for text in ("1", "2", "2", "3"):
        plan.write_text(text)
        set_plan_aside(plan)
    names = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert names == {
        "run.json.rolled-back": "1",
        "run.json.rolled-back-2": "2",
        "run.json.rolled-back-3": "3",
    }


def test_a_hand_over_past_a_lost_fence_is_not_rolled_back(job: Job, target: UPath) -> None:
    """The fence could not be marked then; its storage is back, and the claim tells."""
    _stop(job)
    claim_target(target, RUN)
    claim_target(target, RUN, has_fence=False)
    with pytest.raises(HandoverError, match=r"nothing was rolled back: .* could not be marked"):
        roll_back(_run(job, target))
    assert read_fence(str(job.control)) is not None
    assert has_claimed(target, RUN)


def _fail_below(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    real = storage.storage_errors

    @contextmanager
    def fail(location: UPath | str, error: type[Mm2OffsetsError]) -> Iterator[None]:
        with real(location, error):
            if str(location).startswith(folder):
                raise OSError("gone")
            yield

    monkeypatch.setattr(storage, "storage_errors", fail)


@pytest.mark.parametrize("first", ["over", "back"])
@pytest.mark.parametrize("has_control", [True, False])
def test_never_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, *, has_control: bool
) -> None:
    """Hand-over and roll-back, cut into each other at every fourth access: one wins at most.

    Repeated afterwards, each in either order, they still agree; and where the roll-back has won, no
    fence holds up the source job.
    """
    second = "back" if first == "over" else "over"
    outcomes = set()
    job = Job(tmp_path / "job", 4)
    if has_control:
        _stop(job)
    for i in range(32):
        for j in range(i % 4, 48, 4):
            run = _in_memory(job, f"{tmp_path}/{i}-{j}", has_control=has_control)
            steps: dict[str, Callable[[], object]] = {
                "over": lambda run=run: _hand_over(run),  # type: ignore[misc]
                "back": lambda run=run: roll_back(run),  # type: ignore[misc]
            }
            schedule = [(first, i), (second, j), (first, ALL), (second, ALL)]
            ends = race(monkeypatch, schedule, steps)
            triggered, rolled_back = ends["over"] is None, ends["back"] is None
            assert not (triggered and rolled_back), schedule
            fence = run.fence()
            if rolled_back:
                assert fence is None, schedule
            if triggered and has_control:
                assert fence is not None, schedule
                assert fence.state is FenceState.MOVED
            for name in (("over", "back"), ("back", "over"))[(i + j) % 2]:
                try:
                    steps[name]()
                except Mm2OffsetsError:
                    continue
                triggered, rolled_back = triggered or name == "over", rolled_back or name == "back"
            assert not (triggered and rolled_back), (schedule, "repeated")
            outcomes.add((triggered, rolled_back))
    assert {(True, False), (False, True)} <= outcomes


@pytest.mark.parametrize("has_control", [True, False])
def test_a_roll_back_that_is_cut_off_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_control: bool
) -> None:
    """Killed after any storage access and run again, it ends as if it was never killed."""
    job = Job(tmp_path / "job", 4)
    if has_control:
        _stop(job)
    for i in range(40):
        run = _in_memory(job, f"{tmp_path}/{i}", has_control=has_control)
        with monkeypatch.context() as patch:
            _die_after(patch, i)
            with suppress(Killed):
                roll_back(run)
        undone = roll_back(run)
        assert undone.mark is not None, i
        assert (undone.mark.is_decided, undone.mark.is_restart_due) == (True, True), i
        assert run.fence() is None, i
        if run.control is not None:
            assert is_withdrawn(run.control)
        with pytest.raises(Mm2OffsetsError):
            _hand_over(run)


def _die_after(patch: pytest.MonkeyPatch, accesses: int) -> None:
    left = [accesses]
    real = storage.storage_errors

    @contextmanager
    def count(location: UPath | str, error: type[Mm2OffsetsError]) -> Iterator[None]:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        with real(location, error):
            yield

    patch.setattr(storage, "storage_errors", count)
