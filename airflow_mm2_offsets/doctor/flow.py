"""A flow of MirrorMaker 2, the flow that copies back, and the job's topics."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What ``flow_rules`` look at."""

    connector: MirrorConnector
    reverse: MirrorConnector | None = None
    """The connector between the same clusters the other way, if it is known."""
    copies_back: bool = False
    """Whether ``reverse`` is enabled."""
    topics: Sequence[str] = ()
    """The job's, by the source's names."""


def find_reverse(
    connector: MirrorConnector, others: Iterable[MirrorConnector]
) -> MirrorConnector | None:
    """Return the connector with exchanged aliases."""
    exchanged = (connector.target_alias, connector.source_alias)
    return next(
        (each for each in others if (each.source_alias, each.target_alias) == exchanged), None
    )
