"""Reads the records that settle where a position is on the target, and no more.

``EvidenceCollector`` calls it.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    Evidence,
    SourceWindow,
    SyncIndex,
    TargetWindow,
    Translation,
)
from airflow_mm2_offsets.core.evidence import WindowRecord
from airflow_mm2_offsets.core.positions import PartitionPosition
from airflow_mm2_offsets.kafka.ranges import (
    Key,
    OffsetRange,
    PartitionRange,
    RangeRecord,
    read_ranges,
)
from airflow_mm2_offsets.planning.offset_evidence import stable_ends
from airflow_mm2_offsets.planning.record_ranges import (
    find_range_to_end,
    find_ranges,
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
        if (to_read := find_ranges(index, answer, evidence[key := _key(answer)]))
    }
    on_target = {
        key: (pair.on_target(key.topic_partition), target) for key, (_, target) in ranges.items()
    }
    # A read ends where the first open transaction begins. Read before: it only moves on.
    names = {name for name, _ in on_target.values()}
    stable = pair.target.watermarks(names, isolation="read_committed") if names else {}
    copies = read_ranges(pair.target, on_target, max_bytes=max_bytes)
    # Read last: records that retention has deleted meanwhile were not read.
    lows = pair.target.watermarks({on_target[key][0] for key in copies}) if copies else {}
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
        name, target = on_target[key]
        read = OffsetRange(
            max(target.first, lows[name].low), min(target.last, stable[name].high - 1)
        )
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
        if to_end := find_range_to_end(index, answer, evidence[key]):
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
) -> dict[Key, tuple[OffsetRange, list[RangeRecord]]]:
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
