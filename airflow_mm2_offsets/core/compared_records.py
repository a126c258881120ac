"""Compares the records of two clusters offset by offset; ``identity`` translates by the result.

An anchor is an offset whose record is the same on both clusters, and equal to no other record that
was read. A copy that keeps the order has every later record after an anchor, and every earlier one
before it. Equal records can't be told apart: they are no anchors.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from airflow_mm2_offsets.core.evidence import Content


class Mismatch(NamedTuple):
    """An offset at which the clusters do not hold the same record."""

    offset: int
    on_source: bool
    """Whether the source has a record there."""
    on_target: bool


@dataclass(frozen=True, kw_only=True)
class ComparedRecords:
    """The records that were read of the same offsets on both clusters, committed or not.

    Each side is read further than the other one reaches: a record after the end of the copy may be
    equal to the one before, and its copy lie there.
    """

    ranges: Sequence[tuple[int, int]] = ()
    """The first and the last offset of each range that was read on both."""
    source: Mapping[int, Content] = field(default_factory=dict)
    """By offset; also beyond the ranges."""
    target: Mapping[int, Content] = field(default_factory=dict)

    def mismatch(self, *, source_compacts: bool, target_compacts: bool) -> Mismatch | None:
        """Return the first offset that proves two different logs; None without one.

        Compaction explains a record that only the other side has: a later one has its key. A hole
        on both sides is a transaction marker, or was compacted on both.
        """
        for offset in self._compared_offsets():
            on_source, on_target = offset in self.source, offset in self.target
            if on_source and on_target:
                if self.source[offset] != self.target[offset]:
                    return Mismatch(offset, on_source, on_target)
            elif not (target_compacts if on_source else source_compacts):
                return Mismatch(offset, on_source, on_target)
        return None

    @property
    def has_holes_on_one_side(self) -> bool:
        """Whether a record lies on one side only, of what was read on both."""
        one_sided = self.source.keys() ^ self.target.keys()
        return any(self._covers(offset, offset) for offset in one_sided)

    def _compared_offsets(self) -> Iterator[int]:
        """Yield the offsets of records on either side, of what was read on both, rising."""
        for offset in sorted(self.source.keys() | self.target.keys()):
            if self._covers(offset, offset):
                yield offset

    @cached_property
    def anchors(self) -> list[int]:
        """The anchors, rising."""
        source, target = Counter(self.source.values()), Counter(self.target.values())
        return sorted(
            offset
            for offset, content in self.source.items()
            if self.target.get(offset) == content and source[content] == 1 and target[content] == 1
        )

    @cached_property
    def count(self) -> int:
        """How many offsets hold the same record on both."""
        return sum(self.target.get(offset) == content for offset, content in self.source.items())

    def anchor_before(self, position: int) -> int | None:
        """Return the last anchor below a position."""
        at = bisect_left(self.anchors, position)
        return self.anchors[at - 1] if at else None

    def anchor_from(self, position: int) -> int | None:
        """Return the first anchor at a position or above."""
        at = bisect_left(self.anchors, position)
        return self.anchors[at] if at < len(self.anchors) else None

    def proves(self, position: int) -> bool:
        """Tell whether each record from a position on has its copy at the position or above.

        The records before it lie below it likewise. One of two things shows that: an anchor is the
        last record before the position; or from the position up to an anchor, both clusters hold
        the same.
        """
        before = self.anchor_before(position)
        if before is not None and self._covers(before, position - 1):
            sides = (self.source, self.target)
            if not any(before < each < position for side in sides for each in side):
                return True
        after = self.anchor_from(position)
        if after is None or not self._covers(position, after):
            return False
        source, target = (
            {each for each in side if position <= each <= after}
            for side in (self.source, self.target)
        )
        return source == target

    def _covers(self, first: int, last: int) -> bool:
        return any(begin <= first and last <= end for begin, end in self.ranges)
