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

EAST, WEST, NORTH = "east", "west", "north"
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
Answers = tuple[tuple[Any, ...], tuple[object, ...]]
"""What a run was answered, and what tells it apart."""
NOTHING: Answers = ((), ())
Run = Generator[Access, Any, None]


def _key(answer: object) -> object:
    """Return what tells two answers apart; an entry's time does not."""
    if not isinstance(answer, tuple):
        return answer
    return tuple((each.event, each.state, each.run, each.home) for each in answer)


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

    def move(self) -> Run:
        """Move the job, from the stop to its start at the target."""
        entry = (yield from self._ask()).entry
        yield from self._stop(entry)
        if (yield Look(entry.home)):
            raise FailedError
        step = Step(event=Event.PROVE, run=self.run, move=entry.move)
        seen = (yield from record(step)).entry.number
        step = replace(step, event=Event.HAND_OVER, seen=seen, is_fenced=self.is_fenced)
        handed_over = (yield from record(step)).entry
        yield from self._start(handed_over, entry.home)

    def roll_back(self) -> Run:
        """Take the run's move back; start the job where it was, if it has stopped."""
        entries = yield Record(None)
        moves = [each for each in entries if each.run == self.run and each.event is Event.ASK]
        if not moves:
            return
        entry = moves[-1]
        step = Step(event=Event.PROVE, run=self.run, move=entry.move)
        if entries[-1].state is State.STOPPING:
            if (yield Look(entry.home)):
                yield from self._withdraw(entry)
                return
            yield from record(step)
        step = replace(step, event=Event.RETURN, is_fenced=self.is_fenced)
        yield from self._start((yield from record(step)).entry, entry.target or WEST)

    def withdraw(self) -> Run:
        """Take a stop back that has no proof; if the job stops after all, ask again."""
        entry = (yield from self._ask()).entry
        yield from self._stop(entry)
        yield from self._withdraw(entry)

    def _ask(self) -> Generator[Access, Any, Recorded]:
        return record(
            Step(
                event=Event.ASK,
                run=self.run,
                home=self.home,
                target=self.target,
                takes_over=self.takes_over,
            )
        )

    def _stop(self, entry: Entry) -> Run:
        if self.is_fenced:
            yield Raise(entry.home, entry.number, fence_at(entry, entry.home))
        else:
            yield Kill(entry.home)

    def _withdraw(self, entry: Entry) -> Run:
        step = Step(event=Event.WITHDRAW, run=self.run, move=entry.move)
        home = (yield from record(step)).entry
        yield Raise(home.home, home.number, fence_at(home, home.home))
        if not (yield Look(home.home)):
            entry = (yield from self._ask()).entry
            yield from self._stop(entry)

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


def drivers(*homes: str) -> Run:
    """Let drivers look at their fences, one after another."""
    for home in homes:
        yield Obey(home)


@dataclass
class Model:
    """Runs that start at any moment, and take turns in any order."""

    runs: tuple[Callable[[], Run], ...]
    world: World = World()
    _known: dict[object, Access | None] = field(default_factory=dict)

    def places(self) -> Iterator[World]:
        """Yield the world of each state that any interleaving leads to."""
        nothing: tuple[Answers, ...] = (NOTHING,) * len(self.runs)
        todo, seen = [(self.world, nothing)], set()
        while todo:
            world, answered = todo.pop()
            yield world
            for number, (answers, keys) in enumerate(answered):
                access = self._next(number, answers, keys)
                if access is None:
                    continue
                after, answer = access.on(world)
                own = ((*answers, answer), (*keys, _key(answer)))
                now = (*answered[:number], own, *answered[number + 1 :])
                key = after.key, tuple(each for _, each in now)
                if key not in seen:
                    seen.add(key)
                    todo.append((after, now))

    def drawn(self, draw: Random) -> Iterator[World]:
        """Yield the worlds of one interleaving, in which each run may be killed at any moment."""
        world, answers = self.world, dict.fromkeys(range(len(self.runs)), NOTHING)
        while answers:
            number = draw.choice([*answers])
            own, keys = answers[number]
            access = self._next(number, own, keys)
            if access is None or draw.random() < KILLED:
                del answers[number]
                continue
            world, answer = access.on(world)
            answers[number] = (*own, answer), (*keys, _key(answer))
            yield world

    def _next(self, number: int, answers: tuple[Any, ...], keys: object) -> Access | None:
        """Return the next access of a run that was answered so; None if it has ended."""
        if (number, keys) not in self._known:
            run = self.runs[number]()
            try:
                access = next(run)
                for answer in answers:
                    access = run.send(answer)
            except (StopIteration, HandoverError, FailedError):
                access = None
            self._known[number, keys] = access
        return self._known[number, keys]


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
