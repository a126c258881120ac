"""How MirrorMaker 2 is set up in a simulated world."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSettings:
    """How MirrorMaker 2, Connect and the target topic are set up."""

    lag_max: int = 100
    exactly_once: bool = False
    uncommitted: bool = False
    """It reads what is not committed yet, as it does unless told otherwise."""
    dropped: float = 0.0
    """The share of records that a filter drops."""
    changed: float = 0.0
    """The share of records that a transform changes, each copy alike."""
    stamped: bool = False
    """A transform adds the time of the copying to each record."""
    append_time: bool = False
    """The target topic has message.timestamp.type=LogAppendTime."""
