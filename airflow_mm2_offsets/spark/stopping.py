"""Asks a Spark job to stop, and withdraws the request: operators, triggers and CLI call it.

The fence is raised before the job is asked, and lifted after the request was withdrawn. So a step
that fails never leaves two jobs running.
"""

from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from upath import UPath

from airflow_mm2_offsets.errors import Mm2OffsetsError, StopError
from airflow_mm2_offsets.spark.control import (
    read_acknowledgement,
    read_driver,
    read_last_acknowledgement,
)
from airflow_mm2_offsets.spark.control_files import field_of, read_object, write_object
from airflow_mm2_offsets.spark.fence import (
    Fence,
    FenceState,
    lift_fence,
    own_fence,
    raise_fence,
    read_fence,
)
from airflow_mm2_offsets.spark.fence_hold import find_hold
from airflow_mm2_offsets.spark.rollback_mark import forget_mark, mark_path
from airflow_mm2_offsets.storage import open_location, remove_file, storage_errors

REMEMBERED_REQUESTS = 100
"""How many earlier request ids a new request keeps, so that no id is used twice."""


class Withdrawal(StrEnum):
    """The result of withdrawing a stop."""

    WITHDRAWN = "withdrawn"
    """Request and fence are removed: the job runs on."""
    STOPPED = "stopped"
    """Too late: the job has stopped, or is stopping. Its fence stands."""


def begin_stop(location: UPath | str, fence: Fence) -> Fence:
    """Raise a fence, ask the job to stop, and return the fence that stands.

    The same run never asks twice. Another run's fence is taken over if its stop was answered and
    the job was not moved.

    Raises:
        StopError: Another run moves the job, or has moved it; or see ``request_stop``.
    """
    root = _known_location(location)
    request = _next_request(root, fence.request_id)
    _forget_old_answer(root, fence.request_id)
    last = read_last_acknowledgement(root)
    # A run that was rolled back and begins again may hand over again.
    forget_mark(mark_path(root, root, fence.request_id), fence.request_id)
    try:
        standing = raise_fence(root, fence, instead_of=last.request_id if last else None)
        if request is not None:
            write_object(root / "stop-request.json", {**request, "is_of_failover": True})
    except StopError:
        # Either file may be there: a write that failed may have reached the storage.
        with suppress(Mm2OffsetsError):
            withdraw_request(root, fence.request_id)
        raise
    return standing


def request_stop(location: UPath | str, request_id: str) -> None:
    """Ask the job to stop, and raise no fence. The same request id never asks twice.

    Raises:
        StopError: Another request is open, this one was answered before a later one, no job has
            ever run with the location, or the location can't be written.
    """
    root = _known_location(location)
    request = _next_request(root, request_id)
    _forget_old_answer(root, request_id)
    if request is not None:
        write_object(root / "stop-request.json", request)


def keep_asking(location: UPath | str, request_id: str, interval: float) -> None:
    """Write that the stop step still waits for the answer: without this sign the job runs on.

    The next call comes after ``interval`` seconds.

    Raises:
        StopError: The location can't be written.
    """
    root = open_location(location, StopError)
    sign = {"request_id": request_id, "at": datetime.now(UTC).isoformat(), "interval": interval}
    write_object(root / "stop-heartbeat.json", sign)


def withdraw_request(location: UPath | str, request_id: str) -> Withdrawal:
    """Withdraw a stop without a proof: remove its open request and its fence.

    A job announces that it stops, then looks for the request once more, and only then ends a
    query. This removes the request and the fence, and then looks for the announcement. So one
    sees the other: the job runs on, or this finds it stopping and raises the fence again.

    Raises:
        StopError: The location can't be read or written.
    """
    root = open_location(location, StopError)
    fence = read_fence(root)
    own = fence if fence is not None and fence.request_id == request_id else None
    if (own is not None and own.state is FenceState.MOVED) or _has_stopped(root, request_id):
        return Withdrawal.STOPPED
    _clear_request(root, request_id)
    if own is not None:
        lift_fence(root, request_id)
    if not _has_stopped(root, request_id):
        return Withdrawal.WITHDRAWN
    if own is not None:
        raise_fence(root, own)
    return Withdrawal.STOPPED


def forget_stop(location: UPath | str, request_id: str) -> Fence:
    """Lift a fence and clear the request that came with it: a job may run here again.

    Raises:
        StopError: The run has neither fence nor hold here, another run holds the fence, or the
            location can't be written.
    """
    root = open_location(location, StopError)
    if find_hold(root, request_id) is None:
        own_fence(root, request_id)
    # The fence last: while it stands, a failed try can be repeated.
    _clear_request(root, request_id)
    return lift_fence(root, request_id)


def is_withdrawn(location: UPath | str) -> bool:
    """Tell whether the last request was withdrawn.

    Raises:
        StopError: The location can't be read, or holds something else.
    """
    root = open_location(location, StopError)
    request = read_object(root / "stop-request.json", may_be_empty=True)
    return request is not None and request.get("request_id") is None


def check_not_withdrawn(location: UPath | str, request_id: str) -> None:
    """Raise StopError where the last request was withdrawn, or the location can't be read."""
    if is_withdrawn(location):
        raise StopError(
            f"{location}: the stop {request_id!r} was withdrawn, so the job runs on; clear the "
            f"task to ask again"
        )


def _has_stopped(root: UPath, request_id: str) -> bool:
    """Tell whether the job carries out this stop, has answered it, or has ended before."""
    # The driver first: it announces a stop before the answer is written.
    driver, last = read_driver(root), read_last_acknowledgement(root)
    if driver is not None and driver.stopping == request_id:
        return True
    return last is not None and last.answers(request_id, driver)


def _known_location(location: UPath | str) -> UPath:
    root = open_location(location, StopError)
    with storage_errors(root, StopError):
        exists = root.exists()
    if not exists:
        raise StopError(f"{root}: no job has ever run with this control location; is it right?")
    return root


def _next_request(root: UPath, request_id: str) -> dict[str, Any] | None:
    """Return the request to write; None if it is the last one already."""
    last, earlier = read_requests(root)
    if last == request_id:
        return None
    if request_id in earlier:
        raise StopError(
            f"{root}: the stop {request_id!r} was requested and answered before {last!r}; use a "
            f"new id to stop the job that runs now"
        )
    if last is not None:
        if read_acknowledgement(root, last) is None:
            raise StopError(
                f"{root}: the stop {last!r} is open, no job has acknowledged it yet; wait for it, "
                f"or delete {root / 'stop-request.json'} if no other run waits for it; a job that "
                f"is started with this location stops at once"
            )
        earlier = [*earlier, last][-REMEMBERED_REQUESTS:]
    return {"request_id": request_id, "earlier": earlier}


def _forget_old_answer(root: UPath, request_id: str) -> None:
    """Remove the answer to an earlier stop of the same id, if another driver has run since."""
    answer, driver = read_acknowledgement(root, request_id), read_driver(root)
    if answer is not None and driver is not None and not answer.is_of(driver):
        remove_file(root / "stopped.json", StopError)


def _clear_request(root: UPath, request_id: str) -> None:
    last, earlier = read_requests(root)
    if last == request_id:
        write_object(root / "stop-request.json", {"request_id": None, "earlier": earlier})


def read_requests(root: UPath) -> tuple[str | None, list[str]]:
    """Return the id of the last request (None: withdrawn, or no request), and the earlier ids.

    Raises:
        StopError: The file can't be read, or holds something else.
    """
    request = read_object(root / "stop-request.json", may_be_empty=True)
    if request is None:
        return None, []
    earlier = field_of(request, "earlier", list | None, root) or []
    return field_of(request, "request_id", str | None, root), earlier
