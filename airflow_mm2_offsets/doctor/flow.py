"""A flow of MirrorMaker 2, the flow that copies back, and the job's topics."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What ``flow_rules`` look at."""

    connector: MirrorConnector
    siblings: Sequence[MirrorConnector] = ()
    """The other connectors between the same clusters, where the topics are split between them."""
    reverse: MirrorConnector | None = None
    """A connector between the same clusters the other way, if one is known."""
    copies_back: bool = False
    """Whether ``reverse`` is enabled."""
    topics: Sequence[str] = ()
    """The job's, by the source's names."""


def find_reverses(
    connector: MirrorConnector, others: Iterable[MirrorConnector]
) -> list[MirrorConnector]:
    """Return the connectors with exchanged aliases."""
    exchanged = (connector.target_alias, connector.source_alias)
    return [each for each in others if (each.source_alias, each.target_alias) == exchanged]


def find_siblings(
    connector: MirrorConnector, others: Iterable[MirrorConnector]
) -> list[MirrorConnector]:
    """Return the other connectors with the same aliases."""
    aliases = (connector.source_alias, connector.target_alias)
    return [
        each
        for each in others
        if (each.source_alias, each.target_alias) == aliases and each.name != connector.name
    ]
