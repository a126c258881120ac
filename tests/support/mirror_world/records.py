"""What lies in the logs of a simulated partition."""

from typing import NamedTuple

FOREIGN = -1
"""The origin of a record that another writer wrote to the target."""
MARKER = -2
"""The origin of a target offset that delivers nothing: a marker, an aborted or cleaned record."""


class Record(NamedTuple):
    """What a consumer gets."""

    key: bytes | None
    value: bytes
    timestamp: int
    """Milliseconds since 1970."""
    headers: tuple[tuple[str, bytes], ...] = ()


class Entry(NamedTuple):
    """What lies at one target offset."""

    origin: int
    """The source offset that it copies, FOREIGN or MARKER."""
    incarnation: int
    """Which incarnation of the source topic that offset is of."""
    record: Record | None
    """None where nothing is delivered."""


class Step(NamedTuple):
    """One thing that happens to a world; ``amount`` is what its method takes."""

    action: str
    amount: int = 0
