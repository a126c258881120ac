"""The journal of a job: where it runs, who moves it, and what was decided; append-only.

Each entry is a file with the next number, ``records/<job>/000001.json``. It is created only if
there is none of that number (``storage.create_new``), so of two runs that decide at the same moment
one succeeds, and the other decides again by what it finds. An entry names the digest of the one
before it, so that none can be changed or taken away unseen.

A job is in one of four states. A run that has entered a state is its owner.

- ``home``: the job may run at its home. Nobody moves it.
- ``stopping``: the owner stops it.
- ``stopped``: it has stopped, with proof.
- ``starting``: it may be started at the entry's home, by the owner alone: the target's after a
  hand-over, its old one after a roll-back. From here on no other run may stop and start it.

========= ========= ======================= ======================= =======================
event     home      stopping                stopped                 starting
========= ========= ======================= ======================= =======================
ask       stopping  own: no change          own: no change          own: refused
                    other: stopping         other: stopped          other: stopping, if fenced
prove     refused   own: stopped            own: no change          refused
withdraw  no change own: home               refused                 refused
hand over refused   refused                 own: starting at target own: no change
return    no change own: starting at home   own: starting at home   own: no change
arrive    no change refused                 refused                 own: home
settle    home      home                    home                    home
========= ========= ======================= ======================= =======================

"Own" is what the run itself has entered. ``ask`` takes over what another run has left: where the
job has stopped, with that run's proof; where it may be starting, only if a fence keeps its driver
from starting. Whether that run has ended or not, it moves nothing any more. A run that has handed
the job over does not ask again: the job may have come back since. ``settle`` is a person's word for
where the job runs.
"""

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

from upath import UPath

from airflow_mm2_offsets.errors import HandoverError, LockedError
from airflow_mm2_offsets.storage import create_new, list_directory, open_location, read_bytes

SCHEMA_VERSION: Final = 1
_TRIES: Final = 20
"""How often a step decides again because another run was first; each time one of them goes on."""


class State(StrEnum):
    """Where a job is in its move; see the module."""

    HOME = "home"
    STOPPING = "stopping"
    STOPPED = "stopped"
    STARTING = "starting"


class Event(StrEnum):
    """What a run, or a person, does; see the module."""

    ASK = "ask"
    PROVE = "prove"
    WITHDRAW = "withdraw"
    HAND_OVER = "hand over"
    RETURN = "return"
    ARRIVE = "arrive"
    SETTLE = "settle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An event with what it is about."""

    event: Event
    run: str
    """Who: DAG id and run id, or a person's name for ``settle``."""
    home: str | None = None
    """Where the job runs, for ``ask`` and ``settle``; a location."""
    target: str | None = None
    """Where it is to run, for ``ask``; a location."""
    is_fenced: bool = False
    """For ``ask``: whether a job that another run starts obeys the fence of its home."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What was found or decided: the proof, the plan's path and digest, who has approved it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a journal."""

    number: int
    """From 1 on."""
    event: Event
    state: State
    run: str
    home: str
    """Where the job may run, or has run last."""
    target: str | None
    """Where the owner moves it to; None at home."""
    at: datetime
    facts: Mapping[str, Any]
    before: str
    """The digest of the entry before it; empty for the first."""

    def __str__(self) -> str:
        """Return a sentence for messages."""
        since = f"since {self.at.isoformat(timespec='seconds')}"
        match self.state:
            case State.HOME:
                return f"the job is at {self.home}, {since}"
            case State.STOPPING:
                return f"{self.run!r} stops the job at {self.home}, {since}"
            case State.STOPPED:
                return f"{self.run!r} has stopped the job at {self.home}, {since}"
            case State.STARTING:
                return f"{self.run!r} starts the job at {self.home}, {since}"

    def to_bytes(self) -> bytes:
        """Return the content of the entry's file."""
        values = {
            "schema_version": SCHEMA_VERSION,
            "event": self.event,
            "state": self.state,
            "run": self.run,
            "home": self.home,
            "target": self.target,
            "at": self.at.isoformat(),
            "facts": self.facts,
            "before": self.before,
        }
        return json.dumps(values, indent=1).encode()

    @classmethod
    def from_bytes(cls, number: int, data: bytes) -> "Entry":
        """Return the entry that a file holds.

        Raises:
            ValueError: It holds something else.
        """
        values = json.loads(data)
        if not isinstance(values, dict) or values.get("schema_version") != SCHEMA_VERSION:
            raise ValueError("it is no entry of this release")
        try:
            entry = cls(
                number=number,
                event=Event(values["event"]),
                state=State(values["state"]),
                run=str(values["run"]),
                home=str(values["home"]),
                target=None if values["target"] is None else str(values["target"]),
                at=datetime.fromisoformat(values["at"]),
                facts=dict(values["facts"]),
                before=str(values["before"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"a field is missing or of another kind: {error}") from error
        if entry.to_bytes() != data:
            raise ValueError("it was written by something else, or changed")
        return entry


def digest_of(entry: Entry | None) -> str:
    """Return the SHA-256 of an entry's file, in hex; empty without an entry."""
    return "" if entry is None else sha256(entry.to_bytes()).hexdigest()


_NEXT: Final = {
    (Event.PROVE, State.STOPPING): State.STOPPED,
    (Event.PROVE, State.STOPPED): State.STOPPED,
    (Event.WITHDRAW, State.HOME): State.HOME,
    (Event.WITHDRAW, State.STOPPING): State.HOME,
    (Event.HAND_OVER, State.STOPPED): State.STARTING,
    (Event.HAND_OVER, State.STARTING): State.STARTING,
    (Event.RETURN, State.HOME): State.HOME,
    (Event.RETURN, State.STOPPING): State.STARTING,
    (Event.RETURN, State.STOPPED): State.STARTING,
    (Event.RETURN, State.STARTING): State.STARTING,
    (Event.ARRIVE, State.HOME): State.HOME,
    (Event.ARRIVE, State.STARTING): State.HOME,
}
"""The table above, but for ``ask`` and ``settle``. Where the state stays, nothing changes."""


def decide(entries: Sequence[Entry], step: Step) -> Entry:
    """Return the entry that a step leads to: a new one, or the last if nothing changes.

    Raises:
        LockedError: Another run owns the job.
        HandoverError: The step is not possible in the job's state.
    """
    if step.event is Event.SETTLE:
        return _entry(entries, step, State.HOME, home=step.home)
    if step.event is Event.ASK:
        return _ask(entries, step)
    if not entries:
        raise HandoverError(f"the job's journal has no entry, so there is nothing to {step.event}")
    last = entries[-1]
    state = _NEXT.get((step.event, last.state))
    if state is not None and last.state is not State.HOME and last.run != step.run:
        raise LockedError(f"{last}, so {step.run!r} can't {step.event} it")
    # A job that was handed over does not return by the same run, nor the other way round.
    is_turned = state is State.STARTING is last.state and last.event is not step.event
    if state is None or is_turned:
        raise HandoverError(f"{last}, so {step.run!r} can't {step.event} it")
    if state is last.state:
        return last
    return _entry(entries, step, state, home=last.target if step.event is Event.HAND_OVER else None)


def _ask(entries: Sequence[Entry], step: Step) -> Entry:
    """Return the entry of a run that is to stop the job, or goes on."""
    last = entries[-1] if entries else None
    if any(each.run == step.run and each.event is Event.HAND_OVER for each in entries):
        raise HandoverError(f"{step.run!r} has handed the job over before; start a new run")
    if last is not None and step.home not in {None, last.home}:
        raise HandoverError(f"{last}, and not at {step.home}")
    if last is None or last.state is State.HOME:
        return _entry(entries, step, State.STOPPING, home=step.home)
    if last.state is State.STARTING:
        if not step.is_fenced or last.run == step.run:
            raise LockedError(f"{last}, and has not said that it runs there")
        return _entry(entries, step, State.STOPPING)
    return last if last.run == step.run else _entry(entries, step, last.state)


def _entry(entries: Sequence[Entry], step: Step, state: State, *, home: str | None = None) -> Entry:
    last = entries[-1] if entries else None
    home = home or (last.home if last else None)
    if home is None:
        raise HandoverError("the job's journal has no entry yet: say where the job runs")
    moves = state is not State.HOME
    return Entry(
        number=len(entries) + 1,
        event=step.event,
        state=state,
        run=step.run,
        home=home,
        target=(step.target or (last.target if last else None)) if moves else None,
        at=datetime.now(UTC),
        facts=step.facts,
        before=digest_of(last),
    )


class Fence(StrEnum):
    """What an entry says to the drivers of one home."""

    OPEN = "open"
    """The job may run here."""
    STOPPING = "stopping"
    """It is to stop, and must not start."""
    MOVED = "moved"
    """It runs elsewhere, and must not start."""


def fence_at(last: Entry, home: str) -> Fence:
    """Return what the last entry says to the drivers of a home."""
    if home != last.home:
        return Fence.MOVED
    return Fence.STOPPING if last.state in {State.STOPPING, State.STOPPED} else Fence.OPEN


def recording(step: Step) -> Generator[Entry | None, Any, Entry]:
    """Yield what is to be done to record a step; return the entry that holds.

    For None send the entries that there are; for an entry whether it could be created.

    Raises:
        LockedError: Another run owns the job, or was first each time.
        HandoverError: The step is not possible in the job's state.
    """
    for _ in range(_TRIES):
        entries = yield None
        entry = decide(entries, step)
        if (entries and entry is entries[-1]) or (yield entry):
            return entry
    raise LockedError(f"other runs were first {_TRIES} times; clear the task")


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal of one job, in its folder."""

    folder: UPath

    def entries(self) -> list[Entry]:
        """Return all entries, oldest first.

        Raises:
            HandoverError: The folder can't be read, or an entry is missing, changed or damaged.
        """
        folder = open_location(self.folder, HandoverError)
        found = sum(name.endswith(".json") for name in list_directory(folder, HandoverError))
        entries: list[Entry] = []
        for number in range(1, found + 1):
            entry = self._read(number)
            if entry.before != digest_of(entries[-1] if entries else None):
                raise HandoverError(
                    f"it does not follow the entry before it: one of the two was changed; put the "
                    f"entries back as they were, from a copy of {folder}",
                    file=str(self._path(number)),
                )
            entries.append(entry)
        return entries

    def record(self, step: Step) -> Entry:
        """Record a step, and return the last entry of the journal.

        Raises:
            LockedError: Another run owns the job, or was first each time.
            HandoverError: The step is not possible in the job's state, or the folder can't be read
                or written.
        """
        steps = recording(step)
        asked = next(steps)
        try:
            while True:
                answer = self.entries() if asked is None else self._create(asked)
                asked = steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return] # recording returns an Entry

    def _read(self, number: int) -> Entry:
        path = self._path(number)
        data = read_bytes(path, HandoverError)
        if data is None:
            raise HandoverError("the journal has later entries and not this one", file=str(path))
        try:
            return Entry.from_bytes(number, data)
        except ValueError as error:
            raise HandoverError(f"it is damaged: {error}", file=str(path)) from error

    def _create(self, entry: Entry) -> bool:
        return create_new(self._path(entry.number), entry.to_bytes(), HandoverError)

    def _path(self, number: int) -> UPath:
        return self.folder / f"{number:06d}.json"
