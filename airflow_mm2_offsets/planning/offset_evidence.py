"""Reads what settles the answers that the syncs leave open, and never more than that."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    Basis,
    Evidence,
    SyncIndex,
    TopicPartition,
    Translation,
    Watermarks,
)
from airflow_mm2_offsets.kafka.ranges import OffsetRange, find_empty

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

    def evidence(self, partition: TopicPartition, *, sole_writer: bool) -> Evidence:
        """Return what these watermarks say of one partition."""
        return Evidence(
            source=self.source.get(partition),
            target=self.target[partition],
            sole_writer=sole_writer,
        )


def gather_drained(
    pair: ClusterPair,
    index: SyncIndex,
    answers: Iterable[Translation],
    *,
    connector: str | None = None,
) -> dict[TopicPartition, Watermarks]:
    """Return the target's watermarks of the partitions that MirrorMaker 2 has copied to the end.

    The order proves it: first that every record before the position was copied, then the
    target's end is read, then that the source has no record from the position on, and last that
    none was deleted there. A record of an open transaction is one that may come to light, so it
    counts on both sides.
    """
    ends = {
        each.topic_partition: each.position
        for each in answers
        if each.basis in _MAY_BE_DRAINED
        and each.position > _last_synced(index, each.topic_partition)
    }
    decided = stable_ends(pair, ends)
    copied = _copied(pair, index, ends, connector)
    unread = {
        key: OffsetRange(copied[key] + 1, end - 1)
        for key, end in ends.items()
        if end <= decided[key]
    }
    done = find_empty(pair.source, unread)
    watermarks = PairWatermarks.read(pair, done, ask_source=False)
    source = pair.source.watermarks(done)
    decided = stable_ends(pair, done)
    after = {
        key: OffsetRange(ends[key], source[key].high - 1)
        for key in done
        if source[key].high <= decided[key]
    }
    empty = _never_held(pair, {key: after[key] for key in find_empty(pair.source, after)})
    return {key: watermarks.target[key] for key in empty}


def gather_copied(
    pair: ClusterPair,
    index: SyncIndex,
    watermarks: PairWatermarks,
    *,
    connector: str | None = None,
) -> dict[TopicPartition, int]:
    """Return the last source offset that Connect has noted, where no record lies beyond it.

    What it notes MirrorMaker 2 does not copy again, and it notes in order. Whatever was copied
    before the syncs were read lies below the end that the source had afterwards, so where that
    much is noted no record beyond is left that exists only in an older copy. Noting lags behind
    copying, which can only hide that. Whether anything was jumped over it does not tell: offsets
    can be altered.
    """
    ends = {
        key: source.high
        for key, source in watermarks.source.items()
        if (syncs := index.partitions.get(key)) and not syncs.segments.has_caught_up
    }
    noted = _noted(pair, ends, connector)
    decided = stable_ends(pair, noted)
    # A number beyond the source's end was noted of an earlier topic of that name.
    beyond = {
        key: OffsetRange(last + 1, ends[key] - 1)
        for key, last in noted.items()
        if max(last + 1, ends[key]) <= decided[key]
    }
    empty = find_empty(pair.source, beyond)
    return {key: noted[key] for key in _never_held(pair, {key: beyond[key] for key in empty})}


def _never_held(
    pair: ClusterPair, empty: Mapping[TopicPartition, OffsetRange]
) -> set[TopicPartition]:
    """Return the partitions whose range, found to be empty before this, never held a record.

    Below the source's first offset, records may have been deleted, by retention or by hand.
    """
    wide = {key for key, offsets in empty.items() if offsets.size}
    source = pair.source.watermarks(wide)
    return {
        key for key, offsets in empty.items() if key not in wide or source[key].low <= offsets.first
    }


def stable_ends(pair: ClusterPair, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return up to where every transaction on the source has been committed or aborted."""
    marks = pair.source.watermarks(keys, isolation="read_committed")
    return {key: each.high for key, each in marks.items()}


def _copied(
    pair: ClusterPair,
    index: SyncIndex,
    partitions: Iterable[TopicPartition],
    connector: str | None,
) -> dict[TopicPartition, int]:
    """Return the last source offset that is known to be copied; -1 where no copy is known."""
    by_syncs = {key: _last_synced(index, key) for key in partitions}
    noted = _noted(pair, by_syncs, connector)
    return {key: max(last, noted.get(key, -1)) for key, last in by_syncs.items()}


def _noted(
    pair: ClusterPair, partitions: Iterable[TopicPartition], connector: str | None
) -> dict[TopicPartition, int]:
    """Return the last source offset that Connect has committed, where it has any.

    Args:
        pair: The clusters.
        partitions: On the source.
        connector: Its name; None: Connect is asked for it first.
    """
    wanted = set(partitions)
    if pair.connect is None or not wanted:
        return {}
    alias = pair.naming.source_alias
    name = connector or pair.connect.find_mirror_source(alias, pair.naming.target_alias)
    return {
        TopicPartition(topic, number): last
        for (cluster, topic, number), last in pair.connect.offsets(name).items()
        if cluster == alias and (topic, number) in wanted
    }


def _last_synced(index: SyncIndex, key: TopicPartition) -> int:
    syncs = index.partitions.get(key)
    return syncs.last.upstream if syncs else -1
