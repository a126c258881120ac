"""What the files of a control location ask of the job that runs with it.

It comes along with ``mm2_stop_control.py``, and needs nothing but PySpark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .mm2_stop_jvm import HadoopFiles


class JobMovedError(RuntimeError):
    """The job was moved to another cluster: it must not run here any more."""


class AnotherDriverError(RuntimeError):
    """Another driver runs with this control location: two must never run one job."""


def another_driver_error(driver: dict[str, Any], location: str) -> AnotherDriverError:
    """Return the error for another driver's ``driver.json``: which one, and what to do."""
    return AnotherDriverError(
        f"The driver {driver.get('application_id')} on {driver.get('host')} (process "
        f"{driver.get('pid')}) runs with the control location {location}, so this driver ends. A "
        f"control location belongs to one job: end that driver first, or give this job another "
        f"location"
    )


def moved_error(fence: dict[str, Any], location: str) -> JobMovedError:
    """Return the error for a fence: which run moved the job, where to, and how to undo it."""
    run, deed = fence.get("request_id"), "was moved"
    if fence.get("state") == "stopping":
        deed = "was stopped to be moved"
    return JobMovedError(
        f"This job {deed} to {fence.get('moved_to') or 'another cluster'} by the run {run} at "
        f"{fence.get('at')}, and must not run here. To let it, stop the job there, and then: "
        f"airflow-mm2-offsets fence lift {location} --request-id '{run}'"
    )


def is_answered(files: HadoopFiles, fence: dict[str, Any], request_id: str | None = None) -> bool:
    """Tell whether this job counts as stopped: it was answered in its place, or moved already.

    Args:
        files: The control location's.
        fence: The one that stands there.
        request_id: The stop that the job carries out and has not answered yet, if any. Another run
            may have taken the fence over since it was answered.
    """
    answer = files.read("stopped.json") or {}
    unanswered = {fence.get("request_id"), request_id or fence.get("request_id")}
    return fence.get("state") == "moved" or answer.get("request_id") in unanswered


def open_request(files: HadoopFiles) -> str | None:
    """Return the stop that is asked for and not answered yet; None when there's none."""
    asked = [files.read(name) or {} for name in ("stop-request.json", "fence.json")]
    answer = files.read("stopped.json") or {}
    named = [each["request_id"] for each in asked if each.get("request_id") is not None]
    return next((each for each in named if each != answer.get("request_id")), None)


def is_wanted(files: HadoopFiles, request_id: str) -> bool:
    """Tell whether a stop still holds: it was not withdrawn. Taken over by another run, it does."""
    return files.read("fence.json") is not None or open_request(files) == request_id
