"""Whether anything could have told that an answer loses records, and what.

An answer ``a`` is above the truth ``t`` where record s, at or after the position, has its highest
copy at ``t``: MirrorMaker 2 was at s when it wrote ``t``, and back at the position or before it
when it wrote what the answer rests on. That it stepped back in between shows

- in the ``syncs``: one between ``t`` and the answer steps back, or the target has grown by more
  than the source from the last sync up to ``t`` to the next (before the first sync known: from 0
  on both sides). One offset more shows nothing yet, for s and the record it stepped back to were
  both written after the step's first record; so markers alone are no sign;
- in the ``source``, where it can be read: the target has grown by more than the records that the
  source still has there, or has deleted;
- in the ``records``, where both or the target can be read: the copy at ``t`` is known by its
  content to be of s, or the target holds a content twice between those two syncs.

Where no sync lies between ``t`` and the answer, it was not the syncs that were wrong but what was
made of other ``evidence``. An end of the target before a sync shows in the ``watermarks``.

Where none of these holds, the same syncs, records, ids and Connect offset come from a world where
MirrorMaker 2 never stepped back and the source merely has holes, and the answer is right there:
``nothing`` tells. Connect's offset can't: it lags by up to a flush interval in any world.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.support.mirror_world.records import Record
from tests.support.mirror_world.world import World


class ToldBy(StrEnum):
    """What could have told."""

    SYNCS = "syncs"
    EVIDENCE = "evidence"
    WATERMARKS = "marks"
    SOURCE = "source"
    RECORDS = "records"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """What could be read of a world."""

    syncs: Sequence[tuple[int, int]]
    """In log order."""
    of_target: Sequence[int]
    """Which incarnation of the target topic each speaks of."""
    source: bool = False
    """The source's records."""
    target: bool = False
    """The target's."""
    watermarks: bool = False
    """The target's."""


def told_by(world: World, readable: Readable, answer: int, truth: int) -> ToldBy:
    """Return what could have told that ``answer`` is above ``truth``."""
    if readable.of_target and readable.of_target[0] != world.target.incarnation:
        return _recreated(world, readable)
    before = [sync for sync in readable.syncs if sync[1] <= truth]
    after = [sync for sync in readable.syncs if truth < sync[1] <= answer]
    if not after:
        return ToldBy.EVIDENCE
    chain = [before[-1] if before else (-1, -1), *after]
    begin, end = chain[0], chain[1]
    if any(later[0] <= one[0] for one, later in zip(chain, chain[1:], strict=False)):
        return ToldBy.SYNCS
    grown = end[1] - begin[1]
    if grown > end[0] - begin[0] + 1:
        return ToldBy.SYNCS
    if readable.source and grown > _most_records(world, begin[0], end[0]) + 1:
        return ToldBy.SOURCE
    if readable.target and _is_seen(world, readable, truth, begin[1], end[1]):
        return ToldBy.RECORDS
    return ToldBy.NOTHING


def _recreated(world: World, readable: Readable) -> ToldBy:
    """Return what could have told that syncs speak of another incarnation of the target."""
    downs = [down for _, down in readable.syncs]
    if any(later <= one for one, later in zip(downs, downs[1:], strict=False)):
        return ToldBy.SYNCS
    if readable.watermarks and world.target.high <= downs[-1]:
        return ToldBy.WATERMARKS
    if readable.source and readable.target and _differs(world, readable.syncs):
        return ToldBy.RECORDS
    return ToldBy.NOTHING


def _differs(world: World, syncs: Sequence[tuple[int, int]]) -> bool:
    """Tell whether the records of a sync differ, where the copies of others do not."""
    if not _keeps_content(world):
        return False
    entries = world.target.entries
    return any(
        up in world.source.records
        and world.target.low <= down < len(entries)
        and entries[down].record != world.source.records[up]
        for up, down in syncs
    )


def _keeps_content(world: World) -> bool:
    settings = world.mirror.settings
    return not (settings.append_time or settings.stamped or settings.changed)


def _most_records(world: World, after: int, last: int) -> int:
    """Return how many records the source can ever have had in ``(after, last]``, as it seems now."""
    source = world.source
    deleted = max(0, min(last + 1, source.low) - (after + 1))
    offsets = sorted(source.records)
    return deleted + bisect_right(offsets, last) - bisect_right(offsets, after)


def _is_seen(world: World, readable: Readable, truth: int, first: int, last: int) -> bool:
    copies = [
        entry.record
        for entry in world.target.entries[max(first, world.target.low, 0) : last + 1]
        if entry.record is not None
    ]
    if len(set(copies)) < len(copies):
        return True
    if not readable.source or not world.target.low <= truth < world.target.high:
        return False
    entry = world.target.entries[truth]
    if entry.record is None:
        return False
    originals: list[Record] = list(world.source.records.values())
    return originals.count(entry.record) == 1 and entry.record == world.source.records.get(
        entry.origin
    )
