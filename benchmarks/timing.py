"""What is measured, and by which clock."""

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


def median(timings: list[Timing]) -> Timing:
    """Return the one in the middle by time."""
    return sorted(timings, key=lambda timing: timing.seconds)[len(timings) // 2]
