"""Two runs of one job in the same moment: every order of their accesses to the fence."""

import os
import re
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

import pytest

from airflow_mm2_offsets.errors import Mm2OffsetsError, StopError
from airflow_mm2_offsets.spark import (
    claim,
    control_files,
    fence,
    fence_file,
    fence_hold,
    rollback_mark,
)
from airflow_mm2_offsets.spark.fence import (
    Fence,
    FenceState,
    lift_fence,
    mark_moved,
    own_fence,
    raise_fence,
    read_fence,
)
from tests.unit.spark.turns import Turns

_AT = datetime(2026, 11, 21, 3, 15, tzinfo=UTC)
_SWITCHES = int(os.environ.get("FENCE_RACE_SWITCHES", "0"))
"""Changes between the runs before each goes on to its end; 100 tries all orders, in minutes."""
_ROOT: Any = PurePosixPath("/control")


def _fence(run: str) -> Fence:
    return Fence(request_id=run, moved_to=f"/{run}", at=_AT)


class _Storage:
    """What all stores promise: each of these operations is whole, and seen by all later ones."""

    def __init__(self) -> None:
        self.files: dict[PurePosixPath, str] = {}
        self.turns: Turns | None = None

    def read_text(self, path: PurePosixPath, _: object) -> str | None:
        self._access(lambda: self.files.get(path))
        return self.files.get(path)

    def write_text(self, path: PurePosixPath, text: str, _: object) -> None:
        self._access(lambda: None)
        self.files[path] = text

    def remove_file(self, path: PurePosixPath, _: object) -> None:
        self._access(lambda: None)
        self.files.pop(path, None)

    def list_directory(self, folder: PurePosixPath, _: object) -> dict[str, object]:
        self._access(lambda: (*self._names(folder),))
        return dict.fromkeys(self._names(folder))

    def _names(self, folder: PurePosixPath) -> list[str]:
        return sorted(path.name for path in self.files if path.parent == folder)

    def _access(self, look: Callable[[], Hashable]) -> None:
        if self.turns is not None:
            self.turns.access(look)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> _Storage:
    """Put it in place of the files of the fence: thousands of orders are tried."""
    store = _Storage()
    for module in (control_files, claim, fence, fence_hold, rollback_mark):
        for name in ("read_text", "write_text", "remove_file", "list_directory"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, getattr(store, name))
        if hasattr(module, "open_location"):
            monkeypatch.setattr(module, "open_location", lambda location, _: location)
    monkeypatch.setattr(fence_file, "folder_id", str)
    monkeypatch.setattr(fence, "same_folder", lambda one, other: str(one) == other)
    return store


@dataclass
class _World:
    """Who has handed the job over; and whose stop is void, since no fence stood for a moment."""

    store: _Storage
    fenced: set[str] = field(default_factory=lambda: {"A"})
    """Whose fence was raised: the job has stopped, and its positions are read."""
    moved: set[str] = field(default_factory=set)
    lifted: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin where run A has stopped the job."""
        self.store.files.clear()
        raise_fence(_ROOT, _fence("A"))

    def hand_over(self, run: str) -> None:
        """Do what the hand-over does; whoever starts the target job has come to the end."""
        own_fence(_ROOT, run)
        mark_moved(_ROOT, run, f"/{run}")
        assert run in self.fenced, f"{run}: a driver may have run since"
        self.moved.add(run)

    def lift(self, run: str) -> None:
        """Let the job run on the source again."""
        lift_fence(_ROOT, run)
        self.lifted.add(run)

    def take_over(self, run: str) -> None:
        """Take over what A has stopped, and hand it over; a retry does the same."""
        raise_fence(_ROOT, _fence(run), instead_of="A")
        self.fenced.add(run)
        self.hand_over(run)

    def check(self, place: object) -> None:
        """At most one has the job, and it is fenced for as long."""
        assert len(self.moved) <= 1, (place, self.moved)
        if _ROOT / "fence.json" not in self.store.files:
            assert not self.moved, place
            self.fenced.clear()


Runs = Callable[[_World], dict[str, Callable[[], None]]]

CASES: dict[str, Runs] = {
    "a hand-over and a take-over": lambda world: {
        "A": lambda: world.hand_over("A"),
        "B": lambda: world.take_over("B"),
    },
    "a lift and a take-over": lambda world: {
        "A": lambda: world.lift("A"),
        "B": lambda: world.take_over("B"),
    },
    "two take-overs": lambda world: {
        "B": lambda: world.take_over("B"),
        "C": lambda: world.take_over("C"),
    },
}


def _switches(order: tuple[str, ...]) -> int:
    return sum(one != other for one, other in pairwise(order))


def _orders(store: _Storage, runs_of: Runs) -> Iterator[tuple[_World, tuple[str, ...], str]]:
    """Yield each end: all orders of the accesses, and each run killed before each of its accesses.

    A run's next access depends on what it has seen. So two orders that lead to the same files,
    where each run has seen the same, go on alike, and one of them is followed.
    """
    known: set[Hashable] = set()
    todo: list[tuple[tuple[str, ...], str]] = [((), "")]
    while todo:
        order, killed = todo.pop()
        world = _World(store)
        runs = runs_of(world)
        store.turns = turns = Turns(runs)
        with turns:
            for name in order:
                turns.step(name)
                world.check(order)
            if killed:
                turns.kill(killed)
            while names := [name for name in runs if turns.is_running(name)]:
                if not killed:
                    seen = tuple(tuple(turns.seen[name]) for name in runs)
                    fenced = tuple(sorted(world.fenced))
                    state = (seen, fenced, tuple(sorted(store.files.items())))
                    if state in known:
                        break
                    known.add(state)
                    others = [(*order, name) for name in names[1:]]
                    todo += [(other, "") for other in others if _switches(other) <= _SWITCHES]
                    todo += [(order, name) for name in names]
                order = (*order, names[0])
                turns.step(names[0])
                world.check(order)
            else:
                yield world, order, killed


@pytest.mark.parametrize("case", CASES)
def test_two_runs_never_both_have_the_job(store: _Storage, case: str) -> None:
    """In every order, with a kill anywhere and retries in either order, at most one has it.

    And where none has it, the message names the command after which a new run moves the job.
    """
    winners = set[str]()
    for number, (world, order, killed) in enumerate(_orders(store, CASES[case])):
        winners |= world.moved | world.lifted
        runs = [*CASES[case](world).values()]
        for run in (runs if number % 2 else [*reversed(runs)]) * 2:
            with suppress(Mm2OffsetsError):
                run()
            world.check((order, killed, "retried"))
        if not world.moved:
            _go_on_as_told(world)
        standing = read_fence(_ROOT)
        assert standing is not None
        assert (standing.state, {standing.request_id}) == (FenceState.MOVED, world.moved), order
    assert winners == set(CASES[case](_World(store)))


def _go_on_as_told(world: _World) -> None:
    """Do what the messages say until a new run has moved the job."""
    told: str | None = None
    for _ in range(8):
        try:
            if told is not None:
                lift_fence(_ROOT, told)
            world.fenced.add("new")
            raise_fence(_ROOT, _fence("new"))
            world.hand_over("new")
        except StopError as error:
            command = re.search(r"fence lift \S+ --request-id '(\w+)'", str(error))
            told = command[1] if command else None
        else:
            return
    raise AssertionError("no way out")
