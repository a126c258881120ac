"""Reads what a forecast rests on: ends, copied offsets, times, heartbeats; for ``forecast``.

Each function takes what still answers, and leaves out what does not.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from airflow_mm2_offsets.archive.ends import end_samples
from airflow_mm2_offsets.archive.incremental_read import iso_time, pair_identity
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import SyncIndex, TopicPartition
from airflow_mm2_offsets.core.forecast_rules import EndSample
from airflow_mm2_offsets.errors import (
    ClusterUnreachableError,
    ConnectError,
    Mm2OffsetsError,
    TopicNotFoundError,
)
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.ranges import OffsetRange, first_times, read_ranges
from airflow_mm2_offsets.kafka.sync_log import SYNCS_PARTITION
from airflow_mm2_offsets.planning.heartbeats import read_heartbeats
from airflow_mm2_offsets.planning.lost_parts import LostParts
from airflow_mm2_offsets.planning.offset_evidence import PairWatermarks, committed_by_connect
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.partial_plan import options_without
from airflow_mm2_offsets.planning.record_ranges import MAX_WINDOW
from airflow_mm2_offsets.planning.syncs import load_syncs

log = logging.getLogger(__name__)

_TAIL = 20
"""Offsets before an end in which the newest record is looked for: markers may follow it."""
_MAX_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFacts:
    """What syncs, archive and Connect say of a pair; empty where they don't answer."""

    index: SyncIndex = field(default_factory=SyncIndex)
    samples: Mapping[TopicPartition, list[EndSample]] = field(default_factory=dict)
    copied: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The last source offset that is surely copied: as Connect has committed it, or, where copies
    keep offsets, as the target's end shows it."""
    archive_as_of: str | None = None
    newest_sync_as_of: str | None = None
    connect_as_of: str | None = None

    def copied_to(self, key: TopicPartition) -> int:
        """Return the last source offset of a partition that is known to be copied, or -1."""
        syncs = self.index.partitions.get(key)
        return max(self.copied.get(key, -1), max(syncs.upstream, default=-1) if syncs else -1)

    def last_downstream(self, key: TopicPartition) -> int:
        """Return the highest target offset that a sync names, or -1."""
        syncs = self.index.partitions.get(key)
        return max(syncs.downstream, default=-1) if syncs else -1


def read_copy_facts(
    pair: ClusterPair,
    keys: Collection[TopicPartition],
    lost: LostParts,
    options: PlanOptions,
    now: str,
) -> CopyFacts:
    """Read syncs, archive and Connect's offsets.

    Raises:
        ArchiveError: The archive is damaged, of another pair, or out of reach.
    """
    if not pair.has_syncs:
        ends = PairWatermarks.read(pair, keys, ask_source=False).target
        return CopyFacts(copied={key: each.high - 1 for key, each in ends.items()})
    left = options_without(options, lost)
    samples: Mapping[TopicPartition, list[EndSample]] = {}
    archive_as_of = newest_sync = None
    if options.archive is not None:
        identity = pair_identity(pair, ask_source=left.read_source)
        archived = options.archive.read(identity)
        samples = end_samples(archived, keys)
        archive_as_of = None if archived.as_of is None else iso_time(archived.as_of)
        with_syncs = [run.time for _, run in archived.runs if run.stop > run.first]
        newest_sync = iso_time(max(with_syncs)) if with_syncs else None
    index = SyncIndex()
    if lost.syncs_topic is None or options.archive is not None:
        index = load_syncs(
            pair, options.archive, ask_source=left.read_source, read_topic=left.read_syncs_topic
        ).index
    if lost.syncs_topic is None:
        newest_sync = _newest_sync(pair) or newest_sync
    by_connect = _by_connect(pair, keys, lost)
    return CopyFacts(
        index=index,
        samples=samples,
        copied=by_connect or {},
        archive_as_of=archive_as_of,
        newest_sync_as_of=newest_sync,
        connect_as_of=None if by_connect is None else now,
    )


def _by_connect(
    pair: ClusterPair, keys: Collection[TopicPartition], lost: LostParts
) -> dict[TopicPartition, int] | None:
    if pair.connect is None or lost.connect is not None:
        return None
    try:
        return committed_by_connect(pair, keys)
    except (ClusterUnreachableError, ConnectError) as error:
        log.warning("The forecast is made without Connect's offsets: %s", error)
        return None


def _newest_sync(pair: ClusterPair) -> str | None:
    partition = TopicPartition(pair.syncs_topic, SYNCS_PARTITION)
    try:
        end = pair.syncs_cluster.watermarks([partition])[partition].high
        times = newest_times(pair.syncs_cluster, {partition: end})
    except Mm2OffsetsError as error:
        log.warning("The age of the newest sync is unknown: %s", error)
        return None
    return iso_time(times[partition]) if partition in times else None


def read_source_ends(
    pair: ClusterPair, keys: Collection[TopicPartition], lost: LostParts
) -> dict[TopicPartition, int]:
    """Return the source's end of each partition that still answers."""
    if lost.source_is_silent:
        return {}  # It was waited for once; twice would double the time of the forecast.
    left = [key for key in keys if key not in lost.leaderless]
    try:
        return {key: both.high for key, both in pair.source.watermarks(left).items()}
    except (ClusterUnreachableError, TopicNotFoundError) as error:
        log.warning("The forecast is made without the source's ends: %s", error)
        return {}


def read_uncopied(
    pair: ClusterPair, firsts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, list[int]]:
    """Return the offsets of the source's records from ``firsts`` on.

    A partition is absent if it has too many. Records of open transactions count: MirrorMaker 2
    copies them by default.
    """
    ranges = {
        key: (key, OffsetRange(firsts[key], end - 1))
        for key, end in ends.items()
        if end - firsts[key] <= MAX_WINDOW
    }
    try:
        read = read_ranges(pair.source, ranges, max_bytes=_MAX_BYTES, isolation="read_uncommitted")
    except Mm2OffsetsError as error:
        log.warning("The source's records that are not copied are not counted: %s", error)
        return {}
    return {key: [record.offset for record in records] for key, records in read.items()}


def read_undecided(
    pair: ClusterPair, keys: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the last stable offsets of a target whose copies hold the source's transactions.

    MirrorMaker 2 copies records without them: its own transactions end by themselves.
    """
    if pair.has_syncs:
        return {}
    names = {pair.on_target(key): key for key in keys}
    stable = pair.target.watermarks(names, isolation="read_committed")
    return {names[name]: each.high for name, each in stable.items()}


def newest_times(
    cluster: KafkaCluster, stops: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the newest timestamp shortly before an offset, in milliseconds since 1970.

    A partition without a record there is absent.
    """
    tails = {key: (key, OffsetRange(max(0, stop - _TAIL), stop - 1)) for key, stop in stops.items()}
    read = read_ranges(cluster, tails, max_bytes=_MAX_BYTES)
    return {
        key: max(record.milliseconds for record in records)
        for key, records in read.items()
        if records
    }


def seconds_between(
    cluster: KafkaCluster, ranges: Mapping[TopicPartition, OffsetRange]
) -> dict[TopicPartition, float]:
    """Return how many seconds lie between the records at both ends of each range."""
    filled = {key: each for key, each in ranges.items() if each.size}
    firsts = first_times(cluster, filled)
    lasts = newest_times(cluster, {key: each.last + 1 for key, each in filled.items()})
    spans = dict.fromkeys(ranges.keys() - filled.keys(), 0.0)
    for key in firsts.keys() & lasts.keys():
        spans[key] = max(0, lasts[key] - firsts[key]) / 1000
    return spans


def newest_heartbeat(pair: ClusterPair) -> str | None:
    """Return the time of the newest heartbeat that came from the source; None without one."""
    heartbeats = read_heartbeats(pair)
    return iso_time(max(heartbeats.times)) if heartbeats and heartbeats.times else None
