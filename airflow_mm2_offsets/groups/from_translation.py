"""The groups' positions on the target by our own translation of their commits on the source."""

from collections import defaultdict
from collections.abc import Iterator

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import SyncIndex, TopicPartition, Translation
from airflow_mm2_offsets.core.group_offsets import GroupPosition
from airflow_mm2_offsets.core.positions import PartitionPosition
from airflow_mm2_offsets.groups.origins import GroupPositions, origin_of
from airflow_mm2_offsets.groups.selection import GroupSelection
from airflow_mm2_offsets.kafka.groups import GroupOffsets
from airflow_mm2_offsets.planning.many_positions import translate_many
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.syncs import load_syncs


def positions_from_translation(
    pair: ClusterPair, selection: GroupSelection, options: PlanOptions
) -> GroupPositions:
    """Read the groups' commits, then the syncs once for all, and translate.

    Raises:
        Mm2OffsetsError: See ``plan_failover``.
    """
    groups = pair.source.group_offsets(selection.of(pair.source.group_names()))
    offsets = groups.offsets
    syncs = load_syncs(
        pair,
        options.archive,
        ask_source=options.read_source,
        read_topic=options.read_syncs_topic,
    )
    reads = {"syncs_topic_reads": 1, "syncs_read": syncs.records_read}
    obstacles = _find_obstacles(pair, offsets, syncs.index)
    positions: dict[TopicPartition, set[int]] = defaultdict(set)
    for _, key, offset in _each(offsets):
        if key not in obstacles:
            positions[key].add(offset)
    many = translate_many(pair, positions, syncs, options=options)
    return GroupPositions(
        positions=[
            _not_mirrored(pair, group, key, offset, obstacles[key])
            if key in obstacles
            else _translated(pair, group, many.answers[PartitionPosition(key, offset)])
            for group, key, offset in _each(offsets)
        ],
        reads=reads | {"evidence_rounds": many.rounds},
        unread=groups.refusals,
    )


def _each(offsets: GroupOffsets) -> Iterator[tuple[str, TopicPartition, int]]:
    """Yield group, topic-partition and offset of each commit."""
    for group, commits in offsets.items():
        for key, commit in commits.items():
            yield group, key, commit.offset


def _find_obstacles(
    pair: ClusterPair, offsets: GroupOffsets, index: SyncIndex
) -> dict[TopicPartition, str]:
    """Return why topic-partitions can't be translated at all."""
    keys = {key for _, key, _ in _each(offsets)}
    mirrored = {key.topic for key in index}
    source = pair.source.topics({key.topic for key in keys})
    target = pair.target.topics({pair.naming.target_topic(topic) for topic in source})
    obstacles = {}
    for key in keys:
        name, partition = pair.on_target(key)
        if key.topic not in mirrored:
            obstacles[key] = "MirrorMaker 2 does not copy the topic: no offset sync names it"
        elif key.topic not in source or key.partition >= source[key.topic].partitions:
            obstacles[key] = f"{key} does not exist on the source any more"
        elif name not in target or partition >= target[name].partitions:
            obstacles[key] = f"{pair.on_target(key)} does not exist on the target yet"
    return obstacles


def _not_mirrored(
    pair: ClusterPair, group: str, key: TopicPartition, offset: int, reason: str
) -> GroupPosition:
    return GroupPosition(
        group=group,
        topic_partition=pair.on_target(key),
        origin=origin_of(pair, group),
        source_offset=offset,
        offset=None,
        reason=reason,
    )


def _translated(pair: ClusterPair, group: str, answer: Translation) -> GroupPosition:
    return GroupPosition(
        group=group,
        topic_partition=pair.on_target(answer.topic_partition),
        origin=origin_of(pair, group),
        source_offset=answer.position,
        offset=answer.target,
        reason=answer.reason,
        max_reread=answer.max_reread,
    )
