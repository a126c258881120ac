"""One step of a world's history."""

from typing import NamedTuple


class Step(NamedTuple):
    """One thing that happens to a world; ``amount`` is what its method takes."""

    action: str
    amount: int = 0
