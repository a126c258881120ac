"""Answers a stop in the place of a driver that is gone, or has answered an earlier stop.

The stop operator calls it when the stop is proved.
"""

from typing import Any

from upath import UPath

from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.locations import folder_id
from airflow_mm2_offsets.spark.control import (
    Driver,
    StopProof,
    read_driver,
    read_last_acknowledgement,
)
from airflow_mm2_offsets.spark.control_files import read_object, write_object
from airflow_mm2_offsets.spark.stopping import check_not_withdrawn, read_requests
from airflow_mm2_offsets.storage import open_location


def close_request(
    location: UPath | str, request_id: str, proof: StopProof, *, checkpoint: UPath | None = None
) -> None:
    """Write the answer to a stop, or keep the answer that the driver has written.

    The hand-over compares ``checkpoint``, which was proved to be the job's.

    Raises:
        StopError: The stop was withdrawn, another stop was requested since, another driver has
            begun since the answer, the location can't be written, or no job has ever run with it.
    """
    root = open_location(location, StopError)
    check_not_withdrawn(root, request_id)
    last_request, _ = read_requests(root)
    if last_request not in {None, request_id}:
        # The other stop's answer would be overwritten, and it would stop the job again.
        raise StopError(
            f"{root}: {last_request!r} was requested since, so {request_id!r} stays open"
        )
    driver = read_driver(root)
    if driver is None:
        raise StopError(f"{root}: no job has ever run with this control location; is it right?")
    last = read_last_acknowledgement(root)
    if last is not None and last.answers(request_id, driver):
        answer = read_object(root / "stopped.json") or {}
    elif proof is StopProof.ACKNOWLEDGED:
        raise StopError(
            f"{root}: the driver {driver.application_id} has begun since {request_id!r} was "
            f"answered; clear the task to ask again"
        )
    else:
        answer = _answer_for(driver, proof)
    answer["request_id"] = request_id
    if checkpoint is not None:
        answer |= {"proved_control": folder_id(root), "proved_checkpoint": folder_id(checkpoint)}
    write_object(root / "stopped.json", answer)


def _answer_for(driver: Driver, proof: StopProof) -> dict[str, Any]:
    nothing = {"batch_id": None, "offsets": None, "clean": False, "error": None}
    queries = [{"query_id": query, "run_id": run} for query, run in driver.runs.items()]
    return {
        "application_id": driver.application_id,
        **nothing,
        "queries": [{**query, **nothing} for query in queries],
        "proof": proof,
        "heartbeat": driver.heartbeat,
    }
