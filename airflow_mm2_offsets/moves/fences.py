"""The fence of a home: what the journal says to the drivers there, as numbered files.

``<home>/control/fence/000012.json`` says what entry 12 of the job's journal means to a driver at
that home. The file with the highest number counts. None is ever changed or removed, so a run that
was paused, and writes its fence late, changes nothing: later numbers stand. The journal decides,
and the fences follow from it: whichever is missing is written again. docs/stop-protocol.md
describes the files, and ``job/stop/fences.py`` obeys them.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from upath import UPath

from airflow_mm2_offsets.errors import LostEntriesError, StopError
from airflow_mm2_offsets.locations import location_key
from airflow_mm2_offsets.moves.journal import Entry, Event, FenceState, fence_at
from airflow_mm2_offsets.storage import list_directory, open_location, read_text, write_text

SCHEMA_VERSION: Final = 2
FOLDER: Final = "fence"
_NAME: Final = re.compile(r"(?P<number>[0-9]{6}|[1-9][0-9]{6,})\.json")
"""As the job has it (``job/stop/fences.py``): both must take the same file for the newest."""


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

    Homes that are closed come first: write them in this order. A folder that was spelled in several
    ways is one home, by its last spelling.
    """
    fences: dict[str, Fence] = {}
    spellings: dict[str, str] = {}
    starts: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        if entry.event in {Event.HAND_OVER, Event.SETTLE} and "starting_offsets" in entry.facts:
            starts[location_key(entry.home)] = entry.facts
        # A driver that is started at the target before the hand-over must not begin there.
        closed = entry.facts.get("closed", ()) if entry.event is Event.SETTLE else ()
        named = [*closed, *filter(None, [entry.target]), entry.home]
        spellings |= {location_key(home): home for home in named}
        for key in spellings:
            home, before = spellings[key], fences.get(key)
            state = fence_at(entry, home)
            if before is None or state is not before.state or _begins(entry, home):
                start = starts.get(key, {}) if state is FenceState.OPEN else {}
                fences[key] = _fence(entry, home, state, journal, start)
    in_order = sorted(fences.items(), key=lambda each: each[1].state is FenceState.OPEN)
    return {spellings[key]: fence for key, fence in in_order}


def _begins(entry: Entry, home: str) -> bool:
    """Tell whether an entry asks for a stop at a home, starts the job there, or settles all."""
    if entry.event is Event.SETTLE:
        return True
    is_own = location_key(home) == location_key(entry.home)
    return is_own and entry.event in {Event.ASK, Event.HAND_OVER, Event.RETURN}


def _fence(
    entry: Entry, home: str, state: FenceState, journal: str, start: Mapping[str, Any]
) -> Fence:
    return Fence(
        number=entry.number,
        home=home,
        state=state,
        request_id=entry.request_id,
        moved_to=(entry.home if state is FenceState.MOVED else entry.target) or "",
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
    number = newest_number(control)
    return _read(control, number) if number else None


def read_fences(control: UPath) -> list[Fence]:
    """Return all fences of a control location, the newest first; without those that are damaged.

    Raises:
        StopError: The location can't be read.
    """
    fences = []
    for number in sorted(_numbers(control), reverse=True):
        with suppress(ValueError):
            fences.append(Fence.from_text(_text(control, number)))
    return fences


def _read(control: UPath, number: int) -> Fence:
    try:
        return Fence.from_text(_text(control, number))
    except ValueError as error:
        raise StopError(
            f"the fence is damaged, so no job starts here: {error}; write it again: "
            f"`airflow-mm2-offsets jobs fence`",
            file=str(control / FOLDER / _name(number)),
        ) from error


def _text(control: UPath, number: int) -> str:
    return read_text(control / FOLDER / _name(number), StopError) or ""


def raise_fence(control: UPath, fence: Fence) -> None:
    """Write a fence, unless it is there.

    Raises:
        LostEntriesError: As of ``is_raised``.
        StopError: The location can't be read or written.
    """
    if not is_raised(control, fence):
        put_fence(control, fence)


def is_raised(control: UPath, fence: Fence) -> bool:
    """Tell whether a fence is there; a damaged one is to be written again.

    Raises:
        LostEntriesError: The newest fence is later, or comes from another entry of that number.
        StopError: The location can't be read.
    """
    newest = newest_number(control)
    is_other, is_there = newest > fence.number, False
    if newest == fence.number:
        with suppress(ValueError):
            found = replace(Fence.from_text(_text(control, newest)), journal=fence.journal)
            is_other, is_there = found != fence, True
    if is_other:
        raise LostEntriesError(
            f"there is the fence {newest}, and the journal {fence.journal} has come to "
            f"{fence.number} there: another run has just gone on, or the journal was lost or "
            f"replaced. Try it again; if it stays so, restore the journal, or say where the job "
            f"runs (`airflow-mm2-offsets jobs settle`)",
            file=str(control / FOLDER),
        )
    return is_there


def put_fence(control: UPath, fence: Fence) -> None:
    """Write the file of a fence, unless it is there.

    Raises:
        StopError: The location can't be read or written.
    """
    path, text = control / FOLDER / _name(fence.number), fence.to_text()
    if read_text(path, StopError) != text:
        write_text(path, text, StopError)


def newest_number(control: UPath) -> int:
    """Return the highest number of a fence; 0 if there is none.

    Raises:
        StopError: The location can't be read.
    """
    return max(_numbers(control), default=0)


def _numbers(control: UPath) -> set[int]:
    names = list_directory(open_location(control / FOLDER, StopError), StopError)
    return {int(match["number"]) for match in map(_NAME.fullmatch, names) if match}


def _name(number: int) -> str:
    return f"{number:06d}.json"
