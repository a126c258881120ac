"""The fence of a home: what the journal says to the drivers there, as numbered files.

``<home>/control/fence/000012.json`` says what entry 12 of the job's journal means to a driver at
that home. The file with the highest number counts. None is ever changed or removed, so a run that
was paused, and writes its fence late, changes nothing: later numbers stand. The journal decides,
and the fences follow from it: whichever is missing is written again. docs/stop-protocol.md
describes the files, and ``job/stop/fences.py`` obeys them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from upath import UPath

from airflow_mm2_offsets.errors import HandoverError, StopError
from airflow_mm2_offsets.moves.journal import Entry, Event, FenceState, fence_at
from airflow_mm2_offsets.storage import list_directory, open_location, read_text, write_text

SCHEMA_VERSION: Final = 2
FOLDER: Final = "fence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """What drivers at one home obey."""

    number: int
    """Of the journal's entry."""
    home: str
    """The home's folder: in a copy of it the fence does not count."""
    state: FenceState
    request_id: str
    """The stop that a driver answers."""
    moved_to: str
    """Where the job goes, in words."""
    at: datetime
    journal: str
    """The folder of the job's journal."""
    starting_offsets: str | None = None
    """Where a job that was handed over to this home begins: Spark's JSON text. Each open fence of
    the home has it."""
    topics: str | None = None
    """The topics there, separated by commas."""

    def __str__(self) -> str:
        """Return a sentence for messages."""
        verbs = {
            FenceState.OPEN: "the job may run here",
            FenceState.STOPPING: f"the job is being stopped by {self.request_id!r}",
            FenceState.MOVED: f"the job was moved to {self.moved_to} by {self.request_id!r}",
        }
        return f"{verbs[self.state]}, since {self.at.isoformat(timespec='seconds')}"

    def to_text(self) -> str:
        """Return the content of its file."""
        values = {
            "schema_version": SCHEMA_VERSION,
            "number": self.number,
            "home": self.home,
            "state": self.state,
            "request_id": self.request_id,
            "moved_to": self.moved_to,
            "at": self.at.isoformat(),
            "journal": self.journal,
            "starting_offsets": self.starting_offsets,
            "topics": self.topics,
        }
        return json.dumps(values, indent=1)

    @classmethod
    def from_text(cls, text: str) -> "Fence":
        """Return the fence that a file holds.

        Raises:
            ValueError: It holds something else.
        """
        values = json.loads(text)
        try:
            return cls(
                number=int(values["number"]),
                home=str(values["home"]),
                state=FenceState(values["state"]),
                request_id=str(values["request_id"]),
                moved_to=str(values["moved_to"]),
                at=datetime.fromisoformat(values["at"]),
                journal=str(values["journal"]),
                starting_offsets=values["starting_offsets"],
                topics=values["topics"],
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"a field is missing or of another kind: {error}") from error


def derive_fences(entries: Sequence[Entry], journal: str) -> dict[str, Fence]:
    """Return the fence of each home that a journal tells of, by the home's folder.

    Homes that are closed come first: write them in this order.
    """
    fences: dict[str, Fence] = {}
    handed_over: dict[str, Entry] = {}
    for entry in entries:
        if entry.event is Event.HAND_OVER:
            handed_over[entry.home] = entry
        # A driver that is started at the target before the hand-over must not begin there.
        closed = entry.facts.get("closed", ()) if entry.event is Event.SETTLE else ()
        for home in dict.fromkeys([*fences, entry.home, *filter(None, [entry.target]), *closed]):
            state, before = fence_at(entry, home), fences.get(home)
            if before is None or state is not before.state or _begins(entry, home):
                start = handed_over.get(home) if state is FenceState.OPEN else None
                fences[home] = _fence(entry, home, state, journal, start.facts if start else {})
    return dict(sorted(fences.items(), key=lambda each: each[1].state is FenceState.OPEN))


def _begins(entry: Entry, home: str) -> bool:
    """Tell whether an entry asks for a stop at a home, or starts the job there."""
    return home == entry.home and entry.event in {Event.ASK, Event.HAND_OVER, Event.RETURN}


def _fence(
    entry: Entry, home: str, state: FenceState, journal: str, start: Mapping[str, Any]
) -> Fence:
    return Fence(
        number=entry.number,
        home=home,
        state=state,
        request_id=entry.request_id,
        moved_to=(entry.target if home == entry.home else entry.home) or "",
        at=entry.at,
        journal=journal,
        starting_offsets=start.get("starting_offsets"),
        topics=start.get("topics"),
    )


def read_fence(control: UPath) -> Fence | None:
    """Return the fence that counts in a control location; None if there is none: a job may run.

    Raises:
        StopError: The location can't be read, or the newest file is damaged.
    """
    if not (number := newest_number(control)):
        return None
    path = control / FOLDER / _name(number)
    text = read_text(path, StopError)
    try:
        return Fence.from_text(text or "")
    except ValueError as error:
        raise StopError(
            f"the fence is damaged, so no job starts here: {error}; write it again: "
            f"`airflow-mm2-offsets jobs fence`",
            file=str(path),
        ) from error


def raise_fence(control: UPath, fence: Fence) -> None:
    """Write a fence, unless it is there.

    Raises:
        HandoverError: A later one is there: the journal has lost entries.
        StopError: The location can't be read or written.
    """
    if (newest := newest_number(control)) > fence.number:
        raise HandoverError(
            f"there is the fence {newest}, and the journal {fence.journal} has come to "
            f"{fence.number}: another run has just gone on, or the journal was lost or replaced. "
            f"Try it again; if it stays so, restore the journal",
            file=str(control / FOLDER),
        )
    path, text = control / FOLDER / _name(fence.number), fence.to_text()
    if newest < fence.number or read_text(path, StopError) != text:
        write_text(path, text, StopError)


def newest_number(control: UPath) -> int:
    """Return the highest number of a fence; 0 if there is none.

    Raises:
        StopError: The location can't be read.
    """
    folder = open_location(control / FOLDER, StopError)
    return max(map(_number, list_directory(folder, StopError)), default=0)


def _name(number: int) -> str:
    return f"{number:06d}.json"


def _number(name: str) -> int:
    """Return the number of a fence's file; 0 for other files."""
    stem = name.removesuffix(".json")
    return int(stem) if stem != name and stem.isdecimal() else 0
