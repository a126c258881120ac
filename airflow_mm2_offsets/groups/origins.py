"""Names the origin of a group's positions: the marker of a commit holds it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core.group_offsets import GroupPosition
from airflow_mm2_offsets.logins import without_login


def origin_of(pair: ClusterPair, group: str) -> str:
    """Return the origin of a source group's offsets; it stays when the source is lost."""
    return f"group {group} of {pair.naming.source_alias}"


def origin_of_checkpoint(location: str) -> str:
    """Return the origin of a Spark job's positions, without a login in the location."""
    return f"checkpoint {without_login(location)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPositions:
    """Where the selected groups continue."""

    positions: list[GroupPosition]
    reads: Mapping[str, int]
    """How many records of which kind were read."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """The groups whose commits a broker does not tell, and why."""
