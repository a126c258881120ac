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
    Fence,
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
    running: frozenset[str] = frozenset({EAST})
    is_exclusive: bool = True

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What tells two worlds apart."""
        return _key(self.journal), self.fences, self.running

    def fence(self, home: str) -> Fence:
        """Return what the newest fence of a home says."""
        here = [each for each in self.fences if each.home == home]
        return max(here, key=lambda each: each.number).fence if here else Fence.OPEN


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
    fence: Fence

    def on(self, world: World) -> tuple[World, Any]:
        """Return the world afterwards, in which a job that the fence stops has ended."""
        fenced = replace(world, fences=world.fences | {self})
        if fenced.fence(self.home) is not Fence.OPEN:
            fenced = replace(fenced, running=fenced.running - {self.home})
        return fenced, None


class Start(NamedTuple):
    """Start the job at a home. Its driver starts unless a fence stands there."""

    home: str

    def on(self, world: World) -> tuple[World, Any]:
        """Return the world afterwards, and whether the driver has started."""
        if world.fence(self.home) is not Fence.OPEN:
            return world, False
        return replace(world, running=world.running | {self.home}), True


class Kill(NamedTuple):
    """End the job at a home, which obeys no fence."""

    home: str

    def on(self, world: World) -> tuple[World, Any]:
        """Return the world afterwards."""
        return replace(world, running=world.running - {self.home}), None


class Look(NamedTuple):
    """Look whether the job runs at a home."""

    home: str

    def on(self, world: World) -> tuple[World, Any]:
        """Return the world as it is, and the answer."""
        return world, self.home in world.running


Access = Record | Raise | Start | Kill | Look
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


def record(step: Step) -> Generator[Access, Any, Entry]:
    """Record a step in the journal, as ``Journal.record`` does."""
    steps = recording(step)
    asked = next(steps)
    while True:
        answer = yield Record(asked)
        try:
            asked = steps.send(answer)
        except StopIteration as end:
            entry: Entry = end.value
            return entry


def move(run: str, home: str, target: str, *, is_fenced: bool = True) -> Run:
    """Move the job, from the stop to its start at the target."""
    asked = Step(event=Event.ASK, run=run, home=home, target=target, is_fenced=is_fenced)
    entry = yield from record(asked)
    if is_fenced:
        yield Raise(entry.home, entry.number, fence_at(entry, entry.home))
    else:
        yield Kill(entry.home)
    if (yield Look(entry.home)):
        raise FailedError
    yield from record(Step(event=Event.PROVE, run=run))
    entry = yield from record(Step(event=Event.HAND_OVER, run=run))
    yield from _start(entry, home, is_fenced=is_fenced)


def roll_back(run: str, *, is_fenced: bool = True) -> Run:
    """Take a move back, and start the job where it was."""
    entry = yield from record(Step(event=Event.RETURN, run=run))
    if entry.state is State.STARTING:
        yield from _start(entry, entry.target or WEST, is_fenced=is_fenced)


def withdraw(run: str) -> Run:
    """Take a stop back that has no proof; the job runs on."""
    entry = yield from record(Step(event=Event.WITHDRAW, run=run))
    yield Raise(entry.home, entry.number, fence_at(entry, entry.home))


def _start(entry: Entry, other: str, *, is_fenced: bool) -> Run:
    if is_fenced:
        for home in (other, entry.home):
            yield Raise(home, entry.number, fence_at(entry, home))
    if not (yield Start(entry.home)):
        raise FailedError
    yield from record(Step(event=Event.ARRIVE, run=entry.run))


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
    """Let one run go on by itself to its end; return its error."""
    try:
        access = next(run)
        while True:
            world, answer = access.on(world)
            access = run.send(answer)
    except StopIteration:
        return world, None
    except (HandoverError, FailedError) as error:
        return world, error
