"""Names the origin of a group's positions: the marker of a commit holds it."""

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.logins import without_login


def origin_of(pair: ClusterPair, group: str) -> str:
    """Return the origin of a source group's offsets; it stays when the source is lost."""
    return f"group {group} of {pair.naming.source_alias}"


def origin_of_checkpoint(location: str) -> str:
    """Return the origin of a Spark job's positions, without a login in the location."""
    return f"checkpoint {without_login(location)}"
