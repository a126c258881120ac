"""Reads the same offsets of both clusters, and says where they differ; for a copy that keeps them.

``IdentityCollector`` calls it.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.core.compared_records import ComparedRecords, Mismatch
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.ranges import OffsetRange, RangeRecord, read_parts, read_ranges
from airflow_mm2_offsets.planning.offset_evidence import PairWatermarks
from airflow_mm2_offsets.planning.topic_settings import is_compacted

if TYPE_CHECKING:
    from airflow_mm2_offsets.core.evidence import Content

_WHOLE = 5
"""What both clusters hold is compared as a whole, if it is so many times the reach of a look."""
_SAMPLES, _OFFSETS = 8, 10
"""How many samples of more offsets are read, and the offsets of each: the last ones, too."""
_UNCOMMITTED = "read_uncommitted"
"""Aborted and open transactions are copied as well."""

Ranges = Mapping[TopicPartition, OffsetRange]


def look_around(
    positions: Mapping[TopicPartition, int], common: Mapping[TopicPartition, Watermarks], reach: int
) -> dict[TopicPartition, OffsetRange]:
    """Return the offsets around positions that both clusters hold; all, if these are few.

    Args:
        positions: By topic-partition.
        common: What both clusters hold.
        reach: How many offsets to look at on either side.
    """
    ranges = {}
    for key, position in positions.items():
        low, high = common[key].low, common[key].high
        if high - low > _WHOLE * reach:
            low, high = max(low, position - reach), min(high, position + reach)
        ranges[key] = OffsetRange(low, high - 1)
    return ranges


def samples(common: Mapping[TopicPartition, Watermarks], reach: int) -> Iterator[Ranges]:
    """Yield some offsets of what both clusters hold, evenly spread; the last ones first.

    Nothing is left to sample where a look of that reach sees everything.
    """
    large = {key: each for key, each in common.items() if each.high - each.low > _WHOLE * reach}
    for number in range(_SAMPLES if large else 0):
        ranges = {}
        for key, each in large.items():
            last = each.high - 1 - (each.high - each.low) * number // _SAMPLES
            ranges[key] = OffsetRange(max(each.low, last - _OFFSETS + 1), last)
        yield ranges


class SameOffsetReader:
    """The records that were read of the same offsets on both clusters."""

    def __init__(self, pair: ClusterPair, watermarks: PairWatermarks) -> None:
        """Read nothing yet."""
        self._pair = pair
        self._watermarks = watermarks
        self._sides: tuple[dict[TopicPartition, dict[int, Content]], ...] = ({}, {})
        self._ranges: dict[TopicPartition, list[tuple[int, int]]] = {}
        self.source_records = self.target_records = 0

    def read(self, ranges: Ranges, *, max_bytes: int, beyond: int = 0) -> None:
        """Read ranges on both clusters; those that take more than ``max_bytes`` are left out.

        Each side is read ``beyond`` a range, too: an equal record there makes a match no proof.

        What retention has deleted meanwhile, on either cluster, does not count as a hole.
        """
        pair = self._pair
        filled = {key: each for key, each in ranges.items() if each.size}
        names = {key: pair.on_target(key) for key in filled}
        on_source = _longer(filled, self._watermarks.source, beyond)
        on_target = _longer(filled, self._watermarks.target, beyond)
        originals = _read(pair.source, on_source, max_bytes)
        by_name = {names[key]: on_target[key] for key in originals}
        copies = _read(pair.target, by_name, max_bytes)
        both = [key for key in originals if names[key] in copies]
        lows = pair.source.watermarks(both)
        target_lows = pair.target.watermarks(names[key] for key in both)
        for key in both:
            low = max(lows[key].low, target_lows[names[key]].low)
            last = min(on_source[key].last, on_target[key].last)
            offsets = OffsetRange(max(filled[key].first, low), last)
            self._add(key, offsets, (originals[key], copies[names[key]]))

    def unread(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the positions of whose partitions nothing was read."""
        return {key: each for key, each in positions.items() if key not in self._ranges}

    def compared(self, key: TopicPartition) -> ComparedRecords:
        """Return what was read of a partition."""
        source, target = (side.get(key, {}) for side in self._sides)
        return ComparedRecords(ranges=self._ranges.get(key, ()), source=source, target=target)

    def differences(self) -> dict[TopicPartition, str]:
        """Return in words where the clusters differ, by partition; never what records hold."""
        compared = {key: self.compared(key) for key in self._ranges}
        with_holes = [key for key, each in compared.items() if each.has_holes_on_one_side]
        compacted = self._compacted(with_holes)
        mismatches = {}
        for key, each in compared.items():
            source_compacts, target_compacts = compacted.get(key, (False, False))
            if found := each.mismatch(
                source_compacts=source_compacts, target_compacts=target_compacts
            ):
                mismatches[key] = found
        return self._in_words(mismatches)

    def _add(
        self,
        key: TopicPartition,
        offsets: OffsetRange,
        records: tuple[list[RangeRecord], list[RangeRecord]],
    ) -> None:
        if not offsets.size:
            return
        self.source_records += len(records[0])
        self.target_records += len(records[1])
        self._ranges.setdefault(key, []).append((offsets.first, offsets.last))
        for side, read in zip(self._sides, records, strict=True):
            side.setdefault(key, {}).update(
                (each.offset, (each.digest, each.milliseconds))
                for each in read
                if each.offset >= offsets.first
            )

    def _compacted(self, keys: list[TopicPartition]) -> dict[TopicPartition, tuple[bool, bool]]:
        """Return whether the source and the target compact the topics of partitions."""
        names = {key.topic: self._pair.naming.target_topic(key.topic) for key in keys}
        source = self._pair.source.topic_settings(sorted(names))
        target = self._pair.target.topic_settings(sorted(names.values()))
        return {
            key: (
                is_compacted(source.get(key.topic, {})),
                is_compacted(target.get(names[key.topic], {})),
            )
            for key in keys
        }

    def _in_words(self, mismatches: Mapping[TopicPartition, Mismatch]) -> dict[TopicPartition, str]:
        offsets = {
            key: each.offset
            for key, each in mismatches.items()
            if each.on_source and each.on_target
        }
        parts = read_parts(self._pair.source, offsets)
        on_target = {self._pair.on_target(key): offset for key, offset in offsets.items()}
        copies = read_parts(self._pair.target, on_target)
        words = {}
        for key, each in mismatches.items():
            place = f"at offset {each.offset} of {key}"
            if not each.on_target:
                words[key] = f"{place} the source has a record and the target has none"
            elif not each.on_source:
                words[key] = f"{place} the target has a record and the source has none"
            else:
                mine, theirs = parts.get(key), copies.get(self._pair.on_target(key))
                which = mine.differing(theirs) if mine and theirs else ()
                names = ", ".join(which) or "records"
                words[key] = f"{place} the two clusters hold different records ({names} differ)"
        return words


def _longer(
    ranges: Ranges, watermarks: Mapping[TopicPartition, Watermarks], beyond: int
) -> dict[TopicPartition, OffsetRange]:
    """Return ranges that end later, if a cluster holds more."""
    return {
        key: OffsetRange(each.first, min(each.last + beyond, watermarks[key].high - 1))
        for key, each in ranges.items()
    }


def _read(
    cluster: KafkaCluster, ranges: Ranges, max_bytes: int
) -> dict[TopicPartition, list[RangeRecord]]:
    by_key = {each[0]: each for each in ranges.items()}
    return read_ranges(cluster, by_key, max_bytes=max_bytes, isolation=_UNCOMMITTED)
