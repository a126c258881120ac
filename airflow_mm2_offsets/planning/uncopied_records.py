"""Looks for source records that MirrorMaker 2 has passed over; ``EvidenceCollector`` calls it.

``core.uncopied`` counts them. Records that a transform of Connect's configuration may drop are not
looked for: they are filtered.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import SyncIndex, TopicPartition, Watermarks
from airflow_mm2_offsets.core.evidence import RecordWindow
from airflow_mm2_offsets.core.positions import PartitionPosition
from airflow_mm2_offsets.core.result import Uncopied
from airflow_mm2_offsets.core.uncopied import (
    Compared,
    CopyStep,
    MissingRecords,
    Original,
    TargetFacts,
    copy_steps,
    find_missing,
    stands_out,
)
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.kafka.ranges import (
    OffsetRange,
    PartitionRange,
    RangeRecord,
    read_ranges,
)
from airflow_mm2_offsets.planning.mirror_config import that_copy
from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector
from airflow_mm2_offsets.planning.offset_evidence import (
    PairWatermarks,
    committed_by_connect,
)
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.record_evidence import are_timed, contents, read_source_ranges
from airflow_mm2_offsets.planning.topic_settings import is_compacted
from airflow_mm2_offsets.planning.uncopied_ranges import Pairs, RangesToCompare, ranges_to_compare

log = logging.getLogger(__name__)

_AT_ONCE = 500_000
"""Offsets whose records are in memory together."""
_LOTS = ((1, 4), (10, 4), (100, 2))
"""Steps of each partition that are read together, and the divisor of their share of the bytes."""
_FIRST = 100
"""Records of the target that show how far back a range of it reaches: clocks differ a little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Partition:
    """Positions of one partition that need the same records."""

    key: TopicPartition
    positions: list[int]
    steps: list[CopyStep]
    ranges: RangesToCompare


def find_uncopied(
    pair: ClusterPair,
    index: SyncIndex,
    positions: Collection[PartitionPosition],
    *,
    connectors: Sequence[MirrorConnector],
    options: PlanOptions,
    until: Mapping[TopicPartition, int] = MappingProxyType({}),
) -> dict[PartitionPosition, Uncopied]:
    """Return the records that MirrorMaker 2 has passed over, from each position on.

    Of each cluster ``max_evidence_bytes`` are read, at most three times: whole partitions, the
    steps that lack most copies where that was too much, and all places where missing copies may
    lie. Where the bytes are too few for a single such step, and it lacks many more than others,
    its offsets count as records that may be missing.

    Args:
        pair: The clusters.
        index: The syncs.
        positions: On the source.
        connectors: Those of the pair; none: Connect was not asked.
        options: What the user decides.
        until: Source offsets before which records count; without one up to what was passed.
    """
    keys = {each.topic_partition for each in positions}
    causes = {topic: cause_of(connectors, topic) for topic in {key.topic for key in keys}}
    wanted = [each for each in positions if causes[each.topic_partition.topic] is not None]
    batches = list(_batches(_partitions(pair, index, wanted, connectors, until)))
    uncopied = {}
    for batch in batches:
        limit = options.max_evidence_bytes // len(batches)
        missing = _compare(pair, batch, limit, are_comparable=not options.changed_records)
        for each, records in missing:
            for position in each.positions:
                cause = causes[each.key.topic] or ""
                if counted := records.count_from(position, cause=cause):
                    uncopied[PartitionPosition(each.key, position)] = counted
    return uncopied


def cause_of(connectors: Sequence[MirrorConnector], topic: str) -> str | None:
    """Return what Connect says of records that were not copied; None if a transform drops them."""
    if not connectors:
        return (
            "Connect was not asked: if a transform drops records, name Connect in the mm2 "
            "connection, and they count as filtered"
        )
    copying = that_copy(connectors, [topic])
    if any(each.may_drop_records for each in copying):
        return None
    names = ", ".join(each.name for each in copying)
    hidden = [each.name for each in copying if not each.tells("transforms")]
    if hidden:
        return f"the transforms of connector {', '.join(hidden)} are in a config provider"
    if skipping := [each.name for each in copying if each.begins_at_end]:
        return f"connector {', '.join(skipping)} has auto.offset.reset = latest and no filter"
    return f"no transform of connector {names} drops records"


def _partitions(
    pair: ClusterPair,
    index: SyncIndex,
    positions: Iterable[PartitionPosition],
    connectors: Sequence[MirrorConnector],
    until: Mapping[TopicPartition, int],
) -> Iterator[_Partition]:
    """Yield the partitions with positions below what MirrorMaker 2 has passed.

    Connect's offsets are read before the target: what it has committed is there.
    """
    by_partition: dict[TopicPartition, list[int]] = {}
    for key, position in positions:
        if index.partitions.get(key):
            by_partition.setdefault(key, []).append(position)
    committed = _committed(pair, by_partition, connectors)
    watermarks = PairWatermarks.read(pair, by_partition, ask_source=True)
    stable = _stable_targets(pair, by_partition)
    for key, several in by_partition.items():
        syncs, source = index.partitions[key], watermarks.source[key]
        # An offset beyond the source's end was committed for an earlier topic of that name.
        by_connect = committed.get(key, -1)
        passed = max(syncs.last.upstream, by_connect if by_connect < source.high else -1)
        passed = min(passed, source.high - 1, until.get(key, source.high) - 1)
        end = watermarks.target[key].high
        target = Watermarks(low=watermarks.target[key].low, high=min(stable[key], end))
        steps = copy_steps(syncs, passed=passed, target_end=end)
        below = [each for each in several if max(each, source.low) <= passed]
        for some, ranges in ranges_to_compare(below, steps, source, target, passed=passed):
            yield _Partition(key=key, positions=some, steps=steps, ranges=ranges)


def _committed(
    pair: ClusterPair, keys: Collection[TopicPartition], connectors: Sequence[MirrorConnector]
) -> dict[TopicPartition, int]:
    try:
        return committed_by_connect(pair, keys, [each.name for each in connectors])
    except Mm2OffsetsError as error:
        log.warning("What Connect has committed is not known: %s", error)
        return {}


def _stable_targets(pair: ClusterPair, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    names = {pair.on_target(key): key for key in keys}
    stable = pair.target.watermarks(names, isolation="read_committed")
    return {names[name]: each.high for name, each in stable.items()}


def _batches(partitions: Iterable[_Partition]) -> Iterator[list[_Partition]]:
    batch: list[_Partition] = []
    size = 0
    for each in sorted(partitions, key=lambda partition: partition.ranges.size):
        if batch and size + each.ranges.size > _AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += each.ranges.size
    if batch:
        yield batch


def _compare(
    pair: ClusterPair, batch: Sequence[_Partition], max_bytes: int, *, are_comparable: bool
) -> Iterator[tuple[_Partition, MissingRecords]]:
    """Yield the records of each partition that were not found, if any is.

    Where some are missing, all places are read where their copies may lie.
    """
    facts = TargetFacts(are_comparable=are_comparable)
    suspects: list[tuple[_Partition, _Reading]] = []
    for each, reading in _look(pair, batch, max_bytes):
        if find_missing(each.steps, reading.compared, facts).offsets:
            suspects.append((each, reading))
        elif reading.is_cut and stands_out(each.steps, each.positions[0]):
            yield each, find_missing(each.steps, [], facts, unread=_unread(each), is_cut=True)
    confirming = [(each.key, each.ranges.confirming) for each, _ in suspects]
    confirmed = _read(pair, confirming, max_bytes)
    compacted = _compacted(pair, {each.key for each, _ in suspects})
    for (each, first), reading in zip(suspects, confirmed, strict=True):
        missing = find_missing(
            each.steps,
            (first if reading.is_cut else reading).compared,
            replace(facts, may_be_compacted=each.key in compacted),
            unread=[*_unread(each), *(first.unread if reading.is_cut else [])],
            is_cut=reading.is_cut,
        )
        yield each, missing


def _unread(partition: _Partition) -> list[tuple[int, int]]:
    return [(each.first, each.last) for each in partition.ranges.unread]


def _look(
    pair: ClusterPair, batch: Sequence[_Partition], max_bytes: int
) -> Iterator[tuple[_Partition, "_Reading"]]:
    """Read each partition; only the steps that lack most copies where all of it is too much."""
    readings = _read(pair, [(each.key, each.ranges.pairs) for each in batch], max_bytes)
    cut: list[_Partition] = []
    for each, reading in zip(batch, readings, strict=True):
        if reading.is_cut and (thrifty := each.ranges.thrifty or each.ranges).pairs:
            cut.append(replace(each, ranges=thrifty))
        elif not reading.is_cut:
            yield each, reading
    yield from _look_at_lacks(pair, cut, max_bytes)


def _look_at_lacks(
    pair: ClusterPair, partitions: Sequence[_Partition], max_bytes: int
) -> Iterator[tuple[_Partition, "_Reading"]]:
    """Read the steps that lack most copies, as far as the bytes reach.

    A transaction's marker lacks a copy, too, so that many steps lack a little. What more is missing
    somewhere stands out.
    """
    compared: list[list[Compared]] = [[] for _ in partitions]
    begin = 0
    for size, share in _LOTS:
        lots = [each.ranges.pairs[begin : begin + size] for each in partitions]
        readings = _read(
            pair,
            [(each.key, lot) for each, lot in zip(partitions, lots, strict=True)],
            max_bytes // share,
        )
        if any(each.is_cut for each in readings):
            break
        for found, reading in zip(compared, readings, strict=True):
            found.extend(reading.compared)
        begin += size
    for each, some in zip(partitions, compared, strict=True):
        read = each.ranges.of(each.ranges.pairs[:begin])
        yield replace(each, ranges=read), _Reading(compared=some, unread=[], is_cut=not some)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What was read of a partition."""

    compared: list[Compared]
    unread: list[tuple[int, int]]
    """Source offsets that were to be read, and were not."""
    is_cut: bool = False
    """Whether anything was to be read, and was not."""


def _read(
    pair: ClusterPair, wanted: Sequence[tuple[TopicPartition, Pairs]], max_bytes: int
) -> list[_Reading]:
    on_source: dict[tuple[int, OffsetRange], PartitionRange] = {}
    on_target: dict[tuple[int, OffsetRange], PartitionRange] = {}
    for number, (key, pairs) in enumerate(wanted):
        for sources, target in pairs:
            on_target[number, target] = pair.on_target(key), target
            on_source |= {(number, source): (key, source) for source in sources}
    copies = read_ranges(pair.target, on_target, max_bytes=max_bytes)
    originals = read_source_ranges(pair, on_source, max_bytes=max_bytes)
    readings = []
    for number, (_, pairs) in enumerate(wanted):
        compared, unread, is_cut = [], [], False
        for sources, target in pairs:
            records = copies.get((number, target))
            if records is None or any((number, source) not in originals for source in sources):
                unread += [(source.first, source.last) for source in sources]
                is_cut = True
                continue
            read = chain.from_iterable(originals[number, source][1] for source in sources)
            compared.append(_compared([*read], target, records))
        readings.append(_Reading(compared=compared, unread=unread, is_cut=is_cut))
    return readings


def _compared(
    originals: Sequence[RangeRecord], target: OffsetRange, copies: Sequence[RangeRecord]
) -> Compared:
    timed = are_timed(copies)
    first = copies[: min(_FIRST, 1 + len(copies) // 4)] if timed else []
    return Compared(
        originals=[
            Original(offset, content, record.milliseconds)
            for record, (offset, content) in zip(
                originals, contents(originals, timed=timed), strict=True
            )
        ],
        target=RecordWindow(
            first=target.first, last=target.last, records=contents(copies, timed=timed)
        ),
        begins_at=max((record.milliseconds for record in first), default=None),
    )


def _compacted(pair: ClusterPair, keys: Collection[TopicPartition]) -> set[TopicPartition]:
    """Return the partitions whose topic on the target is compacted, or may be."""
    names = {key: pair.on_target(key).topic for key in keys}
    if not names:
        return set()
    try:
        settings = pair.target.topic_settings(sorted(set(names.values())))
    except Mm2OffsetsError as error:
        log.warning("Whether topics are compacted on the target is not known: %s", error)
        return set(names)
    return {key for key, name in names.items() if is_compacted(settings.get(name, {}))}
