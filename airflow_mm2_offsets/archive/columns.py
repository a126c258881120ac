"""Syncs as columns of numpy: joined, deduplicated, grouped by partition, cut."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from airflow_mm2_offsets.archive.values import SyncRows
from airflow_mm2_offsets.core import TopicPartition

Int64s: TypeAlias = NDArray[np.int64]
Selection: TypeAlias = NDArray[np.bool_] | NDArray[np.intp]


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
        return moved.take(stable_order(moved.place, len(order)))


def stable_order(place: NDArray[np.int32], count: int) -> NDArray[np.intp]:
    """Return the order that sorts ``place``, whose values are below ``count``."""
    # numpy sorts 16 bits by radix: several times as fast.
    return np.argsort(place.astype(np.uint16) if count <= 1 << 16 else place, kind="stable")


def join(parts: Sequence[Columns], *, overlapping: bool) -> Columns:
    """Return the syncs of one generation's files, each once.

    Args:
        parts: The files', in the order of what they cover.
        overlapping: Whether some cover the same offsets.
    """
    if len(parts) == 1 and not overlapping:
        return parts[0]
    ids: dict[TopicPartition, int] = {}

    @cache  # most files hold the same partitions
    def numbers(places: tuple[TopicPartition, ...]) -> NDArray[np.int32]:
        return np.array([ids.setdefault(place, len(ids)) for place in places], dtype=np.int32)

    place = [numbers(tuple(part.places))[part.place] for part in parts]
    joined = Columns(
        places=list(ids),
        place=_concatenate(place, np.int32),
        offset=_concatenate([part.offset for part in parts], np.int64),
        upstream=_concatenate([part.upstream for part in parts], np.int64),
        downstream=_concatenate([part.downstream for part in parts], np.int64),
    )
    if overlapping:
        _, first = np.unique(joined.offset, return_index=True)
        return joined.take(first)
    return joined


def _concatenate(arrays: Iterable[NDArray[np.generic]], dtype: type) -> NDArray:  # type: ignore[type-arg]
    arrays = list(arrays)
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, dtype), *arrays])
