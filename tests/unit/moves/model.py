"""All interleavings of runs that move one job: each access to storage may come before any other.

A run is a generator that yields its accesses and gets their results. A state is the world and what
each run has been answered, so a run is copied by answering it again. Killing a run is a state in
which it takes no more turns, and a run that was paused and goes on later takes its turn later: so
both are among the interleavings.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any, NamedTuple

from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.moves.journal import (
    Entry,
    Event,
    FenceState,
    Recorded,
    State,
    Step,
    fence_at,
    recording,
)

EAST, WEST, NORTH, SOUTH = HOMES = ("east", "west", "north", "south")
KILLED = 0.02
"""How likely a run is killed before an access, in interleavings that are drawn."""


@dataclass(frozen=True)
class World:
    """What lies on storage, and what runs."""

    journal: tuple[Entry, ...] = ()
    fences: frozenset["Raise"] = frozenset()
    running: tuple[str, ...] = (EAST,)
    """The home of each driver that runs."""
    is_exclusive: bool = True

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What tells two worlds apart."""
        return _key(self.journal), self.fences, self.running

    def fence(self, home: str) -> FenceState:
        """Return what the newest fence of a home says."""
        here = [each for each in self.fences if each.home == home]
        newest = max(here, key=lambda each: (each.number, each.fence), default=None)
        return newest.fence if newest else FenceState.OPEN

    def problem(self) -> str | None:
        """Return what must never be: two jobs, or one that was moved from where it was before."""
        if len(self.running) > 1:
            return f"the job runs at {' and '.join(self.running)}"
        batch: object = None
        for entry in self.journal:
            if entry.event is Event.PROVE:
                batch = entry.facts.get("batch")
            if entry.event is Event.HAND_OVER and entry.facts.get("batch") != batch:
                return f"{entry.run} was handed over by {entry.facts}, and not by {batch}"
        return None

    def without(self, home: str) -> "World":
        """Return the world after the drivers at a home have ended."""
        return replace(self, running=tuple(each for each in self.running if each != home))

    def obeyed(self) -> "World":
        """Return the world after all drivers have obeyed the fences."""
        running = tuple(each for each in self.running if self.fence(each) is FenceState.OPEN)
        return replace(self, running=running)


class Record(NamedTuple):
    """Read the journal (None), or create an entry."""

    entry: Entry | None

    def on(self, world: World) -> tuple[World, Any]:
        """Return the world afterwards, and the answer."""
        if self.entry is None:
            return world, world.journal
        number = self.entry.number
        if number <= len(world.journal) and world.is_exclusive:
            return world, False
        return replace(world, journal=(*world.journal[: number - 1], self.entry)), True


class Raise(NamedTuple):
    """Write what an entry says to the drivers of a home, by the entry's number."""

    home: str
    number: int
    fence: FenceState

    def on(self, world: World) -> tuple[World, Any]:
        """Return the world afterwards; the drivers have not looked yet."""
        return replace(world, fences=world.fences | {self}), None


class Obey(NamedTuple):
    """The driver at a home looks at its fence, and ends if it must."""

    home: str

    def on(self, world: World) -> tuple[World, Any]:
        """Return the world afterwards."""
        return (
            world if world.fence(self.home) is FenceState.OPEN else world.without(self.home)
        ), None


class Start(NamedTuple):
    """Start the job at a home; one that obeys a fence looks for it, and for another driver."""

    home: str
    is_fenced: bool

    def on(self, world: World) -> tuple[World, Any]:
        """Return the world afterwards, and whether the driver has started."""
        is_refused = world.fence(self.home) is not FenceState.OPEN or self.home in world.running
        if self.is_fenced and is_refused:
            return world, False
        return replace(world, running=tuple(sorted((*world.running, self.home)))), True


class Kill(NamedTuple):
    """End the job at a home, which obeys no fence."""

    home: str

    def on(self, world: World) -> tuple[World, Any]:
        """Return the world afterwards."""
        return world.without(self.home), None


class Look(NamedTuple):
    """Look whether the job runs at a home."""

    home: str

    def on(self, world: World) -> tuple[World, Any]:
        """Return the world as it is, and the answer."""
        return world, self.home in world.running


Access = Record | Raise | Obey | Start | Kill | Look
Run = Generator[Access, Any, None]


def _key(answer: object) -> object:
    """Return what tells two answers apart; an entry's time does not."""
    if not isinstance(answer, tuple):
        return answer
    return tuple(
        (each.event, each.state, each.run, each.move, each.home, each.facts.get("batch"))
        for each in answer
    )


class FailedError(Exception):
    """A run ends with an error."""


def record(step: Step) -> Generator[Access, Any, Recorded]:
    """Record a step in the journal, as ``Journal.record`` does."""
    steps = recording(step)
    asked = next(steps)
    while True:
        answer = yield Record(asked)
        try:
            asked = steps.send(answer)
        except StopIteration as end:
            recorded: Recorded = end.value
            return recorded


@dataclass(frozen=True)
class Mover:
    """A run that moves the job, or takes its move back."""

    run: str
    home: str = EAST
    target: str = WEST
    is_fenced: bool = True
    takes_over: str | None = None
    batch: int = 1
    """Where it finds that the job has stopped."""

    def move(self) -> Run:
        """Move the job, from the stop to its start at the target."""
        entry = yield from self._ask()
        if (yield Look(entry.home)):
            raise FailedError
        facts = {"batch": self.batch}
        yield from record(Step(event=Event.PROVE, run=self.run, move=entry.move, facts=facts))
        yield from self.hand_over()

    def hand_over(self) -> Run:
        """Hand the job over by the proof that is there, and start it; a task of its own."""
        entries = yield Record(None)
        asked = self._own(entries)
        proofs = [
            each for each in entries if each.event is Event.PROVE and each.move == asked.number
        ]
        if not proofs or (yield Look(asked.home)):
            raise FailedError
        step = Step(
            event=Event.HAND_OVER,
            run=self.run,
            move=asked.number,
            seen=entries[-1].number,
            is_fenced=self.is_fenced,
            facts=proofs[-1].facts,
        )
        yield from self._start((yield from record(step)).entry, asked.home)

    def roll_back(self) -> Run:
        """Take the run's move back; start the job where it was, if it has stopped."""
        entries = yield Record(None)
        entry = self._own(entries)
        step = Step(event=Event.PROVE, run=self.run, move=entry.move, facts={"batch": self.batch})
        if entries[-1].state is State.STOPPING:
            if (yield Look(entry.home)):
                yield from self._withdraw(entry)
                return
            yield from record(step)
        step = replace(step, event=Event.RETURN, is_fenced=self.is_fenced)
        yield from self._start((yield from record(step)).entry, entry.target or WEST)

    def withdraw(self) -> Run:
        """Take a stop back that has no proof; if the job stops after all, ask again."""
        entry = yield from self._ask()
        yield from self._withdraw(entry)

    def _own(self, entries: tuple[Entry, ...]) -> Entry:
        """Return the entry that the run's latest move began with."""
        asked = [each for each in entries if each.run == self.run and each.event is Event.ASK]
        if not asked:
            raise FailedError
        return asked[-1]

    def _ask(self) -> Generator[Access, Any, Entry]:
        asked = Step(
            event=Event.ASK,
            run=self.run,
            home=self.home,
            target=self.target,
            takes_over=self.takes_over,
        )
        entries = (yield from record(asked)).entries
        entry = entries[-1]
        if self.is_fenced:
            # A kill may have left out a fence of an earlier move, too.
            for home in dict.fromkeys([entry.home, *(each.home for each in entries)]):
                yield Raise(home, entry.number, fence_at(entry, home))
        else:
            yield Kill(entry.home)
        return entry

    def _withdraw(self, entry: Entry) -> Run:
        step = Step(event=Event.WITHDRAW, run=self.run, move=entry.move)
        home = (yield from record(step)).entry
        yield Raise(home.home, home.number, fence_at(home, home.home))
        if not (yield Look(home.home)):
            yield from self._ask()

    def _start(self, entry: Entry, other: str) -> Run:
        if self.is_fenced:
            for home in (other, entry.home):
                yield Raise(home, entry.number, fence_at(entry, home))
        step = Step(event=Event.SUBMIT, run=self.run, move=entry.move)
        is_first = (yield from record(step)).is_new
        # A second attempt of a start that can't be repeated looks for the first one's job.
        if self.is_fenced or is_first:
            yield Start(entry.home, self.is_fenced)
        if not (yield Look(entry.home)):
            raise FailedError
        yield from record(replace(step, event=Event.ARRIVE))


def settle(home: str, *others: str) -> Run:
    """Let a person say that the job runs at a home, and start it there.

    The person looks at the other homes before, and once more when their fences are written.
    """
    entries = yield Record(None)
    for other in others:
        if (yield Look(other)):
            raise FailedError
    seen = entries[-1].number if entries else 0
    step = Step(event=Event.SETTLE, run="ada", home=home, seen=seen)
    entry = (yield from record(step)).entry
    for each in (*others, home):
        yield Raise(each, entry.number, fence_at(entry, each))
    for other in others:
        if (yield Look(other)):
            raise FailedError
    yield Start(home, is_fenced=True)


def drivers(*homes: str) -> Run:
    """Let drivers look at their fences, one after another."""
    for home in homes:
        yield Obey(home)


@dataclass
class Model:
    """Runs that start at any moment, and take turns in any order."""

    runs: tuple[Callable[[], Run], ...]
    world: World = World()
    _answered: list[tuple[Any, ...]] = field(default_factory=list)
    """What a run was answered, by the number of its place."""
    _next: list[Access | None] = field(default_factory=list)
    """What it does from there on; None if it has ended."""
    _after: dict[object, int] = field(default_factory=dict)
    """The place that an answer leads to."""

    def worlds(self) -> list[World]:
        """Return the different worlds that any interleaving leads to."""
        worlds, numbers = [self.world], {self.world.key: 0}
        start = 0, tuple(map(self._begin, range(len(self.runs))))
        todo, seen = [start], {start}
        turns: dict[tuple[int, int], tuple[int, int]] = {}
        while todo:
            world, places = todo.pop()
            for run, place in enumerate(places):
                if self._next[place] is None:
                    continue
                if (turn := turns.get((world, place))) is None:
                    after, answered = self._turn(run, place, worlds[world])
                    number = numbers.setdefault(after.key, len(worlds))
                    if number == len(worlds):
                        worlds.append(after)
                    turn = turns[world, place] = number, answered
                now = turn[0], (*places[:run], turn[1], *places[run + 1 :])
                if now not in seen:
                    seen.add(now)
                    todo.append(now)
        return worlds

    def drawn(self, draw: Random) -> Iterator[World]:
        """Yield the worlds of one interleaving, in which each run may be killed at any moment."""
        world, places = self.world, {run: self._begin(run) for run in range(len(self.runs))}
        while places:
            run = draw.choice([*places])
            if self._next[places[run]] is None or draw.random() < KILLED:
                del places[run]
                continue
            world, places[run] = self._turn(run, places[run], world)
            yield world

    def _begin(self, run: int) -> int:
        return self._place(run, -1, (), ())

    def _turn(self, run: int, place: int, world: World) -> tuple[World, int]:
        """Return the world after a run's next access, and the run's place then."""
        access = self._next[place]
        if access is None:
            raise AssertionError("a run that has ended takes no turn")
        after, answer = access.on(world)
        return after, self._place(run, place, _key(answer), (*self._answered[place], answer))

    def _place(self, run: int, before: int, key: object, answers: tuple[Any, ...]) -> int:
        """Return the number of a run's place; a new one if nothing has led there yet."""
        number = self._after.setdefault((run, before, key), len(self._next))
        if number == len(self._next):
            self._answered.append(answers)
            self._next.append(self._access(run, answers))
        return number

    def _access(self, number: int, answers: tuple[Any, ...]) -> Access | None:
        """Return the next access of a run that was answered so; None if it has ended."""
        run = self.runs[number]()
        try:
            access = next(run)
            for answer in answers:
                access = run.send(answer)
        except (StopIteration, HandoverError, FailedError):
            return None
        return access


def alone(world: World, run: Run) -> tuple[World, Exception | None]:
    """Let one run go on by itself to its end, with drivers that obey at once; return its error."""
    try:
        access = next(run)
        while True:
            world, answer = access.on(world.obeyed())
            access = run.send(answer)
    except StopIteration:
        return world.obeyed(), None
    except (HandoverError, FailedError) as error:
        return world, error
