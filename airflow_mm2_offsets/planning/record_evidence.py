"""Reads the records that settle where a position is on the target, and no more.

``EvidenceCollector`` calls it.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import attrgetter

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    Basis,
    Evidence,
    SourceWindow,
    Status,
    SyncIndex,
    TargetWindow,
    Translation,
    Watermarks,
)
from airflow_mm2_offsets.core.bracket import SyncPoint
from airflow_mm2_offsets.core.duplicates import last_possible_duplicate, recopied_from
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.evidence import WindowRecord
from airflow_mm2_offsets.core.positions import PartitionPosition
from airflow_mm2_offsets.core.rules import segments_with
from airflow_mm2_offsets.core.segments import Segments
from airflow_mm2_offsets.kafka.ranges import (
    Key,
    OffsetRange,
    PartitionRange,
    RangeRecord,
    read_ranges,
)
from airflow_mm2_offsets.planning.offset_evidence import stable_ends

MAX_WINDOW = 100_000
"""The most offsets of one partition that are read on either side."""

_MAY_BE_READ = frozenset(
    {Basis.SYNC, Basis.BETWEEN_SYNCS, Basis.BEFORE_FIRST_SYNC, Basis.COPYING_AGAIN}
)


def gather_windows(
    pair: ClusterPair,
    index: SyncIndex,
    evidence: Mapping[PartitionPosition, Evidence],
    answers: Iterable[Translation],
    *,
    max_bytes: int,
) -> dict[PartitionPosition, tuple[SourceWindow | None, TargetWindow]]:
    """Return the records around each position whose answer they can improve.

    Usually both clusters are read; the target also as far as the same records may have been copied
    again. With ``sole_writer`` the target is read alone if the source is lost or has too much to
    read.

    At most ``max_bytes`` of each cluster are read, the smallest ranges first. A position whose
    range was not read keeps the answer that the syncs give. Positions with the same ranges share
    their windows.
    """
    ranges = {
        key: to_read
        for answer in answers
        if (to_read := _find_ranges(index, answer, evidence[key := _key(answer)]))
    }
    on_target = {
        key: (pair.on_target(key.topic_partition), target) for key, (_, target) in ranges.items()
    }
    copies = read_ranges(pair.target, on_target, max_bytes=max_bytes)
    sources = {
        key: (key.topic_partition, source)
        for key, (source, _) in ranges.items()
        if source and key in copies
    }
    originals = read_source_ranges(pair, sources, max_bytes=max_bytes)
    made: dict[Hashable, tuple[SourceWindow | None, TargetWindow]] = {}
    windows = {}
    # A range that is absent from ``copies`` is beyond ``max_bytes``.
    for key, records in copies.items():
        # The window does not cover offsets that the target has deleted.
        target = on_target[key][1]
        read = OffsetRange(max(target.first, _low(evidence[key].target)), target.last)
        same = on_target[key], read, sources.get(key)
        if same not in made:
            made[same] = _windows(read, records, originals.get(key))
        windows[key] = made[same]
    return windows


def _windows(
    target: OffsetRange,
    copies: Sequence[RangeRecord],
    originals: tuple[OffsetRange, Sequence[RangeRecord]] | None,
) -> tuple[SourceWindow | None, TargetWindow]:
    timed = are_timed(copies)
    return (
        _source_window(*originals, timed=timed) if originals else None,
        TargetWindow.of(target.first, target.last, contents(copies, timed=timed), timed=timed),
    )


def gather_source_to_end(
    pair: ClusterPair,
    index: SyncIndex,
    evidence: Mapping[PartitionPosition, Evidence],
    answers: Iterable[Translation],
    *,
    max_bytes: int,
) -> dict[PartitionPosition, SourceWindow]:
    """Return the source's records up to its end, if their content left an answer open.

    A record that the target has twice is known to be one record if the source has it once.
    """
    ranges = {}
    for answer in answers:
        key = _key(answer)
        source = evidence[key].source
        if answer.status is Status.BOUNDED and answer.basis is Basis.CONTENT and source:
            # All of it, if that is little: a rewind that no sync shows may go back anywhere.
            to_end = OffsetRange(source.low, source.high - 1)
            if to_end.size > MAX_WINDOW:
                first = _first_source_offset(
                    index.partitions[key.topic_partition], answer, evidence[key]
                )
                to_end = OffsetRange(first, source.high - 1)
            if to_end.size <= MAX_WINDOW:
                ranges[key] = key.topic_partition, to_end
    originals = read_source_ranges(pair, ranges, max_bytes=max_bytes)
    # Read last: records that retention has deleted meanwhile were not read.
    watermarks = pair.source.watermarks(key.topic_partition for key in originals)
    made: dict[Hashable, SourceWindow] = {}
    windows = {}
    for key, (offsets, records) in originals.items():
        if copies := evidence[key].target_window:
            same = ranges[key], copies.timed
            if same not in made:
                low = watermarks[key.topic_partition].low
                read = OffsetRange(max(offsets.first, low), offsets.last)
                made[same] = _source_window(read, records, timed=copies.timed)
            windows[key] = made[same]
    return windows


def read_source_ranges(
    pair: ClusterPair, ranges: Mapping[Key, PartitionRange], *, max_bytes: int
) -> dict[Key, tuple[OffsetRange, Sequence[RangeRecord]]]:
    """Return the records of each range, and the part of the range that was read.

    A read ends where the first open transaction begins. MirrorMaker 2 copies what follows all the
    same, unless it reads committed records only.
    """
    stable = stable_ends(pair, {each for each, _ in ranges.values()})
    read = {}
    for key, records in read_ranges(pair.source, ranges, max_bytes=max_bytes).items():
        topic_partition, offsets = ranges[key]
        last = min(offsets.last, stable[topic_partition] - 1)
        read[key] = OffsetRange(offsets.first, last), records
    return read


def _key(answer: Translation) -> PartitionPosition:
    return PartitionPosition(answer.topic_partition, answer.position)


def _first_source_offset(syncs: PartitionSyncs, answer: Translation, evidence: Evidence) -> int:
    """Return the lowest source offset of which a copy may have been read on the target."""
    segments = segments_with(syncs, evidence)
    window = segments.search_range(segments.bracket(answer.position))
    if window is None or evidence.target_window is None:
        return 0
    rewinds = (
        recopied_from(syncs, number)
        for number in range(1, len(syncs.starts))
        if window.begin.downstream
        <= syncs.downstream[syncs.starts[number]]
        <= evidence.target_window.last
    )
    return min((window.begin.upstream, *rewinds))


def _find_ranges(
    index: SyncIndex, answer: Translation, evidence: Evidence
) -> tuple[OffsetRange | None, OffsetRange] | None:
    """Return what to read on source and target; None if nothing helps or it is too much."""
    syncs = index.partitions.get(answer.topic_partition)
    if syncs is None or answer.basis not in _MAY_BE_READ:
        return None
    segments = segments_with(syncs, evidence)
    bracket = segments.bracket(answer.position)
    step = syncs.step_range(bracket)
    window = segments.search_range(bracket) or step
    if window is None:
        return None
    is_bounded = answer.status is Status.BOUNDED
    duplicate = last_possible_duplicate(syncs, bracket, within=MAX_WINDOW)
    first = bracket.before or SyncPoint(0, 0)
    if window is not step and segments.older_low(bracket) is not None:
        first, duplicate = window.begin, None
    elif bracket.is_sync and step:
        window = step
    elif not is_bounded and duplicate is None:
        return None
    if evidence.source:
        for last in _ends(segments, window.end, duplicate):
            # Older copies count for what later steps lack: both sides show it.
            source_end = max(last, window.end, key=attrgetter("upstream")) if step else window.end
            source = _range(first, source_end, 0, evidence.source)
            target = _range(first, last, 1, evidence.target)
            if source and target:
                return source, target
    if evidence.sole_writer and bracket.after and is_bounded:
        target = _range(first, bracket.after, 1, evidence.target)
        return (None, target) if target else None
    return None


def _ends(segments: Segments, end: SyncPoint, duplicate: SyncPoint | None) -> list[SyncPoint]:
    """Return up to where the target may be read, the furthest first.

    ``end`` ends the range that holds a position's copy; it may be a settled sync beyond the last
    possible ``duplicate``, before which records of the range may be copied again.
    """
    if duplicate is None:
        return [end]
    furthest = max(duplicate, end, key=attrgetter("downstream"))
    # What follows the position may be copied again up to there.
    settled = segments.settled_sync(furthest.downstream) or furthest
    return [max(settled, furthest, key=attrgetter("downstream")), furthest, end]


def _range(
    first: SyncPoint, last: SyncPoint, side: int, watermarks: Watermarks | None
) -> OffsetRange | None:
    """Return the offsets of one side; None if too many of them can be read.

    ``side`` is 0 for the source and 1 for the target.
    """
    offsets = OffsetRange(first[side], last[side])
    readable = OffsetRange(max(offsets.first, _low(watermarks)), offsets.last)
    return offsets if readable.size <= MAX_WINDOW else None


def _low(watermarks: Watermarks | None) -> int:
    return watermarks.low if watermarks else 0


def _source_window(
    offsets: OffsetRange, records: Sequence[RangeRecord], *, timed: bool
) -> SourceWindow:
    return SourceWindow(
        first=offsets.first, last=offsets.last, records=contents(records, timed=timed)
    )


def are_timed(copies: Sequence[RangeRecord]) -> bool:
    """Tell whether copies have the time of their records: a broker may have set its own."""
    return not any(record.is_append_time for record in copies)


def contents(records: Sequence[RangeRecord], *, timed: bool) -> list[WindowRecord]:
    """Return what tells records apart, the same for a record and its copies."""
    return [
        (record.offset, (record.digest, record.milliseconds) if timed else record.digest)
        for record in records
    ]
