"""The mark of a roll-back: a run that has written it hands its job over no more.

``rollback`` writes it; ``fence.mark_moved`` and ``claim.claim_target``, the two steps after which a
target job may be started, look for it. It lies in the job's control location, or beside the claims
of the target's checkpoint where the job has none.

Roll-back and hand-over may run at the same moment. Each first writes its own file and then reads
the other's, so at least one sees the other. A roll-back that sees the hand-over withdraws its mark
and refuses. A hand-over that sees the mark takes its file back and starts nothing.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from upath import UPath

from airflow_mm2_offsets.errors import HandoverError, StopError
from airflow_mm2_offsets.locations import beside
from airflow_mm2_offsets.spark.control_files import field_of, read_object, write_object
from airflow_mm2_offsets.storage import open_location, remove_file

STOP_TASK = "stop_source (cancel_source, where a platform cancels the job)"
"""The task that stops the job, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackMark:
    """That a run is being rolled back, or was."""

    request_id: str
    """The run: the stop that it raised the fence with."""
    at: str
    """ISO 8601, UTC. It tells one roll-back of a run from the next."""
    is_decided: bool = False
    """Whether no hand-over was seen; from then on a hand-over that comes must give way."""
    is_restart_due: bool = False
    """Whether the roll-back found the job stopped."""
    driver: str | None = None
    """The run id of the driver then: another one means that the job was started since."""


def new_mark(request_id: str) -> RollbackMark:
    """Return a mark as of now."""
    return RollbackMark(
        request_id=request_id, at=datetime.now(UTC).isoformat(timespec="milliseconds")
    )


def mark_path(control: UPath | None, target_checkpoint: UPath, request_id: str) -> UPath:
    """Return where a run's mark lies."""
    if control is not None:
        return control / "rolled-back.json"
    # Not ``.json``: that would be a claim.
    name = f"{sha256(request_id.encode()).hexdigest()[:32]}.rolled-back"
    return beside(target_checkpoint, "claims") / name


def read_mark(path: UPath, request_id: str) -> RollbackMark | None:
    """Return a run's mark; None if there is none, or another run's.

    Raises:
        StopError: It can't be read.
    """
    path = open_location(path, StopError)
    values = read_object(path, may_be_empty=True)
    if values is None or values.get("request_id") != request_id:
        return None
    return RollbackMark(
        request_id=request_id,
        at=field_of(values, "at", str, path),
        is_decided=field_of(values, "is_decided", bool, path),
        is_restart_due=field_of(values, "is_restart_due", bool, path),
        driver=field_of(values, "driver", str | None, path),
    )


def write_mark(path: UPath, mark: RollbackMark) -> None:
    """Write a run's mark.

    Raises:
        StopError: It can't be written.
    """
    write_object(
        path,
        {
            "request_id": mark.request_id,
            "at": mark.at,
            "is_decided": mark.is_decided,
            "is_restart_due": mark.is_restart_due,
            "driver": mark.driver,
        },
    )


def forget_mark(path: UPath, request_id: str) -> None:
    """Remove a run's mark, if it has one: the run stops the job anew.

    Raises:
        StopError: It can't be read or removed.
    """
    if read_mark(path, request_id) is not None:
        remove_file(path, StopError)


def rolled_back_error(place: UPath, mark: RollbackMark) -> HandoverError:
    """Return the error of a hand-over that has found its run's mark."""
    verb = "was rolled back" if mark.is_decided else "is being rolled back"
    return HandoverError(
        f"{place}: {mark.request_id!r} {verb}, since {mark.at}: nothing was started on the target. "
        f"Clear {STOP_TASK} with all after it, or start a new run of the failover"
    )
