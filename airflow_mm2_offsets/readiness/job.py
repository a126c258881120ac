"""Reads the job that is to be moved: its checkpoint, and its driver.

It reads storage in the caller's thread: Airflow's connections need it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from upath import UPath

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.core.readiness import ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.readiness.answers import failed, not_asked, ok, unknown, warning
from airflow_mm2_offsets.readiness.request import ReadinessRequest
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.cluster_notes import ClusterNotes, NotedIds, NotedServers
from airflow_mm2_offsets.spark.control import Driver, read_driver
from airflow_mm2_offsets.spark.lost_checkpoint import LostCheckpoint
from airflow_mm2_offsets.spark.saved_positions import is_lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the job's storage says of it."""

    checkpoint: Checkpoint | None
    """None if none is given or it can't be read."""
    driver: Driver | None
    substitute: Positions | None
    """The positions that stand in for a checkpoint: in a disaster, or where none is given."""
    notes: ClusterNotes
    """What says which cluster the positions are of."""
    checks: tuple[ReadinessCheck, ...]
    """What the reads themselves found."""
    is_lost: bool
    """Whether the job's storage may be gone, as in a disaster: that is no problem then."""


def read_job(request: ReadinessRequest) -> Job:
    """Read the job's checkpoint and its driver."""
    is_disaster = request.policy.source_may_be_lost
    checkpoint, driver = None, _driver(request)
    notes = _notes_of(request, driver)
    substitute = request.positions if request.checkpoint is None else None
    checks: list[ReadinessCheck] = []
    if request.checkpoint is None:
        value = "no checkpoint is given" if substitute is None else "the positions are given"
        checks.append(not_asked(CheckName.CHECKPOINT_READABLE, value))
    else:
        try:
            checkpoint = read_checkpoint(request.open(request.checkpoint))
            value = f"query {checkpoint.query_id} in {request.checkpoint}"
            checks.append(ok(CheckName.CHECKPOINT_READABLE, value))
            notes = _notes(request, request.checkpoint, checkpoint)
        except Mm2OffsetsError as error:
            check = failed(CheckName.CHECKPOINT_READABLE, str(error))
            if is_disaster:
                substitute, notes, check = _stand_in(request, error, driver)
            checks.append(check)
    return Job(
        checkpoint=checkpoint,
        driver=driver,
        substitute=substitute,
        notes=notes,
        checks=tuple(checks),
        is_lost=is_disaster,
    )


def _notes(request: ReadinessRequest, location: str, checkpoint: Checkpoint) -> ClusterNotes:
    try:
        control = _opened(request.open, request.control)
    except Mm2OffsetsError:  # ``job_folders`` reports it
        control = None
    try:
        return ClusterNotes.read(
            request.open(location), checkpoint, open_path=request.open, control=control
        )
    except Mm2OffsetsError:  # ``ids_unchanged`` reports a damaged note
        return ClusterNotes()


def _notes_of(request: ReadinessRequest, driver: Driver | None) -> ClusterNotes:
    """Return what a driver says, where no checkpoint can be read."""
    if driver is None or not driver.bootstrap_servers:
        return ClusterNotes()
    file = f"{request.control}/driver.json"
    return ClusterNotes(servers=(NotedServers(file, driver.bootstrap_servers),))


def _stand_in(
    request: ReadinessRequest, error: Mm2OffsetsError, driver: Driver | None
) -> tuple[Positions | None, ClusterNotes, ReadinessCheck]:
    """Return the positions that a disaster takes in place of a lost checkpoint."""
    notes = _notes_of(request, driver)
    name = CheckName.CHECKPOINT_READABLE
    try:
        location = _opened(request.open, request.checkpoint)
    except Mm2OffsetsError:
        location = None
    if is_lost(error, location) and not request.saved_positions and request.positions is None:
        step = "give saved_positions, or the positions themselves"
        return None, notes, unknown(name, str(error), step)
    try:
        substitute = LostCheckpoint(
            error=error,
            location=location,
            saved_positions=_opened(request.open, request.saved_positions),
            positions=request.positions,
            driver=driver,
        ).find_substitute()
    except Mm2OffsetsError as unusable:
        return None, notes, failed(name, str(unusable))
    since = f" of {substitute.as_of}" if substitute.as_of else ""
    value = f"{error}; the {substitute.origin} positions{since} stand in for it"
    step = "what the job has processed since is read again"
    if substitute.saved is not None:
        saved = NotedIds(str(request.saved_positions), substitute.saved.clusters.source)
        notes = replace(notes, ids=(saved,))
    return substitute.positions, notes, warning(name, value, step)


def _opened(open_path: Callable[[str], UPath], location: str | None) -> UPath | None:
    return open_path(location) if location else None


def _driver(request: ReadinessRequest) -> Driver | None:
    try:
        return read_driver(request.open(request.control)) if request.control else None
    except Mm2OffsetsError:  # ``job_folders`` reports it
        return None
