"""``fence.json`` and what it holds; ``fence`` has the rules of who may write it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core.times import parse_zoned
from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.locations import folder_id
from airflow_mm2_offsets.spark.control_files import field_of, read_object

FENCE_FILE = "fence.json"


class FenceState(StrEnum):
    """How far the run that raised a fence has come."""

    STOPPING = "stopping"
    """It is stopping the job, or has stopped it. It has not started the target job."""
    MOVED = "moved"
    """It has handed the job over: a job runs on the target, or is about to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Who moves a job away, where to and since when."""

    request_id: str
    """The stop that raised it: DAG id and run id."""
    moved_to: str
    """Where the job goes, in words: the target's folder or cluster."""
    at: datetime
    """When the stop was asked, with its zone."""
    state: FenceState = FenceState.STOPPING
    control: str | None = field(default=None, compare=False)
    """The control location that it was raised in, by ``folder_id``; a copy's differs."""
    plan: str | None = field(default=None, compare=False)
    """The file of the plan that the job was moved by: the way home begins with it."""

    def __str__(self) -> str:
        """Return a sentence for messages."""
        verb = "was moved" if self.state is FenceState.MOVED else "is being moved"
        destination = f" to {self.moved_to}" if self.moved_to else ""
        return f"the job {verb}{destination} by {self.request_id!r}, since {self.at.isoformat()}"


def read_fence_file(root: UPath) -> Fence | None:
    """Return what ``fence.json`` says, whoever holds the fence; None if there is no such file.

    Raises:
        StopError: The location can't be read, or the file is damaged.
    """
    values = read_object(root / FENCE_FILE)
    return None if values is None else parse_fence(values, root)


def parse_fence(values: Mapping[str, Any], root: UPath) -> Fence:
    """Return the fence that a file of a control location holds.

    Raises:
        StopError: The file is damaged.
    """
    at = parse_zoned(text := field_of(values, "at", str, root))
    state = field_of(values, "state", str, root)
    if at is None or state not in set(FenceState):
        raise StopError(f"{root / FENCE_FILE}: at is {text!r} and state {state!r}; is it damaged?")
    return Fence(
        request_id=field_of(values, "request_id", str, root),
        moved_to=field_of(values, "moved_to", str, root),
        at=at,
        state=FenceState(state),
        control=field_of(values, "control", str | None, root),
        plan=field_of(values, "plan", str | None, root),
    )


def fence_values(root: UPath, fence: Fence) -> dict[str, Any]:
    """Return what the file of a fence holds."""
    return {
        "request_id": fence.request_id,
        "moved_to": fence.moved_to,
        "at": fence.at.isoformat(),
        "state": fence.state,
        "control": folder_id(root),
        **({"plan": fence.plan} if fence.plan else {}),
    }
