"""What was read from the clusters beyond the syncs, as values; ``planning`` collects it."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from operator import itemgetter
from typing import TypeAlias

from airflow_mm2_offsets.core.bracket import SyncPoint
from airflow_mm2_offsets.core.result import Uncopied


class Extras(StrEnum):
    """Whether a range of the target may hold offsets that copy no new record.

    Those are transaction markers, records copied twice, and records of other writers.
    """

    POSSIBLE = "possible"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermarks:
    """The offsets that a partition holds: ``low`` is its first, ``high`` follows its last."""

    low: int
    high: int


Content: TypeAlias = Hashable
"""What a record holds (key, value, timestamp, headers), equal for equal records."""

WindowRecord: TypeAlias = tuple[int, Content]
"""An offset and the content of the record there."""


def offsets_of_unique(records: Sequence[WindowRecord]) -> dict[Content, int]:
    """Return the offsets by content, without those of equal records."""
    counts = Counter(content for _, content in records)
    return {content: offset for offset, content in records if counts[content] == 1}


@dataclass(frozen=True, kw_only=True)
class RecordWindow:
    """The records that a read_committed consumer got of a partition's offsets ``[first, last]``."""

    first: int
    last: int
    records: Sequence[WindowRecord]
    """In log order."""

    @cached_property
    def unique(self) -> Mapping[Content, int]:
        """The offsets by content, without those of equal records."""
        return offsets_of_unique(self.records)

    def covers(self, first: int, last: int) -> bool:
        """Tell whether the window holds all of ``[first, last]``."""
        return self.first <= first and last <= self.last

    def content_at(self, offset: int) -> Content | None:
        """Return the content of the record at ``offset``; None without a record there."""
        at = bisect_left(self.records, offset, key=itemgetter(0))
        if at == len(self.records) or self.records[at][0] != offset:
            return None
        return self.records[at][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceWindow(RecordWindow):
    """What was read of the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetWindow(RecordWindow):
    """What was read of the target.

    Counting in it holds only if MirrorMaker 2 alone writes to the topic.
    """

    delivered: Sequence[int]
    """The offsets of the records that are not copied again later, rising."""
    superseded_once: int | None = None
    """The first offset of a record without a repetition, between two that are repeated."""
    timed: bool = True
    """Whether a record's timestamp is part of its content."""

    @classmethod
    def of(
        cls, first: int, last: int, records: Iterable[WindowRecord], *, timed: bool = True
    ) -> "TargetWindow":
        """Make the window of what was read.

        If a record repeats an earlier one, either MirrorMaker 2 copied again from the earlier one
        on, or two records are equal. So no record from the first that is repeated up to the last
        that repeats one counts as delivered.

        Args:
            first: The first target offset that was requested.
            last: The last one.
            records: In log order.
            timed: See ``timed``.
        """
        read = tuple(records)
        seen: dict[Content, int] = {}
        begin = end = len(read)
        for index, (_, content) in enumerate(read):
            if (earlier := seen.setdefault(content, index)) != index:
                begin, end = min(begin, earlier), index
        delivered = tuple(offset for offset, _ in read[:begin] + read[end:])
        times = Counter(content for _, content in read)
        once = (offset for offset, content in read[begin:end] if times[content] == 1)
        return cls(
            first=first,
            last=last,
            records=read,
            delivered=delivered,
            superseded_once=next(once, None),
            timed=timed,
        )

    def delivers(self, offset: int) -> bool:
        """Tell whether ``offset`` holds a record that is not copied again later."""
        index = bisect_left(self.delivered, offset)
        return index < len(self.delivered) and self.delivered[index] == offset

    def back_from(self, offset: int, records: int) -> int | None:
        """Return the offset of the record ``records`` before ``offset``; None without one.

        It is not above ``superseded_once``: a later copy passed over that record.
        """
        index = bisect_left(self.delivered, offset) - records
        if index < 0:
            return None
        counted = self.delivered[index]
        return counted if self.superseded_once is None else min(counted, self.superseded_once)

    def on_from(self, offset: int, records: int) -> int | None:
        """Return the offset of the record ``records`` after ``offset``; None without one."""
        index = bisect_right(self.delivered, offset) + records - 1
        return self.delivered[index] if index < len(self.delivered) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known beyond the syncs, to translate one partition's positions."""

    extras: Extras = Extras.POSSIBLE
    source: Watermarks | None = None
    """The source's watermarks. A position outside of them is refused, unless it is below them and
    MirrorMaker 2 copied from there before the source deleted the records."""
    target: Watermarks | None = None
    """The target's watermarks. Answers outside of them are refused."""
    target_window: TargetWindow | None = None
    source_window: SourceWindow | None = None
    sole_writer: bool = False
    """The user's word that only MirrorMaker 2 writes to the topic on the target, in order (one
    request in flight, which is Connect's default, or idempotence), that the topic is not compacted
    there, and that no transform makes two copies of one record differ. Only then may records be
    counted."""
    contradiction: SyncPoint | None = None
    """A sync whose record was read on both clusters and differs."""
    changed_records: bool = False
    """A transform changes records on their way, so that those of a sync may differ."""
    drained: bool = False
    """When the target's end was read, every record before the position had been copied and none
    from the position on. The first was established before the read, the second after it."""
    committed: int | None = None
    """The last source offset that Connect has committed as copied."""
    source_end: int | None = None
    """No record from this source offset on existed when the syncs were read: their copies are yet
    to come."""
    uncopied: Uncopied | None = None
    """Records from the position on that MirrorMaker 2 has passed over, and no transform dropped."""


NO_EVIDENCE = Evidence()
