"""The steps of a run: which one begins, what comes after it, and the seconds that each took."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from stack.waiting import Progress


class Steps:
    """Numbers the steps of a run, and times them.

    Args:
        names: The steps in order. A step that is not among them has no number.
        progress: Told when a step begins, and when it has ended.
        clock: Returns seconds.
    """

    def __init__(
        self,
        names: Sequence[str],
        progress: Progress,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin no step yet."""
        self._names = tuple(names)
        self._progress = progress
        self._clock = clock
        self.seconds: dict[str, float] = {}
        """How long each ended step took, by its name."""

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Say that a step begins and what comes then; note how long it takes."""
        self._progress(f"== {self._title(name)}")
        began = self._clock()
        yield
        self.seconds[name] = self._clock() - began
        self._progress(f"   {name}: done in {self.seconds[name]:.0f} s")

    def _title(self, name: str) -> str:
        if name not in self._names:
            return name
        number = self._names.index(name) + 1
        following = self._names[number : number + 1]
        then = f"; then: {following[0]}" if following else ""
        return f"{number} of {len(self._names)}: {name}{then}"
