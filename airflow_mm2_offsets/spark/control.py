"""Airflow's side of the stop control: three small JSON files beside a running Spark job.

The job's side is ``job/mm2_stop_control.py``, which says what each file holds.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.spark.control_files import field_of, read_object, write_object
from airflow_mm2_offsets.spark.offset_log import kafka_positions
from airflow_mm2_offsets.storage import open_location, storage_errors

REMEMBERED_REQUESTS = 100
"""How many answered requests a new one keeps in mind, so that none is ever asked again."""


class Proof(StrEnum):
    """What tells that a job has stopped, beside a checkpoint that stands still."""

    ACKNOWLEDGED = "acknowledged"
    """Its own word."""
    SILENT = "silent"
    """Its heartbeat has stood still for as long as the user said."""
    KILLED = "killed"
    """It was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A job that runs under stop control, or did.

    What has a default is unknown of a job that has an older release's ``mm2_stop_control.py``.
    """

    application_id: str
    query_id: str
    """Stays the same as long as the checkpoint does."""
    run_id: str
    """New each time the query is started."""
    host: str
    pid: int
    heartbeat: int
    """Counts up every few seconds while the driver lives; one that stands still is gone."""
    processes: Mapping[int, int] = field(default_factory=dict)
    """Its Python and its JVM by their ids, each with its start in clock ticks since boot."""
    kubernetes_driver: str | None = None
    """``namespace:pod`` of a driver in a pod of its own."""
    bootstrap_servers: frozenset[str] = frozenset()
    """The brokers that its Kafka sources were given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """A job's word that it has stopped, or what was put in its place."""

    request_id: str
    application_id: str
    batch_id: int | None
    """The last batch it committed; None when this run of the job committed none."""
    offsets: Positions | None
    """Where that batch ended: the next offset to read of each Kafka partition."""
    clean: bool
    """Whether it stopped between batches: none was left begun and uncommitted."""
    error: str | None
    """Why the query failed, if it did before it could be stopped."""
    proof: Proof = Proof.ACKNOWLEDGED


def request_stop(location: UPath | str, request_id: str) -> None:
    """Ask the job to stop. The same request never asks twice, whatever came of it.

    Args:
        location: The control location that the job was given.
        request_id: A name for this stop, the same when it is tried again.

    Raises:
        StopError: Another request is open, this one was asked and answered before a later one,
            no job has ever run with the location, or it can't be written.
    """
    root = open_location(location, StopError)
    with storage_errors(root, StopError):
        known = root.exists()
    if not known:
        raise StopError(f"{root}: no job has ever run with this control location; is it right?")
    asked, earlier = _requests(root)
    if asked == request_id:
        return
    if request_id in earlier:
        raise StopError(
            f"{root}: the stop {request_id!r} was asked and answered before {asked!r} was; ask "
            f"with a new id to stop the job that runs now"
        )
    if asked is not None:
        if read_acknowledgement(root, asked) is None:
            raise StopError(
                f"{root}: the stop {asked!r} is open, no job has acknowledged it yet; wait for "
                f"it, or delete {root / 'stop-request.json'} if nobody else does; a job that is "
                f"started with this location stops at once"
            )
        earlier = [*earlier, asked][-REMEMBERED_REQUESTS:]
    write_object(root / "stop-request.json", {"request_id": request_id, "earlier": earlier})


def close_request(location: UPath | str, request_id: str, proof: Proof) -> None:
    """Answer a stop in the place of a driver that is gone, so that it stops no later one.

    Raises:
        StopError: The location can't be written, or no job has ever run with it.
    """
    root = open_location(location, StopError)
    driver = read_driver(root)
    if driver is None:
        raise StopError(f"{root}: no job has ever run with this control location; is it right?")
    answer = {
        "request_id": request_id,
        "application_id": driver.application_id,
        "batch_id": None,
        "offsets": None,
        "clean": False,
        "error": None,
        "proof": proof,
    }
    write_object(root / "stopped.json", answer)


def read_acknowledgement(location: UPath | str, request_id: str) -> Acknowledgement | None:
    """Return the job's answer to ``request_id``, or None while there's none.

    Raises:
        StopError: The location can't be read, or holds something else.
    """
    root = open_location(location, StopError)
    answer = read_object(root / "stopped.json", may_be_empty=True)
    if answer is None or answer.get("request_id") != request_id:
        return None
    return Acknowledgement(
        request_id=request_id,
        application_id=field_of(answer, "application_id", str, root),
        batch_id=field_of(answer, "batch_id", int | None, root),
        offsets=_positions(answer, root),
        clean=field_of(answer, "clean", bool, root),
        error=field_of(answer, "error", str | None, root),
        proof=Proof(answer.get("proof", Proof.ACKNOWLEDGED)),
    )


def read_driver(location: UPath | str) -> Driver | None:
    """Return the job that last ran with this control location; None when none ever did.

    Raises:
        StopError: The location can't be read, or holds something else.
    """
    root = open_location(location, StopError)
    driver = read_object(root / "driver.json", may_be_empty=True)
    if driver is None:
        return None
    return Driver(
        application_id=field_of(driver, "application_id", str, root),
        query_id=field_of(driver, "query_id", str, root),
        run_id=field_of(driver, "run_id", str, root),
        host=field_of(driver, "host", str, root),
        pid=field_of(driver, "pid", int, root),
        heartbeat=field_of(driver, "heartbeat", int, root),
        processes=_processes(driver, root),
        kubernetes_driver=field_of(driver, "kubernetes_driver", str | None, root),
        bootstrap_servers=frozenset(field_of(driver, "bootstrap_servers", list | None, root) or ()),
    )


def _requests(root: UPath) -> tuple[str | None, list[str]]:
    """Return the id of the last request, and of those before it."""
    request = read_object(root / "stop-request.json", may_be_empty=True)
    if request is None:
        return None, []
    return field_of(request, "request_id", str, root), request.get("earlier", [])


def _processes(driver: dict[str, Any], root: UPath) -> dict[int, int]:
    given = field_of(driver, "processes", dict | None, root) or {}
    try:
        return {int(pid): int(start) for pid, start in given.items()}
    except (TypeError, ValueError) as error:
        raise StopError(f"{root}: processes is {given!r}; is it a control location?") from error


def _positions(answer: dict[str, Any], root: UPath) -> Positions | None:
    offsets = field_of(answer, "offsets", list | None, root)
    if offsets is None:
        return None
    return kafka_positions([json.dumps(offset) for offset in offsets], f"{root}/stopped.json")
