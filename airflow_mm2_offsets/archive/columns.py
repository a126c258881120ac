"""Syncs as columns of numpy: merged, deduplicated, sorted by partition, cut."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from airflow_mm2_offsets.archive.values import SyncRows
from airflow_mm2_offsets.core import TopicPartition

Int64s: TypeAlias = NDArray[np.int64]
Selection: TypeAlias = NDArray[np.bool_] | NDArray[np.intp]

NUMBERS = ("offset", "upstream", "downstream")
"""What is known of each sync beside its partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Syncs of one generation of the syncs topic; those of each partition in log order."""

    places: Sequence[TopicPartition]
    place: NDArray[np.int32]
    """The index in ``places`` of each sync's topic and partition."""
    offset: Int64s
    """Its offset on the offset-syncs topic."""
    upstream: Int64s
    downstream: Int64s

    @classmethod
    def of_rows(cls, rows: SyncRows) -> "Columns":
        """Look at the same memory as ``rows``."""
        return cls(
            places=rows.places,
            place=np.frombuffer(rows.place, dtype=np.int32),
            offset=np.frombuffer(rows.offset, dtype=np.int64),
            upstream=np.frombuffer(rows.upstream, dtype=np.int64),
            downstream=np.frombuffer(rows.downstream, dtype=np.int64),
        )

    def __len__(self) -> int:
        """Return the number of syncs."""
        return len(self.offset)

    def take(self, which: Selection) -> "Columns":
        """Return the syncs that ``which`` selects, in its order."""
        return replace(
            self,
            place=self.place[which],
            offset=self.offset[which],
            upstream=self.upstream[which],
            downstream=self.downstream[which],
        )

    def sorted_by_place(self) -> "Columns":
        """Return them sorted by topic and partition; what is equal keeps its order."""
        order = sorted(range(len(self.places)), key=self.places.__getitem__)
        ranks = np.empty(len(order), dtype=np.int32)
        ranks[order] = np.arange(len(order), dtype=np.int32)
        moved = replace(self, places=[self.places[i] for i in order], place=ranks[self.place])
        # numpy sorts 16 bits by radix: several times as fast.
        keys = moved.place.astype(np.uint16) if len(order) <= 1 << 16 else moved.place
        return moved.take(np.argsort(keys, kind="stable"))


def merge(parts: Sequence[Columns]) -> tuple[Columns, NDArray[np.int32]]:
    """Return the syncs of all parts, and which part each is of.

    Args:
        parts: In log order, and sorted by partition, as the answer is. What is equal in two of
            them is there twice.
    """
    if len(parts) == 1:
        return parts[0], np.zeros(len(parts[0]), dtype=np.int32)
    ranks = _ranks(parts)
    begins = np.array([_begins(part, ranks) for part in parts], dtype=np.intp)
    begins = begins.reshape(len(parts), len(ranks) + 1)
    lengths = np.diff(begins)
    # A partition's syncs are those of the first part, of the second and so on.
    ends = np.cumsum(lengths.T).reshape(len(ranks), len(parts)).T
    count = int(lengths.sum())
    of = np.empty(count, dtype=np.int32)
    merged = Columns(
        places=list(ranks),
        place=np.repeat(np.arange(len(ranks), dtype=np.int32), lengths.sum(axis=0)),
        offset=np.empty(count, dtype=np.int64),
        upstream=np.empty(count, dtype=np.int64),
        downstream=np.empty(count, dtype=np.int64),
    )
    # Part by part: memory that is touched for the first time costs more than all that is done here.
    for number, part in enumerate(parts):
        to = np.arange(len(part)) + np.repeat(ends[number] - begins[number, 1:], lengths[number])
        of[to] = number
        for name in NUMBERS:
            getattr(merged, name)[to] = getattr(part, name)
    return merged, of


def deduplicated(parts: Sequence[Columns]) -> Columns:
    """Return the syncs of one generation's parts, each once."""
    merged, _ = merge(parts)
    _, first = np.unique(merged.offset, return_index=True)
    return merged.take(first).sorted_by_place()


def _ranks(parts: Sequence[Columns]) -> dict[TopicPartition, int]:
    places = sorted({place for part in parts for place in part.places})
    return {place: rank for rank, place in enumerate(places)}


def _begins(part: Columns, ranks: dict[TopicPartition, int]) -> NDArray[np.intp]:
    """Return where in ``part`` each place begins, and the end."""
    mine = np.array([ranks[place] for place in part.places], dtype=np.int32)
    counts = np.zeros(len(ranks), dtype=np.intp)
    counts[mine] = np.bincount(part.place, minlength=len(mine))
    return np.append(0, np.cumsum(counts))
