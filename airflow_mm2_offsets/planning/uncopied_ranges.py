"""Chooses ranges that show whether MirrorMaker 2 passed records over; ``uncopied_records`` asks.

Where little lies between a position and what MirrorMaker 2 has passed, all of it is read. Where
that is too much, by offsets or by bytes, only the steps of the syncs that lack copies are read, and
of each a sample.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TypeAlias

from airflow_mm2_offsets.core import Watermarks
from airflow_mm2_offsets.core.uncopied import CopyStep
from airflow_mm2_offsets.kafka.ranges import OffsetRange
from airflow_mm2_offsets.planning.record_ranges import MAX_WINDOW

_THRIFTY_SAMPLE = 1_000
"""The same where the records are large."""
SAMPLE = 10_000
"""Source offsets that are read of a step beside as many as it has on the target."""


Pairs: TypeAlias = Sequence[tuple[Sequence[OffsetRange], OffsetRange]]
"""Ranges of the source, and the range of the target that holds their copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangesToCompare:
    """What to read for some positions of a partition."""

    position: int
    """The lowest of them."""
    pairs: Pairs
    confirming: Pairs
    """What to read where ``pairs`` lack copies: all places where these may lie."""
    unread: Sequence[OffsetRange] = ()
    """What is left out of the source where copies are lacking."""
    thrifty: "RangesToCompare | None" = None
    """What to read where ``pairs`` are too many bytes, the steps that lack most first; None: there
    is nothing less to read."""

    def of(self, pairs: Pairs) -> "RangesToCompare":
        """Return the same where only some of the pairs could be read."""
        sources = [each for ranges, _ in self.pairs for each in ranges]
        read = {each for ranges, _ in pairs for each in ranges}
        return replace(
            self,
            pairs=pairs,
            confirming=[*pairs, *self.confirming[len(self.pairs) :]],
            unread=[*self.unread, *(each for each in sources if each not in read)],
        )

    @property
    def size(self) -> int:
        """How many offsets there are to read on the side that has more."""
        source = sum(each.size for ranges, _ in self.pairs for each in ranges)
        return max(source, sum(target.size for _, target in self.pairs))


def ranges_to_compare(
    positions: Iterable[int],
    steps: Sequence[CopyStep],
    source: Watermarks,
    target: Watermarks,
    *,
    passed: int,
) -> Iterator[tuple[list[int], RangesToCompare]]:
    """Yield positions of one partition, and what to read for them; at most twice.

    Args:
        positions: Those below what MirrorMaker 2 has passed.
        steps: See ``copy_steps``.
        source: The source's watermarks.
        target: The target's; its high one is where open transactions begin.
        passed: The last source offset that MirrorMaker 2 has passed.
    """
    near: list[int] = []
    far: list[int] = []
    for position in sorted(positions):
        on_source = OffsetRange(max(position, source.low), passed)
        copies = _copies(position, steps, target)
        is_near = on_source.size <= MAX_WINDOW and copies.size <= MAX_WINDOW
        (near if is_near or on_source.size <= MAX_WINDOW // 4 else far).append(position)
    if near:
        yield near, _whole(near[0], steps, source, target, passed=passed)
    if far:
        lacking = _lacking(far[0], steps, source, target, sample=SAMPLE, passed=passed)
        if lacking.pairs:
            yield far, lacking


def _copies(position: int, steps: Sequence[CopyStep], target: Watermarks) -> OffsetRange:
    """Return where the copies of a position's records lie, if MirrorMaker 2 never went back."""
    first = min(
        each.target_first for each in steps if not each.is_rewind and each.source_last >= position
    )
    return OffsetRange(max(first, target.low), target.high - 1)


def _whole(
    position: int, steps: Sequence[CopyStep], source: Watermarks, target: Watermarks, *, passed: int
) -> RangesToCompare:
    on_source = OffsetRange(max(position, source.low), passed)
    copies = _copies(position, steps, target)
    if copies.size > MAX_WINDOW:
        most = min(MAX_WINDOW, 4 * on_source.size + SAMPLE)
        copies = OffsetRange(copies.last - most + 1, copies.last)
    log = OffsetRange(target.low, target.high - 1)
    everywhere: Pairs = [([on_source], log if log.size <= MAX_WINDOW else copies)]
    rewinds: Pairs = [([], each) for each in _rewinds(steps, target, before=everywhere[0][1].first)]
    return RangesToCompare(
        position=position,
        pairs=[([on_source], copies)],
        confirming=[*everywhere, *rewinds],
        thrifty=_lacking(position, steps, source, target, sample=_THRIFTY_SAMPLE, passed=passed),
    )


def _lacking(
    position: int,
    steps: Sequence[CopyStep],
    source: Watermarks,
    target: Watermarks,
    *,
    sample: int,
    passed: int,
) -> RangesToCompare:
    pairs: list[tuple[Sequence[OffsetRange], OffsetRange]] = []
    unread: list[OffsetRange] = []
    first, left = max(position, source.low), MAX_WINDOW
    for step in sorted(steps, key=attrgetter("lacking"), reverse=True):
        lacking = OffsetRange(max(first, step.source_first), min(step.source_last, passed))
        if not step.lacking or not lacking.size:
            continue
        last = min(step.target_last, target.high - 1)
        copies = OffsetRange(max(step.target_first, target.low, last - MAX_WINDOW // 4), last)
        samples, rest = _samples(lacking, copies.size + sample)
        left -= sum(each.size for each in samples)
        if left < 0:
            unread.append(lacking)
            continue
        pairs.append((samples, copies))
        unread += rest
    rewinds: Pairs = [([], each) for each in _rewinds(steps, target, before=target.high)]
    return RangesToCompare(
        position=position, pairs=pairs, confirming=[*pairs, *rewinds], unread=unread
    )


def _rewinds(
    steps: Sequence[CopyStep], target: Watermarks, *, before: int
) -> Iterator[OffsetRange]:
    """Yield where copies of any record can lie, the shortest first, as far as that is not much."""
    rewinds = [
        OffsetRange(max(each.target_first, target.low), min(each.target_last, before - 1))
        for each in steps
        if each.is_rewind
    ]
    left = MAX_WINDOW
    for each in sorted(rewinds, key=attrgetter("size")):
        left -= each.size
        if each.size and left >= 0:
            yield each


def _samples(offsets: OffsetRange, size: int) -> tuple[list[OffsetRange], list[OffsetRange]]:
    """Return the beginning and the end of a range, and what lies between them."""
    if offsets.size <= 2 * size:
        return [offsets], []
    begin, end = offsets.first + size, offsets.last - size
    samples = [OffsetRange(offsets.first, begin - 1), OffsetRange(end + 1, offsets.last)]
    return samples, [OffsetRange(begin, end)]
