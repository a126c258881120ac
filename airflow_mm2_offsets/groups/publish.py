"""Commits a Spark job's positions for a consumer group, so that lag tools see the job.

MirrorMaker 2 makes checkpoints of such a group too, as of any other.
"""

from airflow_mm2_offsets.core import Positions, check_positions
from airflow_mm2_offsets.core.group_offsets import DEFAULT_RULES, GroupPosition, GroupRules
from airflow_mm2_offsets.core.positions import by_topic_partition
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.groups.commit import commit_positions
from airflow_mm2_offsets.groups.origins import origin_of_checkpoint
from airflow_mm2_offsets.groups.report import GroupsReport
from airflow_mm2_offsets.kafka.cluster import KafkaCluster


def publish_positions(
    cluster: KafkaCluster,
    group: str,
    positions: Positions,
    checkpoint: str,
    *,
    rules: GroupRules = DEFAULT_RULES,
) -> GroupsReport:
    """Commit positions for a group of the cluster that they are of.

    Args:
        cluster: The cluster that the job reads.
        group: A group that nothing else uses.
        positions: The job's committed positions.
        checkpoint: Its checkpoint location: the marker names it.
        rules: What the user decides about the rules of ``core.group_rules``.

    Raises:
        ConfigurationError: The group has no name.
        PositionError: ``positions`` is not a map of positions.
        ClusterUnreachableError: The cluster does not answer.
    """
    if not group:
        raise ConfigurationError("the group has no name; give one that nothing else uses")
    of_group = _positions_of_group(group, check_positions(positions), checkpoint)
    decisions = commit_positions(cluster, of_group, rules)
    return GroupsReport(offsets_from="positions", rules=rules, decisions=decisions)


def _positions_of_group(group: str, positions: Positions, checkpoint: str) -> list[GroupPosition]:
    origin = origin_of_checkpoint(checkpoint)
    return [
        GroupPosition(
            group=group,
            topic_partition=key,
            origin=origin,
            source_offset=offset,
            offset=offset,
            reason="the position of the Spark job's last committed batch",
            max_reread=0,
        )
        for key, offset in by_topic_partition(positions).items()
    ]
