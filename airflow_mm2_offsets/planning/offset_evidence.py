"""Reads watermarks and Connect's offsets, which settle answers that the syncs leave open.

``EvidenceCollector`` calls it. No more is read than can settle an answer.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    Basis,
    SyncIndex,
    TopicPartition,
    Translation,
    Watermarks,
)
from airflow_mm2_offsets.core.positions import PartitionPosition
from airflow_mm2_offsets.kafka.ranges import Key, OffsetRange, PartitionRange, find_empty
from airflow_mm2_offsets.planning.connect_claims import describe_shared, read_claims

log = logging.getLogger(__name__)

_MAY_BE_DRAINED = frozenset({Basis.AFTER_LAST_SYNC, Basis.COPYING_AGAIN, Basis.NEVER_REPLICATED})


@dataclass(frozen=True, slots=True, kw_only=True)
class PairWatermarks:
    """The watermarks of partitions on both clusters, by the source's topic names."""

    source: Mapping[TopicPartition, Watermarks]
    """Empty where the source was not asked."""
    target: Mapping[TopicPartition, Watermarks]

    @classmethod
    def read(
        cls, pair: ClusterPair, partitions: Iterable[TopicPartition], *, ask_source: bool
    ) -> "PairWatermarks":
        """Ask both clusters.

        Raises:
            TopicNotFoundError: A topic or partition does not exist on one of them.
            ClusterUnreachableError: One does not answer.
        """
        by_target = {pair.on_target(key): key for key in partitions}
        source = pair.source.watermarks(by_target.values()) if ask_source else {}
        target = pair.target.watermarks(by_target)
        return cls(
            source=source,
            target={by_target[key]: watermarks for key, watermarks in target.items()},
        )


def gather_drained(
    pair: ClusterPair,
    index: SyncIndex,
    answers: Iterable[Translation],
    *,
    connectors: Collection[str] | None = None,
) -> dict[PartitionPosition, Watermarks]:
    """Return the target's watermarks of the positions from which on there is no record to copy.

    The order is the proof. First, every record before the position was copied. Then the target's
    end is read. Then the source has no record from the position on, and last, none was deleted
    there. The records of an open transaction may still be committed, so they count as records.
    """
    keys = [
        PartitionPosition(answer.topic_partition, answer.position)
        for answer in answers
        if answer.basis in _MAY_BE_DRAINED
        and answer.position > _last_synced(index, answer.topic_partition)
    ]
    partitions = {key.topic_partition for key in keys}
    stable = stable_ends(pair, partitions)
    by_connect = committed_by_connect(pair, partitions, connectors)
    copied = {each: max(_last_synced(index, each), by_connect.get(each, -1)) for each in partitions}
    not_copied = {
        key: (key.topic_partition, OffsetRange(copied[key.topic_partition] + 1, key.position - 1))
        for key in keys
        if key.position <= stable[key.topic_partition]
    }
    all_copied = find_empty(pair.source, not_copied)
    partitions = {key.topic_partition for key in all_copied}
    target = PairWatermarks.read(pair, partitions, ask_source=False).target
    source = pair.source.watermarks(partitions)
    stable = stable_ends(pair, partitions)
    after = {
        key: (each, OffsetRange(position, source[each].high - 1))
        for key in all_copied
        for each, position in [key]
        if source[each].high <= stable[each]
    }
    empty = find_empty(pair.source, after)
    return {key: target[key.topic_partition] for key in _never_had_records(pair, after, empty)}


def gather_progress(
    pair: ClusterPair,
    index: SyncIndex,
    watermarks: PairWatermarks,
    *,
    connectors: Collection[str] | None = None,
) -> dict[TopicPartition, tuple[int | None, int]]:
    """Return what Connect has committed, and which records existed, where syncs leave that open.

    That is the last source offset that Connect has committed as copied, and an offset from which on
    the source held no record when the syncs were read. ``watermarks`` were read after them.

    MirrorMaker 2 does not copy again what Connect has committed, and Connect commits in order.
    Connect commits after MirrorMaker 2 has copied: that can only hide the progress. An offset does
    not show whether records were skipped, since offsets can be altered.
    """
    ends = {
        key: source.high
        for key, source in watermarks.source.items()
        if (syncs := index.partitions.get(key)) and not syncs.segments.has_caught_up
    }
    # An offset beyond the source's end was committed for an earlier topic of that name.
    committed = {
        key: last
        for key, last in committed_by_connect(pair, ends, connectors).items()
        if last < ends[key]
    }
    stable = stable_ends(pair, committed)
    beyond = {
        key: (key, OffsetRange(last + 1, ends[key] - 1))
        for key, last in committed.items()
        if ends[key] <= stable[key]
    }
    empty = _never_had_records(pair, beyond, find_empty(pair.source, beyond))
    ends |= {key: committed[key] + 1 for key in empty}
    return {key: (committed.get(key), end) for key, end in ends.items()}


def _never_had_records(
    pair: ClusterPair, ranges: Mapping[Key, PartitionRange], empty: set[Key]
) -> set[Key]:
    """Return the keys of ``empty`` from whose range no record was deleted either.

    Below the source's first offset, records may have been deleted, by retention or by hand. The
    first offset is therefore read after the range was found empty.
    """
    with_offsets = {ranges[key] for key in empty if ranges[key][1].size}
    source = pair.source.watermarks({each for each, _ in with_offsets})
    lost = {each for each in with_offsets if source[each[0]].low > each[1].first}
    return {key for key in empty if ranges[key] not in lost}


def stable_ends(pair: ClusterPair, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return up to where every transaction on the source has been committed or aborted."""
    watermarks = pair.source.watermarks(keys, isolation="read_committed")
    return {key: stable.high for key, stable in watermarks.items()}


def committed_by_connect(
    pair: ClusterPair,
    partitions: Iterable[TopicPartition],
    connectors: Collection[str] | None = None,
) -> dict[TopicPartition, int]:
    """Return the last source offset that Connect has committed, if there is any.

    Where several connectors have one of a partition, it is the lowest: see ``connect_claims``, also
    for ``connectors``.
    """
    requested = set(partitions)
    if pair.connect is None or not requested:
        return {}
    claims = read_claims(pair, connectors)
    shared = {key: each for key, each in claims.items() if len(each) > 1 and key in requested}
    for key, by_connector in sorted(shared.items()):
        log.warning("%s", describe_shared(key, by_connector))
    return {key: min(each.values()) for key, each in claims.items() if key in requested}


def _last_synced(index: SyncIndex, key: TopicPartition) -> int:
    syncs = index.partitions.get(key)
    return syncs.last.upstream if syncs else -1
