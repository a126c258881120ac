"""The journal of a job: where it runs, who moves it, and what was decided; append-only.

Each entry is a file with the next number, ``records/<job>/000001.json``. It is created only if
there is none of that number (``storage.create_new``), so of two runs that decide at the same moment
one succeeds, and the other decides again by what it finds. An entry names the digest of the one
before it, so that no entry can be changed unseen.

A job is in one of four states:

- ``home``: it may run at its home. Nobody moves it.
- ``stopping``: a run stops it.
- ``stopped``: that run has proved that it has stopped.
- ``starting``: that run may start it: at the target after a hand-over, at its old home after a
  return.

========= ============== ================ ======================= =======================
event     home           stopping         stopped                 starting
========= ============== ================ ======================= =======================
ask       stopping       own: no change   own: no change          own: refused
                         other: stopping  other: stopping         other: stopping, fenced
prove     refused        own: stopped     own: stopped            refused
withdraw  own: no change own: home        refused                 refused
hand over refused        refused          own: starting at target own: no change
return    refused        refused          own: starting at home   own: no change
submit    refused        refused          refused                 own: starting
arrive    own: no change refused          refused                 own: home
note      own: no change own: stopping    own: stopped            own: starting
settle    home           home             home                    home
========= ============== ================ ======================= =======================

A *move* begins with an ``ask``, and has the number of that entry. What a run does afterwards names
its move, so that an attempt that was paused and goes on later changes nothing in the next move. A
step is the move's "own" if the last entry is of the same move, and for ``ask`` if it is of the same
run. Where the table gives only "own", others are refused.

- ``ask`` by another run takes the job over: the caller has seen that the run before has ended, and
  names it. A job that was only stopped, with no target, is anybody's. The stop is proved anew.
  Where a run may be starting the job, it is taken over only if the job obeys a fence there. A run
  that has handed a job over does not ask again: its job may have come back since. Nor does one
  whose move a person has ended by ``settle``.
- ``prove`` again, with other facts, is a new entry: what was decided by the facts before counts no
  more. So a ``hand over`` names the last entry that it was decided by, and is refused if the stop
  was proved anew since.
- ``submit`` comes before a start. A second try has an entry of its own: the caller sees the first.
- ``note`` adds facts: the plan, who approved it, what a task waits for.
- ``settle`` is a person's word for where the job runs. It names the last entry that the person has
  seen.
"""

import json
import re
from collections.abc import Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from itertools import count
from typing import Any, Final, NamedTuple

from upath import UPath

from airflow_mm2_offsets.errors import HandoverError, LockedError
from airflow_mm2_offsets.locations import location_key
from airflow_mm2_offsets.storage import create_new, list_directory, open_location, read_bytes

SCHEMA_VERSION: Final = 1
_TRIES: Final = 20
"""How often a step decides again because another run was first; each time one of them goes on."""
_NAME: Final = re.compile(r"\d{6}\.json")


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
    SUBMIT = "submit"
    ARRIVE = "arrive"
    NOTE = "note"
    SETTLE = "settle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An event with what it is about."""

    event: Event
    run: str
    """Who: DAG id and run id; a person's name for ``settle``."""
    move: int = 0
    """The number of the move that it belongs to; none for ``ask`` and ``settle``."""
    seen: int = 0
    """For ``hand over`` and ``settle``: the number of the last entry that they are decided by."""
    home: str | None = None
    """Where the job runs, for ``ask`` and ``settle``; a location."""
    target: str | None = None
    """Where it is to run, for ``ask``; a location. None: it is only stopped."""
    takes_over: str | None = None
    """The run that has ended and that ``ask`` may take the job over from."""
    first: int = 1
    """For ``settle``: the number that a journal without entries begins with."""
    is_fenced: bool = False
    """For ``hand over`` and ``return``: whether the job obeys a fence where it is started."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What was found or decided, as plain JSON: the proof, the plan, who has approved it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a journal."""

    number: int
    """From 1 on; a journal that takes the place of a lost one begins later."""
    event: Event
    state: State
    run: str
    move: int
    """The number of the ``ask`` that its move began with; 0 before the first."""
    home: str
    """Where the job may run, or has run last."""
    target: str | None
    """Where its run moves it to; None at home."""
    is_fenced: bool
    """Whether the job obeys a fence at its home; known where it is starting."""
    at: datetime
    facts: Mapping[str, Any]
    before: str
    """The digest of the entry before it; empty for the first."""
    digest: str = ""
    """The SHA-256 of its file, in hex."""

    def __str__(self) -> str:
        """Return a sentence for messages."""
        does = {
            State.HOME: "the job is at",
            State.STOPPING: f"{self.run!r} stops the job at",
            State.STOPPED: f"{self.run!r} has stopped the job at",
            State.STARTING: f"{self.run!r} starts the job at",
        }
        return f"{does[self.state]} {self.home}, since {self.at.isoformat(timespec='seconds')}"

    @property
    def request_id(self) -> str:
        """What the stop of its move is called: each has a name of its own."""
        return f"{self.run}#{self.move}"

    def to_bytes(self) -> bytes:
        """Return the content of the entry's file."""
        values = {
            "schema_version": SCHEMA_VERSION,
            "event": self.event,
            "state": self.state,
            "run": self.run,
            "move": self.move,
            "home": self.home,
            "target": self.target,
            "is_fenced": self.is_fenced,
            "at": self.at.isoformat(),
            "facts": self.facts,
            "before": self.before,
        }
        return json.dumps(values, indent=1).encode()

    @classmethod
    def from_bytes(cls, number: int, data: bytes) -> "Entry":
        """Return the entry that a file holds; fields that are not known are left out.

        Raises:
            ValueError: It holds something else.
        """
        values = json.loads(data)
        try:
            return cls(
                number=number,
                event=Event(values["event"]),
                state=State(values["state"]),
                run=str(values["run"]),
                move=int(values["move"]),
                home=str(values["home"]),
                target=None if values["target"] is None else str(values["target"]),
                is_fenced=values["is_fenced"] is True,
                at=datetime.fromisoformat(values["at"]),
                facts=dict(values["facts"]),
                before=str(values["before"]),
                digest=sha256(data).hexdigest(),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"a field is missing or of another kind: {error}") from error


_NEXT: Final = {
    (Event.PROVE, State.STOPPING): State.STOPPED,
    (Event.PROVE, State.STOPPED): State.STOPPED,
    (Event.WITHDRAW, State.HOME): State.HOME,
    (Event.WITHDRAW, State.STOPPING): State.HOME,
    (Event.HAND_OVER, State.STOPPED): State.STARTING,
    (Event.HAND_OVER, State.STARTING): State.STARTING,
    (Event.RETURN, State.STOPPED): State.STARTING,
    (Event.RETURN, State.STARTING): State.STARTING,
    (Event.SUBMIT, State.STARTING): State.STARTING,
    (Event.ARRIVE, State.HOME): State.HOME,
    (Event.ARRIVE, State.STARTING): State.HOME,
    (Event.NOTE, State.HOME): State.HOME,
    (Event.NOTE, State.STOPPING): State.STOPPING,
    (Event.NOTE, State.STOPPED): State.STOPPED,
    (Event.NOTE, State.STARTING): State.STARTING,
}
"""The table above, but for ``ask`` and ``settle``."""
_WITH_NEW_FACTS: Final = frozenset({Event.PROVE, Event.SUBMIT, Event.NOTE})
"""The events that are new entries each time that they have other facts."""


def decide(entries: Sequence[Entry], step: Step) -> Entry:
    """Return the entry that a step leads to: a new one, or the last if nothing changes.

    Raises:
        LockedError: The job is another run's.
        HandoverError: The step is not possible in the job's state.
    """
    if step.event is Event.SETTLE:
        return _settle(entries, step)
    if step.event is Event.ASK:
        return _ask(entries, step)
    last = entries[-1] if entries else None
    state = _NEXT.get((step.event, last.state)) if last else None
    if last is None or state is None:
        raise HandoverError(f"{last or 'the job has no journal'}: {step.run!r} can't {step.event}")
    if last.move != step.move:
        raise LockedError(f"{last}: {step.run!r} can't {step.event} by its move {step.move}")
    if state is last.state and not _adds(entries, step, last):
        return last
    if step.event is Event.HAND_OVER:
        _check_proof(entries, step)
    home = last.target if step.event is Event.HAND_OVER else last.home
    if home is None:
        raise HandoverError(f"{last}, and moves it nowhere: {step.run!r} can't {step.event}")
    return _entry(entries, step, state, home=home, move=step.move)


def _adds(entries: Sequence[Entry], step: Step, last: Entry) -> bool:
    """Tell whether a step that leaves the state as it is has anything new to say."""
    done = [each for each in entries if each.move == step.move and each.event is step.event]
    if step.event in _WITH_NEW_FACTS and last.state is not State.HOME:
        return not done or dict(done[-1].facts) != dict(step.facts)
    if not done and step.event is not Event.NOTE:
        raise HandoverError(f"{last}: {step.run!r} can't {step.event}")
    return False


def _check_proof(entries: Sequence[Entry], step: Step) -> None:
    """Refuse a hand-over that was decided by an earlier proof than the latest."""
    proofs = [each.number for each in entries if each.event is Event.PROVE]
    if max(proofs, default=0) > step.seen:
        raise HandoverError(
            f"{step.run!r} has proved the stop again while this step ran: clear the task that "
            f"translates, with all after it"
        )


def _settle(entries: Sequence[Entry], step: Step) -> Entry:
    number = entries[-1].number if entries else 0
    if step.seen != number:
        seen = f"you have seen entry {step.seen}, and the journal has come to {number}"
        raise HandoverError(f"{seen}: look at the job again")
    return _entry(entries, step, State.HOME, home=step.home, move=0)


def _refuse_ended_run(entries: Sequence[Entry], run: str) -> None:
    """Refuse a run that has handed the job over, or whose move a person has ended."""
    own = [each for each in entries if each.run == run]
    if any(each.event is Event.HAND_OVER for each in own):
        raise HandoverError(f"{run!r} has handed the job over before; start a new run")
    settled = [each for each in entries if each.event is Event.SETTLE]
    if own and settled and settled[-1].number > own[-1].number:
        raise LockedError(f"{settled[-1].run!r} has ended this run's move: start a new run")


def _is_same(home: str | None, others: AbstractSet[str | None]) -> bool:
    keys = {each and location_key(each) for each in others}
    return (home and location_key(home)) in keys


def _ask(entries: Sequence[Entry], step: Step) -> Entry:
    """Return the entry of a run that is to stop the job, or goes on."""
    _refuse_ended_run(entries, step.run)
    last = entries[-1] if entries else None
    if last is not None and not _is_same(step.home, {last.home, None}):
        raise HandoverError(f"{last}, and not at {step.home}")
    if step.target is not None and _is_same(step.target, {last.home if last else step.home}):
        raise HandoverError(f"the job is already at {step.target}")
    if last is not None and last.state is not State.HOME:
        if last.run == step.run:
            if last.state is State.STARTING:
                raise LockedError(f"{last}: clear the report of this run first")
            if not _is_same(step.target, {last.target}):
                raise HandoverError(f"{last}, to move it to {last.target} and not to {step.target}")
            return last
        is_only_stopped = last.state is State.STOPPED and last.target is None
        if last.run != step.takes_over and not is_only_stopped:
            raise LockedError(
                f"{last}: wait for that run, or end it. If it is gone, say where the job runs: "
                f"`airflow-mm2-offsets jobs settle`"
            )
        if last.state is State.STARTING and not last.is_fenced:
            raise LockedError(
                f"{last}, which no fence can stop; say where the job runs: `airflow-mm2-offsets "
                f"jobs settle`"
            )
    home = last.home if last else step.home
    return _entry(entries, step, State.STOPPING, home=home, move=None)


def _entry(
    entries: Sequence[Entry], step: Step, state: State, *, home: str | None, move: int | None
) -> Entry:
    """Return a new entry; one without a move begins one."""
    last = entries[-1] if entries else None
    if home is None:
        raise HandoverError("the job has no journal yet: say where it runs")
    if json.loads(json.dumps(step.facts)) != step.facts:
        raise ValueError(f"the facts of {step.event} are no plain JSON: {sorted(step.facts)}")
    number = last.number + 1 if last else step.first
    entry = Entry(
        number=number,
        event=step.event,
        state=state,
        run=step.run,
        move=number if move is None else move,
        home=home,
        target=None if state is State.HOME else step.target or (last.target if last else None),
        is_fenced=step.is_fenced or (last is not None and last.state is state and last.is_fenced),
        at=datetime.now(UTC),
        facts=step.facts,
        before=last.digest if last else "",
    )
    return replace(entry, digest=sha256(entry.to_bytes()).hexdigest())


class FenceState(StrEnum):
    """What an entry says to the drivers of one home."""

    OPEN = "open"
    """The job may run here."""
    STOPPING = "stopping"
    """It is to stop, and must not start."""
    MOVED = "moved"
    """It runs elsewhere, and must not start."""


def fence_at(last: Entry, home: str) -> FenceState:
    """Return what the last entry says to the drivers of a home."""
    if location_key(home) != location_key(last.home):
        return FenceState.MOVED
    return FenceState.STOPPING if last.state in {State.STOPPING, State.STOPPED} else FenceState.OPEN


class Recorded(NamedTuple):
    """What a step has led to."""

    entries: tuple[Entry, ...]
    """The journal."""
    is_new: bool
    """Whether this call has added the last entry."""

    @property
    def entry(self) -> Entry:
        """The journal's last entry."""
        return self.entries[-1]


def recording(step: Step) -> Generator[Entry | None, Any, Recorded]:
    """Record a step without I/O: yield what is to be done, and be sent what came of it.

    For None the caller sends all entries, and for an entry whether it could be created.

    Raises:
        LockedError: The job is another run's, or other runs were first each time.
        HandoverError: The step is not possible in the job's state.
    """
    for _ in range(_TRIES):
        entries = yield None
        entry = decide(entries, step)
        if entries and entry is entries[-1]:
            return Recorded(tuple(entries), is_new=False)
        if (yield entry):
            return Recorded((*entries, entry), is_new=True)
    raise LockedError(f"an entry that can't be read keeps {step.run!r} from the next; try it again")


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
        listed = [
            int(name.removesuffix(".json"))
            for name in list_directory(folder, HandoverError)
            if _NAME.fullmatch(name)
        ]
        entries: list[Entry] = []
        for number in count(min(listed, default=1)):
            entry = self._read(number, max(listed, default=0))
            if entry is None:
                return entries
            if entry.before != (entries[-1].digest if entries else ""):
                raise HandoverError(
                    f"it does not follow the entry before it: one of the two was changed, or is "
                    f"gone; put the entries back as they were, from a copy of {folder}",
                    file=str(self._path(number)),
                )
            entries.append(entry)
        raise AssertionError("numbers never end")

    def record(self, step: Step) -> Recorded:
        """Record a step.

        Raises:
            LockedError: The job is another run's, or other runs were first each time.
            HandoverError: The step is not possible in the job's state, or the folder can't be read
                or written.
        """
        steps = recording(step)
        asked = next(steps)
        try:
            while True:
                answer = self.entries() if asked is None else self.create(asked)
                asked = steps.send(answer)
        except StopIteration as end:
            recorded: Recorded = end.value
            return recorded

    def _read(self, number: int, listed: int) -> Entry | None:
        """Return an entry; None after the last. A listing may be older than the last entry."""
        path = self._path(number)
        data = read_bytes(path, HandoverError)
        if data is None and number <= listed:
            raise HandoverError("the journal has later entries and not this one", file=str(path))
        if data is None:
            return None
        try:
            return Entry.from_bytes(number, data)
        except ValueError as error:
            raise HandoverError(f"it is damaged: {error}", file=str(path)) from error

    def create(self, entry: Entry) -> bool:
        """Add an entry; False if another run has added one of its number first.

        Raises:
            HandoverError: The folder can't be written.
        """
        return create_new(self._path(entry.number), entry.to_bytes(), HandoverError)

    def _path(self, number: int) -> UPath:
        return self.folder / f"{number:06d}.json"
