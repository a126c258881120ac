"""What is measured, and by which clock; the other modules of this folder use it."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long something took."""

    count: int
    """How much was done in that time."""
    seconds: float
    process_seconds: float
    """From the start to the end of the program that did it."""

    @property
    def per_second(self) -> float:
        """How much was done in a second."""
        return self.count / self.seconds

    @classmethod
    def of_program(cls, run: Callable[[], bytes]) -> "Timing":
        """Run a program that prints a count and the nanoseconds that it took."""
        begin = time.perf_counter()
        count, nanoseconds = run().split()
        return cls(
            count=int(count),
            seconds=int(nanoseconds) / 1e9,
            process_seconds=time.perf_counter() - begin,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One thing, done by us and, where it can, by OffsetSyncStore."""

    what: str
    unit: str
    """``s``: less is better; ``per s``: more is."""
    ours: float
    store: float | None = None

    @property
    def faster(self) -> float | None:
        """How many times as fast as the store."""
        if self.store is None:
            return None
        return self.store / self.ours if self.unit == "s" else self.ours / self.store


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What one sync costs where there are some, and where there are ten times as many."""

    what: str
    unit: str
    small: tuple[int, float]
    """How many syncs, and the cost of one."""
    large: tuple[int, float]

    @property
    def factor(self) -> float:
        """Near 1, or below: it is linear."""
        return self.large[1] / self.small[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a release should keep."""

    what: str
    most: float
    measured: float

    @property
    def kept(self) -> bool:
        """Whether it is."""
        return self.measured <= self.most


def median(timings: list[Timing]) -> Timing:
    """Return the one in the middle by time."""
    return sorted(timings, key=lambda timing: timing.seconds)[len(timings) // 2]
