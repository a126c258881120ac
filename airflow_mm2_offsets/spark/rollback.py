"""Takes a failover back before its point of no return: fence, stop request and claim of one run.

``operators.rollback`` calls it. ``rollback_mark`` says how it excludes a hand-over that runs at the
same moment. Each step may be repeated: a roll-back that was cut off goes on where it was.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

from upath import UPath

from airflow_mm2_offsets.errors import HandoverError, PlanError, StopError
from airflow_mm2_offsets.locations import set_aside_name
from airflow_mm2_offsets.spark.claim import claim_file, drop_claim, has_claimed
from airflow_mm2_offsets.spark.control import read_driver
from airflow_mm2_offsets.spark.fence import Fence, FenceState, read_fence
from airflow_mm2_offsets.spark.fence_hold import drop_hold, find_hold
from airflow_mm2_offsets.spark.rollback_mark import (
    RollbackMark,
    mark_path,
    new_mark,
    read_mark,
    write_mark,
)
from airflow_mm2_offsets.spark.stopping import Withdrawal, forget_stop, withdraw_request
from airflow_mm2_offsets.storage import open_location, read_bytes, remove_file, write_bytes

_TIES = 3
"""How often a roll-back looks again at a hand-over that gives way at the same moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverRun:
    """The run to roll back, and where its files are."""

    request_id: str
    control: UPath | None
    """The source job's control location; None: it has none, or its storage is lost."""
    target_checkpoint: UPath
    has_killed: bool = False
    """Whether the run has stopped a job without a control location, which was not started since."""

    @property
    def mark(self) -> UPath:
        """Where its mark lies."""
        return mark_path(self.control, self.target_checkpoint, self.request_id)

    def fence(self) -> Fence | None:
        """Return the run's own fence, if it stands."""
        fence = read_fence(self.control) if self.control is not None else None
        return fence if fence is not None and fence.request_id == self.request_id else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What a roll-back has done; a repeated one says the same."""

    mark: RollbackMark | None
    """None: there was nothing to take back."""
    job_runs_on: bool = False
    """Whether the stop was withdrawn before the job stopped."""
    was_started_since: bool = False
    """Whether a driver has run since the roll-back began: the job needs no restart."""
    problems: tuple[str, ...] = ()
    """What could not be tidied up, as sentences; the job itself is not held up by it."""


def roll_back(run: FailoverRun) -> Undone:
    """Withdraw a run's stop, lift its fence and drop its claim, unless its job is handed over.

    Raises:
        HandoverError: The job is handed over: its fence says moved, or its DAG run may exist.
        StopError: The control location can't be read or written.
    """
    mark = read_mark(run.mark, run.request_id)
    if mark is None and _is_nothing_to_undo(run):
        return Undone(mark=None)
    if mark is None or not mark.is_decided:
        mark = _decide(run, mark or new_mark(run.request_id))
    job_runs_on = False
    if run.control is not None:
        mark, job_runs_on = _withdraw(run, run.control, mark)
        # Another run may have taken the fence over; the hold that this run has left is in its way.
        drop_hold(run.control, run.request_id)
    return Undone(
        mark=mark,
        job_runs_on=job_runs_on,
        was_started_since=_was_started(run, mark),
        problems=_drop_claim(run),
    )


def set_plan_aside(plan_path: UPath) -> UPath | None:
    """Rename a kept file, so that a new stop gets a new plan and an auditor still finds the old.

    Each roll-back of a run has its own name: ``<name>.rolled-back``, then ``<name>.rolled-back-2``.

    Raises:
        PlanError: It can't be read or written.
    """
    plan_path = open_location(plan_path, PlanError)
    data = read_bytes(plan_path, PlanError)
    if data is None:
        return None
    aside = _free_name(plan_path, data)
    write_bytes(aside, data, PlanError)
    remove_file(plan_path, PlanError)
    return aside


def _free_name(plan_path: UPath, data: bytes) -> UPath:
    """Return the first name that is free, or holds the content since a try that was cut off."""
    for number in count(1):
        aside = set_aside_name(plan_path, number)
        if read_bytes(aside, PlanError) in {None, data}:
            return aside
    raise AssertionError  # pragma: no cover - the numbers don't end


def handed_over(run: FailoverRun) -> str | None:
    """Return why a target job may run by now, as a sentence; None if none can.

    With a control location the hand-over marks the fence before it triggers. So there a claim
    alone starts nothing, unless the fence is gone (a user may have lifted it afterwards), or the
    claim says that the fence could not be marked, because its storage was lost then.

    Raises:
        StopError: The control location can't be read.
        HandoverError: The claims can't be read.
    """
    fence = run.fence()
    if fence is not None:
        if fence.state is FenceState.MOVED:
            return str(fence)
        has_decided = _has_decided_alone(run)
        gone = f"the fence in {run.control} could not be marked, and "
    else:
        has_decided = has_claimed(run.target_checkpoint, run.request_id)
        gone = "" if run.control is None else f"no fence stands in {run.control}, and "
    if not has_decided:
        return None
    return (
        f"{gone}{run.request_id!r} has claimed {run.target_checkpoint}, so it may have started "
        f"the target job. If neither its DAG run nor a job on its platform exists, delete "
        f"{claim_file(run.target_checkpoint, run.request_id)} and clear this task"
    )


def check_not_handed_over(run: FailoverRun) -> None:
    """Raise where a run would stop a job once more that has left it and come back.

    Its fence was lifted since: the job has come home, or was started here by a user. This run would
    stop it, and start none, because its target job has begun before.

    Raises:
        HandoverError: The run has handed the job over, and its fence is gone.
        StopError: The control location can't be read.
    """
    target, request_id = run.target_checkpoint, run.request_id
    if run.fence() is not None or not has_claimed(target, request_id):
        return
    if not has_claimed(target, request_id, without_fence=True):
        raise HandoverError(
            f"{run.control}: {request_id!r} has handed the job over before, to {target}, and its "
            f"fence was lifted since, so the job may run here again: it was not asked to stop. "
            f"Start a new run of the failover; if this one has started no job, delete "
            f"{claim_file(target, request_id)} and clear this task"
        )


def _has_decided_alone(run: FailoverRun) -> bool:
    """Tell whether the claim handed the job over; a target that is lost holds up no way back."""
    try:
        return has_claimed(run.target_checkpoint, run.request_id, without_fence=True)
    except HandoverError as error:
        if not error.retryable:
            raise
        return False


def _is_nothing_to_undo(run: FailoverRun) -> bool:
    """Tell whether a run has left nothing: without a fence of its own it can't hand over."""
    if run.fence() is not None or (run.control is None and run.has_killed):
        return False
    if run.control is not None and find_hold(run.control, run.request_id) is not None:
        return False
    return not has_claimed(run.target_checkpoint, run.request_id)


def _decide(run: FailoverRun, mark: RollbackMark) -> RollbackMark:
    """Write the mark, and then look for a hand-over: it looks for the mark in the other order."""
    for _ in range(_TIES):
        if problem := handed_over(run):
            raise _refusal(problem)
        write_mark(run.mark, mark)
        if not handed_over(run):
            is_due = run.control is None and run.has_killed
            mark = replace(mark, is_decided=True, is_restart_due=is_due)
            write_mark(run.mark, mark)
            return mark
        # Without the mark the hand-over goes on, unless it has seen the mark.
        remove_file(run.mark, StopError)
    raise _refusal(handed_over(run) or "the hand-over runs at this moment")


def _refusal(problem: str) -> HandoverError:
    return HandoverError(
        f"nothing was rolled back: {problem}. The point of no return has passed: see whether the "
        f"target job runs. If it does, let the failover finish (clear wait_started), or go home by "
        f"a run with mode failback. If it must not run, end its DAG run, then lift the fence "
        f"(`airflow-mm2-offsets fence lift`) and start the job on the source"
    )


def _withdraw(run: FailoverRun, control: UPath, mark: RollbackMark) -> tuple[RollbackMark, bool]:
    """Withdraw the stop and lift the fence, and note first whether the job has stopped."""
    has_fence = run.fence() is not None
    withdrawal = withdraw_request(control, run.request_id)
    if withdrawal is Withdrawal.WITHDRAWN:
        return mark, has_fence
    if run.fence() is not None:
        if not mark.is_restart_due:
            mark = replace(mark, is_restart_due=True, driver=_driver(control))
            write_mark(run.mark, mark)
        forget_stop(control, run.request_id)
        # A hand-over that is about to give way may have written the fence once more.
        _retry_while(lambda: run.fence() is not None, lambda: forget_stop(control, run.request_id))
    return mark, False


def _retry_while(condition: Callable[[], bool], action: Callable[[], object]) -> None:
    for _ in range(_TIES):
        if not condition():
            return
        action()


def _drop_claim(run: FailoverRun) -> tuple[str, ...]:
    """Drop the claim; where a fence decided, the target may be the very thing that is lost."""
    try:
        drop_claim(run.target_checkpoint, run.request_id)
    except HandoverError as error:
        if run.control is None:
            raise
        return (f"the claim on {run.target_checkpoint} may stand: {error}",)
    return ()


def _driver(control: UPath) -> str | None:
    driver = read_driver(control)
    return driver.run_id if driver else None


def _was_started(run: FailoverRun, mark: RollbackMark) -> bool:
    if not mark.is_restart_due:
        return False
    if run.control is None:
        return not run.has_killed
    return _driver(run.control) != mark.driver
