"""Lets runs in threads do their storage accesses one at a time, in an order that a test gives."""

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Self

import pytest
from upath import UPath

from airflow_mm2_offsets import storage
from airflow_mm2_offsets.errors import Mm2OffsetsError

ALL = 10_000


class Killed(BaseException):
    """A run was killed: no code of it goes on."""


class Turns:
    """Runs that each wait before every storage access until ``step`` lets them do it."""

    def __init__(self, runs: Mapping[str, Callable[[], object]]) -> None:
        """Let each come to its first access once the block begins."""
        self.ends: dict[str, Exception | None] = {}
        self.seen: dict[str, list[Hashable]] = {name: [] for name in runs}
        self._killed: set[str] = set()
        self._go = {name: threading.Semaphore(0) for name in runs}
        self._waits = {name: threading.Semaphore(0) for name in runs}
        self._threads = {
            name: threading.Thread(target=self._work, args=(name, run), name=name)
            for name, run in runs.items()
        }

    def step(self, name: str) -> bool:
        """Let a run do one access; False if it has ended."""
        if not self._threads[name].is_alive():
            return False
        self._go[name].release()
        self._wait_for(name)
        return True

    def is_running(self, name: str) -> bool:
        """Tell whether a run has accesses left."""
        return self._threads[name].is_alive()

    def kill(self, *names: str) -> None:
        """End runs before their next access."""
        for name in names:
            self._killed.add(name)
            self.step(name)

    def __enter__(self) -> Self:
        """Start all."""
        for name, thread in self._threads.items():
            thread.start()
            self._wait_for(name)
        return self

    def access(self, look: Callable[[], Hashable] = lambda: None) -> None:
        """Return when the run of this thread may do its next access, and note what it sees."""
        if (name := threading.current_thread().name) in self.seen:
            self._wait(name)
            self.seen[name].append(look())

    def __exit__(self, *_: object) -> None:
        """End what still runs."""
        self.kill(*self._threads)

    def _wait_for(self, name: str) -> None:
        assert self._waits[name].acquire(timeout=30), f"{name} does not come to its next access"
        if name in self.ends or name in self._killed:
            self._threads[name].join(30)

    def _work(self, name: str, run: Callable[[], object]) -> None:
        try:
            run()
            self.ends[name] = None
        except Mm2OffsetsError as error:
            self.ends[name] = error
        except Killed:
            pass
        finally:
            self._waits[name].release()

    def _wait(self, name: str) -> None:
        self._waits[name].release()
        self._go[name].acquire()
        if name in self._killed:
            raise Killed


def race(
    monkeypatch: pytest.MonkeyPatch,
    schedule: list[tuple[str, int]],
    runs: Mapping[str, Callable[[], object]],
) -> dict[str, Exception | None]:
    """Let each run do so many accesses in its turn, and return how each has ended."""
    turns, real = Turns(runs), storage.storage_errors

    @contextmanager
    def in_turn(location: UPath | str, error: type[Mm2OffsetsError]) -> Iterator[None]:
        turns.access()
        with real(location, error):
            yield

    with monkeypatch.context() as patch:
        patch.setattr(storage, "storage_errors", in_turn)
        with turns:
            for name, accesses in schedule:
                for _ in range(accesses):
                    if not turns.step(name):
                        break
            assert set(turns.ends) == set(runs)
    return turns.ends
