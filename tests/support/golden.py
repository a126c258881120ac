"""The golden sets: recordings of real MirrorMaker 2 runs (see tests/golden/README.md)."""

import csv
import gzip
import json
import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from airflow_mm2_offsets.core import (
    Evidence,
    OffsetSync,
    SourceWindow,
    SyncIndex,
    TargetWindow,
    Translation,
    Watermarks,
)
from airflow_mm2_offsets.kafka.ranges import OffsetRange
from airflow_mm2_offsets.planning.record_ranges import find_range_to_end, find_ranges

HOME = Path(os.environ.get("GOLDEN_SETS") or Path(__file__).parents[1] / "golden")
"""Where they are; noxfile.py names another folder, for those that it has just recorded."""
NAMES = tuple(sorted(path.name for path in HOME.iterdir() if path.is_dir()))
_META = {name: json.loads((HOME / name / "meta.json").read_text()) for name in NAMES}
RECORDED_KINDS: Mapping[str, str] = {name: meta["kind"] for name, meta in _META.items()}
"""What was done in each run."""
BURSTS = tuple(name for name in NAMES if "mm2" in _META[name])
"""Those of tests/support/recording: all was written at once. While ten syncs are in flight
MirrorMaker 2 drops others or holds them back, a partition's first one too."""
_WITHOUT_EXTRAS = ("plain", "txn", "backlog", "aborts", "compacted", "filtered")
NO_EXTRAS = tuple(name for name in NAMES if RECORDED_KINDS[name] in _WITHOUT_EXTRAS)
"""Those where ``Extras.NONE`` holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenPartition:
    """What a partition held at the end of a run, on both sides."""

    source: Watermarks
    target: Watermarks
    records: tuple[tuple[int, int], ...]
    """Target offset and source offset (-1: another writer's), in log order."""
    originals: tuple[int, ...]
    """The source offsets that the target holds, rising."""
    truths: tuple[int, ...]
    """The truth at each of ``originals``."""
    copies: tuple[int, ...]
    """The target offsets that copy a source record."""

    def truth(self, position: int) -> int:
        index = bisect_left(self.originals, position)
        return self.truths[index] if index < len(self.truths) else self.target.high

    def reread(self, position: int, target: int) -> int:
        """Count the records that are read again from ``target``; negative: that many are lost."""
        return bisect_left(self.copies, self.truth(position)) - bisect_left(self.copies, target)

    def target_window(self, around: Translation) -> TargetWindow:
        """What a consumer gets between the syncs that bound ``around``."""
        assert around.low is not None
        last = self.target.high if around.high is None else around.high
        return self.copies_of(OffsetRange(max(self.target.low, around.low - 1), last))

    def copies_of(self, read: OffsetRange) -> TargetWindow:
        """What a consumer gets of these target offsets."""
        begin, end = (bisect_left(self.records, (each, -1)) for each in (read.first, read.last + 1))
        return TargetWindow.of(read.first, read.last, self.records[begin:end])

    def originals_of(self, read: OffsetRange) -> SourceWindow:
        """What a consumer gets of these source offsets."""
        begin, end = (bisect_left(self.originals, each) for each in (read.first, read.last + 1))
        records = tuple((offset, offset) for offset in self.originals[begin:end])
        return SourceWindow(first=read.first, last=read.last, records=records)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenSet:
    """One run."""

    name: str
    topic: str
    syncs: tuple[OffsetSync, ...]
    """Every one, in log order."""
    index: SyncIndex
    partitions: Mapping[int, GoldenPartition]

    def read_both(self, number: int, position: int, marks: Evidence) -> Translation:
        """Translate a position as a plan does that reads both clusters."""
        evidence, partition = marks, self.partitions[number]
        answer = self._translate(number, position, evidence)
        if ranges := find_ranges(self.index, answer, evidence):
            source, target = ranges
            evidence = replace(
                evidence,
                target_window=partition.copies_of(target),
                source_window=partition.originals_of(source) if source else None,
            )
            answer = self._translate(number, position, evidence)
        if to_end := find_range_to_end(self.index, answer, evidence):
            evidence = replace(evidence, source_window=partition.originals_of(to_end))
            answer = self._translate(number, position, evidence)
        return answer

    def _translate(self, number: int, position: int, evidence: Evidence) -> Translation:
        return self.index.translate(self.topic, number, position, evidence=evidence)

    def positions(self, stride: int) -> Iterator[tuple[int, GoldenPartition, int]]:
        """Yield every ``stride``-th position, with its partition."""
        for number, partition in self.partitions.items():
            for position in range(partition.source.low, partition.source.high + 1, stride):
                yield number, partition, position

    def compacted(self) -> SyncIndex:
        """Return the index of the last sync of each partition: what compaction leaves."""
        last = {(sync.topic, sync.partition): sync for sync in self.syncs}
        return SyncIndex(last.values())


@cache
def golden_set(name: str) -> GoldenSet:
    meta = _META[name]
    syncs = tuple(
        OffsetSync(
            topic=row["topic"],
            partition=int(row["partition"]),
            upstream=int(row["upstream"]),
            downstream=int(row["downstream"]),
        )
        for row in _rows(name, "syncs")
    )
    records: dict[int, list[tuple[int, int]]] = {}
    for row in _rows(name, "records"):
        pair = (int(row["target_offset"]), int(row["source_offset"]))
        records.setdefault(int(row["partition"]), []).append(pair)
    partitions = {
        number: _partition(
            _watermarks(meta["source_watermarks"], number),
            _watermarks(meta["target_watermarks"], number),
            sorted(of_partition),
        )
        for number, of_partition in records.items()
    }
    return GoldenSet(
        name=name,
        topic=meta["topic"],
        syncs=syncs,
        index=SyncIndex(syncs),
        partitions=partitions,
    )


def _partition(
    source: Watermarks, target: Watermarks, records: list[tuple[int, int]]
) -> GoldenPartition:
    highest = {original: offset for offset, original in records if original >= 0}
    originals = sorted(highest)
    truths = [target.high] * len(originals)
    best = target.high
    for index in range(len(originals) - 1, -1, -1):
        best = truths[index] = min(best, highest[originals[index]])
    return GoldenPartition(
        source=source,
        target=target,
        records=tuple(records),
        originals=tuple(originals),
        truths=tuple(truths),
        copies=tuple(offset for offset, original in records if original >= 0),
    )


def _watermarks(by_partition: Mapping[str, list[int]], number: int) -> Watermarks:
    low, high = by_partition[str(number)]
    return Watermarks(low=low, high=high)


def _rows(name: str, table: str) -> Iterator[dict[str, str]]:
    with gzip.open(HOME / name / f"{table}.csv.gz", "rt", newline="") as file:
        yield from csv.DictReader(file)
