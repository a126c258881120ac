"""How MirrorMaker 2 is set up in a simulated world."""

from dataclasses import dataclass

from airflow_mm2_offsets.testing import mirror


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSettings(mirror.MirrorSettings):
    """How MirrorMaker 2, Connect and the target topic are set up."""

    dropped: float = 0.0
    """The share of records that a filter drops."""
    changed: float = 0.0
    """The share of records that a transform changes, each copy alike."""
    stamped: bool = False
    """A transform adds the time of the copying to each record."""
    latest: bool = False
    """A task without a committed offset begins at the source's end (auto.offset.reset=latest)."""
    append_time: bool = False
    """The target topic has message.timestamp.type=LogAppendTime."""
