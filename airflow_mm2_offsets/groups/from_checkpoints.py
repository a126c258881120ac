"""The groups' positions on the target as MirrorMaker 2's checkpoints have them."""

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core.group_offsets import GroupPosition
from airflow_mm2_offsets.groups.confirmation import read_confirmation
from airflow_mm2_offsets.groups.origins import origin_of
from airflow_mm2_offsets.groups.selection import GroupSelection
from airflow_mm2_offsets.kafka.mm2_checkpoints import read_checkpoints
from airflow_mm2_offsets.planning.options import PlanOptions


def positions_from_checkpoints(
    pair: ClusterPair, selection: GroupSelection, options: PlanOptions
) -> tuple[list[GroupPosition], dict[str, int]]:
    """Read the checkpoints topic once for all groups, then the syncs, to compare both.

    It needs the target alone: without the syncs the positions are not confirmed.

    Returns:
        The positions, and how many records were read.

    Raises:
        SyncsTopicError: There is no checkpoints topic.
        Mm2OffsetsError: See ``read_confirmation``.
    """
    topic_read = read_checkpoints(pair.target, pair.naming.checkpoints_topic())
    selected = {*selection.of(group for group, _ in topic_read.checkpoints)}
    positions = [
        GroupPosition(
            group=group,
            topic_partition=partition,
            origin=origin_of(pair, group),
            source_offset=checkpoint.upstream,
            offset=checkpoint.downstream,
            reason=f"MirrorMaker 2's checkpoint of {checkpoint.upstream}",
        )
        for (group, partition), checkpoint in topic_read.checkpoints.items()
        if group in selected
    ]
    confirmation = read_confirmation(pair, options)
    reads = {
        "checkpoints_topic_reads": 1,
        "checkpoints_read": topic_read.records_read,
        "checkpoints_skipped": topic_read.skipped_count,
        "syncs_read": confirmation.syncs.records_read if confirmation.syncs else 0,
    }
    return confirmation.compare(positions), reads
