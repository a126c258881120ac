"""The groups' positions on the target as MirrorMaker 2's checkpoints have them."""

import logging
from collections.abc import Sequence

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core.group_offsets import GroupPosition
from airflow_mm2_offsets.core.positions import PartitionPosition
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.groups.confirmation import Confirmation, read_confirmation
from airflow_mm2_offsets.groups.origins import GroupPositions, origin_of
from airflow_mm2_offsets.groups.selection import GroupSelection
from airflow_mm2_offsets.kafka.mm2_checkpoints import read_checkpoints
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import find_connectors, with_connectors
from airflow_mm2_offsets.planning.uncopied_records import find_uncopied

log = logging.getLogger(__name__)


def positions_from_checkpoints(
    pair: ClusterPair, selection: GroupSelection, options: PlanOptions
) -> GroupPositions:
    """Read the checkpoints topic once for all groups, then the syncs, to compare both.

    It needs the target alone. Without the syncs the positions are not confirmed. Without the source
    no search for records that were never copied is made.

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
    compared = confirmation.compare(positions)
    return GroupPositions(
        positions=_refuse_passed_over(pair, confirmation, compared, options), reads=reads
    )


def _refuse_passed_over(
    pair: ClusterPair,
    confirmation: Confirmation,
    positions: Sequence[GroupPosition],
    options: PlanOptions,
) -> list[GroupPosition]:
    """Refuse positions before records that MirrorMaker 2 never copied, where the source answers."""
    listed = list(positions)
    on_source = {pair.on_target(key): key for key in confirmation.index}
    keys = {
        each: PartitionPosition(on_source[each.topic_partition], each.source_offset)
        for each in listed
        if each.offset is not None and each.topic_partition in on_source
    }
    if not (keys and options.read_source and options.max_evidence_bytes):
        return listed
    connectors = find_connectors(pair)
    topics = {key.topic_partition.topic for key in keys.values()}
    options = with_connectors(options, connectors, pair, topics)
    try:
        uncopied = find_uncopied(
            pair, confirmation.index, {*keys.values()}, connectors=connectors, options=options
        )
    except Mm2OffsetsError as error:
        log.warning("Records that were never copied are not looked for: %s", error)
        return listed
    return [
        each.refused(
            f"{each.reason}: {found} after it, from offset {found.first} to {found.last}, were "
            f"never copied; {found.cause}. Let MirrorMaker 2 copy them, or the group read them on "
            f"the source"
        )
        if each in keys and (found := uncopied.get(keys[each])) and found.at_least
        else each
        for each in listed
    ]
