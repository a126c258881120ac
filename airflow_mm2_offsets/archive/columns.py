"""Offset syncs as numpy columns: built from records, merged, deduplicated, cut.

``codec``, ``history``, ``index_builder`` and ``compaction`` work on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from airflow_mm2_offsets.core import TopicPartition

if TYPE_CHECKING:
    from airflow_mm2_offsets.kafka.sync_log import SyncRecords

Int64s: TypeAlias = NDArray[np.int64]
Selection: TypeAlias = NDArray[np.bool_] | NDArray[np.intp]

NUMBERS = ("offset", "upstream", "downstream")
"""The columns of a sync's offsets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncColumns:
    """Syncs, sorted by partition; those of each partition in log order."""

    partitions: Sequence[TopicPartition]
    """Sorted; one may have no sync."""
    partition_index: NDArray[np.int32]
    """The index in ``partitions`` of each sync's topic-partition."""
    offset: Int64s
    """The offset of each sync's record on the offset-syncs topic."""
    upstream: Int64s
    downstream: Int64s

    @classmethod
    def of_records(cls, syncs: "Mapping[TopicPartition, SyncRecords]") -> "SyncColumns":
        """Return the columns of records that were read from the topic."""
        partitions = sorted(syncs)
        records = [syncs[topic_partition] for topic_partition in partitions]
        # A value is two big-endian numbers.
        values = np.frombuffer(b"".join(each.values for each in records), dtype=">i8")
        upstream, downstream = values.reshape(-1, 2).T.astype(np.int64, order="C")
        return cls(
            partitions=partitions,
            partition_index=np.repeat(
                np.arange(len(partitions), dtype=np.int32), [len(each.offsets) for each in records]
            ),
            offset=np.frombuffer(b"".join(each.offsets for each in records), dtype=np.int64),
            upstream=upstream,
            downstream=downstream,
        )

    def __len__(self) -> int:
        """Return the number of syncs."""
        return len(self.offset)

    def take(self, selection: Selection) -> "SyncColumns":
        """Return the selected syncs; the selection keeps the order of the partitions."""
        return replace(
            self,
            partition_index=self.partition_index[selection],
            offset=self.offset[selection],
            upstream=self.upstream[selection],
            downstream=self.downstream[selection],
        )


def merge(parts: Sequence[SyncColumns]) -> tuple[SyncColumns, NDArray[np.int32]]:
    """Return the syncs of all parts, and the index of each sync's part.

    Args:
        parts: In log order. A sync that two of them hold is returned twice.
    """
    if len(parts) == 1:
        return parts[0], np.zeros(len(parts[0]), dtype=np.int32)
    partitions = sorted({each for part in parts for each in part.partitions})
    ranks = {topic_partition: rank for rank, topic_partition in enumerate(partitions)}
    begins = np.array([_begins(part, ranks) for part in parts], dtype=np.intp)
    begins = begins.reshape(len(parts), len(ranks) + 1)
    lengths = np.diff(begins)
    # A partition's syncs are those of the first part, of the second and so on.
    ends = np.cumsum(lengths.T).reshape(len(ranks), len(parts)).T
    count = int(lengths.sum())
    of = np.empty(count, dtype=np.int32)
    merged = SyncColumns(
        partitions=partitions,
        partition_index=np.repeat(np.arange(len(ranks), dtype=np.int32), lengths.sum(axis=0)),
        offset=np.empty(count, dtype=np.int64),
        upstream=np.empty(count, dtype=np.int64),
        downstream=np.empty(count, dtype=np.int64),
    )
    # Part by part: the first access to new memory costs more than all the rest.
    for number, part in enumerate(parts):
        to = np.arange(len(part)) + np.repeat(ends[number] - begins[number, 1:], lengths[number])
        of[to] = number
        for name in NUMBERS:
            getattr(merged, name)[to] = getattr(part, name)
    return merged, of


def deduplicated(parts: Sequence[SyncColumns]) -> SyncColumns:
    """Return the syncs of all parts, each once; all are of one incarnation."""
    merged, _ = merge(parts)
    _, in_log_order = np.unique(merged.offset, return_index=True)
    by_partition = merged.partition_index[in_log_order].argsort(kind="stable")
    return merged.take(in_log_order[by_partition])


def _begins(part: SyncColumns, ranks: dict[TopicPartition, int]) -> NDArray[np.intp]:
    """Return where in ``part`` each partition begins, and the end."""
    ranks_of_part = [ranks[topic_partition] for topic_partition in part.partitions]
    counts = np.zeros(len(ranks), dtype=np.intp)
    counts[ranks_of_part] = np.bincount(part.partition_index, minlength=len(ranks_of_part))
    return np.append(0, np.cumsum(counts))
