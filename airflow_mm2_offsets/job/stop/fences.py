"""``fence/``: the numbered files of a control location that say whether the job may run there.

The newest counts. A file is created once and never changed, so that each is read once.
``StopControl``, its lease and the note beside a checkpoint look at them; docs/stop-protocol.md
describes them.
"""

from __future__ import annotations

import logging
import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_mm2_offsets.job.files import HadoopFiles

log = logging.getLogger(__name__)

SCHEMA_VERSION = 2
"""Of each file that the job writes."""
FOLDER = "fence"
OPEN, STOPPING, MOVED = "open", "stopping", "moved"

_NAME = re.compile(r"(?P<number>[0-9]{6}|[1-9][0-9]{6,})\.json")
_OF_PROTOCOL_1 = "fence.json"


class JobMovedError(RuntimeError):
    """The job was moved to another cluster: it must not run here any more."""


@dataclass(frozen=True)
class Fence:
    """What one file says; the defaults are those of a home without any."""

    number: int = 0
    """The number of the journal's entry that it comes from."""
    state: str = OPEN
    """``open``: the job may run. ``stopping``: it is to stop. ``moved``: it runs elsewhere."""
    request_id: str | None = None
    """Names the stop. None in a file that is damaged."""
    moved_to: str | None = None
    """Where the job goes, in words."""
    at: str | None = None
    """ISO 8601 with its zone."""
    journal: str | None = None
    """Where the journal is."""
    starting_offsets: str | None = None
    """Where a job that was moved to this home starts: Spark's JSON text."""
    topics: str | None = None
    """The topics of this home's cluster, separated by commas."""

    @classmethod
    def from_values(cls, number: int, values: Mapping[str, Any]) -> Fence:
        """Return the fence that a file holds; fields that are not known are left out.

        Raises:
            ValueError: The file holds something else.
        """
        texts: dict[str, Any] = {name: values.get(name) for name in _TEXTS}
        for name, text in texts.items():
            if not isinstance(text, (str, type(None))):
                raise ValueError(f"{name} is not text")  # noqa: TRY004 - a damaged file
        if texts["state"] not in {OPEN, STOPPING, MOVED}:
            raise ValueError("its state is unknown")
        if texts["state"] == STOPPING and not texts["request_id"]:
            raise ValueError("a stop has no request_id")
        return cls(number=number, **texts)


_TEXTS = tuple(name for name in Fence.__dataclass_fields__ if name != "number")


class Fences:
    """The fences of one control location, as one driver obeys them.

    A driver belongs to the fence that it began under. If the job was moved away and has come back
    while the driver was paused, the newest fence is open, but for another driver.

    Args:
        files: The control location's.
        home: The job's home, for messages.
    """

    def __init__(self, files: HadoopFiles, home: str) -> None:
        """Look at nothing yet."""
        self._files = files
        self._home = home
        self._fences: dict[int, Fence] = {}
        self._start = 0
        """The number of the fence that the driver began under; 0: there was none."""
        self._looking = threading.Lock()

    def begin(self) -> None:
        """Look before a query is started: from now on this driver belongs to the newest fence.

        Raises:
            JobMovedError: The job must not run here.
            OSError: A fence is listed and can't be read.
            Py4JJavaError: The storage refuses.
        """
        with self._looking:
            self._start = max(self._numbers(), default=0)
            newest = self._read(self._start) if self._start else Fence()
        if newest.state != OPEN:
            raise self.moved_error(newest)
        if self._files.exists(_OF_PROTOCOL_1):
            raise JobMovedError(
                f"{self._files.location}/{_OF_PROTOCOL_1} is a fence of an earlier release, so "
                f"this job may have been moved away, and must not run here. Delete the file once "
                f"you have seen that the job does not run elsewhere"
            )

    def look(self) -> Fence:
        """Return the newest fence: ``open`` or ``stopping``.

        Raises:
            JobMovedError: The job was moved away after this driver began.
            OSError: A fence is listed and can't be read.
            Py4JJavaError: The storage refuses.
        """
        with self._looking:
            numbers = self._numbers()
            for fence in (self._read(number) for number in numbers if number > self._start):
                if fence.state == MOVED:
                    raise self.moved_error(fence, newest=self._read(numbers[-1]))
            return self._read(numbers[-1]) if numbers else Fence()

    def began_under(self) -> Fence:
        """Return the fence that this driver began under."""
        with self._looking:
            return self._read(self._start) if self._start else Fence()

    def moved_error(self, fence: Fence, newest: Fence | None = None) -> JobMovedError:
        """Return the error for a fence: which run moved the job, where to, and how to undo it.

        ``newest`` is the newest fence, if it may be another one.
        """
        path = self._path(fence.number)
        cause = _describe(fence) or f"may have been moved away, for {path} is damaged"
        if newest is not None and newest.state == OPEN:
            return JobMovedError(
                f"This job {cause}. It may run at {self._home} again, but not by this driver, "
                f"which began before and goes on from where the job was then: start another one"
            )
        command = f"jobs settle --journal {fence.journal or '<journal>'} --at {self._home}"
        return JobMovedError(
            f"This job {cause}, and must not run at {self._home}. To let it, stop the job at the "
            f"other home first, and then: airflow-mm2-offsets {command}"
        )

    def _numbers(self) -> list[int]:
        """Return all numbers in order; an outdated listing takes none back."""
        matches = (_NAME.fullmatch(name) for name in self._files.names_in(FOLDER))
        return sorted({int(match["number"]) for match in matches if match}.union(self._fences))

    def _read(self, number: int) -> Fence:
        if number not in self._fences:
            self._fences[number] = self._read_file(number)
        return self._fences[number]

    def _read_file(self, number: int) -> Fence:
        path = self._path(number)
        try:
            values = self._files.read(f"{FOLDER}/{number:06d}.json")
            if values is not None:
                return Fence.from_values(number, values)
        except ValueError as error:
            log.warning("%s is damaged, and counts as a fence: %s", path, error)
            return Fence(number=number, state=MOVED)
        raise OSError(f"{path} is listed, and can't be read")

    def _path(self, number: int) -> str:
        return f"{self._files.location}/{FOLDER}/{number:06d}.json"


def _describe(fence: Fence) -> str | None:
    """Return what a run has done with the job; None if the fence is damaged."""
    if fence.request_id is None and fence.moved_to is None:
        return None
    deed = "was stopped to be moved" if fence.state == STOPPING else "was moved"
    return f"{deed} to {fence.moved_to or 'another cluster'} by {fence.request_id} at {fence.at}"
