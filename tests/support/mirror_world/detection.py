"""Whether anything could have revealed that an answer loses records, and what.

An answer is above the truth ``t`` if record s, at or after the position, has its highest copy at
``t``, and the answer rests on copies written later. So after ``t`` and before the answer
MirrorMaker 2 rewound to s or to an earlier record, and has not copied s again. Each sync from the
last one up to ``t`` makes a step with the next sync. A step back shows that records were copied
again in it. So does a step in which the target grows by more than the source and one offset. The
loss is detectable

- by the ``syncs``, if they show a step back or such growth, and no later step passes over s and
  seems to have copied it. A step seems so if it copied every offset, or as many as the step
  between the same two source offsets that copied s; a step that leaves out more may have left out
  s. If a sync after ``t`` and before the first step back is of an earlier record than s, the syncs
  say that s lies after it: an answer from before the step back is wrong too, for it is above ``t``;
- by the ``source``, if it can be read and the target has grown in the step around ``t`` by more
  than one offset beyond the records that the source has there or has deleted. In a compacted
  source each offset may have held a record. This evidence replaces growth in a source without
  holes, so here too no later step may pass over s and seem to have copied every offset;
- by the ``records``, if the content of the copy at ``t`` identifies s, or the target holds a
  content twice in the step around ``t``;
- by source and records only if that step is the newest over the position: no plan reads the
  records of others;
- by the ``marks``, the target's watermarks, if syncs lie beyond its end, and by the ``ids`` of the
  target topic, if an archive has seen another id;
- by the connector's ``config``, if it names another topic than the plan: then the records of both
  sides of each sync differ, too;
- by other ``evidence``, if no later sync is of s or of an earlier record: the syncs were right.

Copies before the first known sync show only if the target held more then than the source can have
had, and until as many records were copied since: a plan does not read the whole topic. A source
that begins far up can have had any number. But if the first known sync is known to be the first of
all, the target should have held nothing; and while Connect has not committed the source's last
record, MirrorMaker 2 may be in the midst of copying again: where both can be read, that is
evidence.

In an unclean leader election the target loses its last records, and others take their offsets. The
syncs of the lost records show it if they lie beyond the target's end, or if a later sync has a
lower target offset; else only the records differ.

Otherwise the same syncs, records, ids and Connect offset come from a world where MirrorMaker 2
never rewound (the source has holes), or has copied s again (a marker replaces another hole). There
the answer is right, so ``nothing`` reveals the loss. Connect's offset can't: it lags by up to a
flush interval in any world. It is a last step, to a record that was copied at some time: if the
target has since grown by as many offsets as the source has up to it, the record counts as copied
again, with those before it. Only records reveal whether others have written those offsets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from airflow_mm2_offsets.testing.logs import MARKER
from airflow_mm2_offsets.testing.sync_writer import Sync
from tests.support.mirror_world.world import MirrorWorld


class DetectableBy(StrEnum):
    """What could have revealed a loss."""

    SYNCS = "syncs"
    EVIDENCE = "evidence"
    WATERMARKS = "marks"
    CONFIG = "config"
    IDS = "ids"
    SOURCE = "source"
    RECORDS = "records"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """The parts of a world that could be read."""

    syncs: Sequence[tuple[int, int]]
    """In log order."""
    of_target: Sequence[int]
    """The incarnation of the target topic that each sync is about."""
    complete: bool = False
    """The first of them is the first that the syncs topic ever held, and that is known."""
    source: bool = False
    """The source's records."""
    target: bool = False
    """The target's."""
    watermarks: bool = False
    """The target's."""
    config: bool = False
    """The connector's, from Connect."""
    archived_targets: frozenset[int] = frozenset()
    """The incarnations of the target topic that an archive has seen."""
    misnamed: bool = False
    """The plan takes another topic for the target topic."""


class Loss(NamedTuple):
    """An answer above the truth."""

    position: int
    answer: int
    truth: int


def detectable_by(world: MirrorWorld, readable: Readable, loss: Loss) -> DetectableBy:
    """Return what could have revealed that an answer is above the truth."""
    if readable.misnamed:
        return _misnamed(world, readable)
    stale = sum(each != world.target.incarnation for each in readable.of_target)
    downs = [down for _, down in readable.syncs]
    ended = [at for at in range(1, len(downs)) if at <= stale and downs[at] <= downs[at - 1]]
    if ended:
        # A recreation shows in the syncs: those that are left must tell the rest.
        at = ended[-1]
        left = replace(readable, syncs=readable.syncs[at:], of_target=readable.of_target[at:])
        return detectable_by(world, left, loss)
    return _recreated(world, readable) if stale else _by_copies(world, readable, loss)


def _by_copies(world: MirrorWorld, readable: Readable, loss: Loss) -> DetectableBy:
    entries, truth = world.target.entries, loss.truth
    before, after = _by_time(world, readable.syncs, truth)
    if plainly := _plainly(world, readable, loss, before):
        return plainly
    if truth == world.target.high or all(up > entries[truth].origin for up, _ in after):
        return DetectableBy.EVIDENCE
    if _hides_loss(world, entries[truth].origin, after):
        return DetectableBy.RECORDS if _shows_records(world, readable) else DetectableBy.NOTHING
    before = [sync for sync in before if not _is_lost(world, sync)]
    if not before and _may_be_the_same(after, complete=readable.complete):
        is_short = readable.config and readable.source and _is_short(world)
        return DetectableBy.EVIDENCE if is_short else DetectableBy.NOTHING
    return _by_steps(world, readable, loss, (before, after))


def _plainly(
    world: MirrorWorld, readable: Readable, loss: Loss, before: Sequence[Sync]
) -> DetectableBy | None:
    """Return what shows a loss that needs no step between syncs to show; None if nothing does."""
    if readable.watermarks and any(down >= world.target.high for _, down in readable.syncs):
        return DetectableBy.WATERMARKS
    if _passes_over_sync(world, readable, loss):
        return DetectableBy.SYNCS
    if _rests_on_lost(world, before, loss):
        return DetectableBy.RECORDS if _shows_records(world, readable) else DetectableBy.NOTHING
    return None


def _by_steps(
    world: MirrorWorld, readable: Readable, loss: Loss, syncs: tuple[list[Sync], list[Sync]]
) -> DetectableBy:
    before, after = syncs
    record, noted = world.target.entries[loss.truth].origin, world.mirror.committed
    if readable.config and noted is not None and noted > after[-1][0]:
        after.append((noted, world.target.high - 1))  # Connect's offset is one more step.
    steps = list(pairwise([before[-1] if before else (-1, -1), *after]))
    earlier = (number for number, step in enumerate(steps) if step[0][1] < loss.answer)
    shown = next((number for number in earlier if _goes_back(*steps[number])), None)
    growths = _growth(record, [*pairwise(before), steps[0]])
    if shown is not None and any(upstream <= record for (upstream, _), _ in steps[1 : shown + 1]):
        shown = None
    if shown is not None and not any(
        _has_all(record, *step) or (step[0][0], step[1][0], step[1][1] - step[0][1]) in growths
        for step in steps[shown + 1 :]
    ):
        return DetectableBy.SYNCS
    is_passed = any(_has_all(record, *step) for step in steps[1:])
    if not _is_read(loss.position, steps):
        return DetectableBy.NOTHING
    return _by_logs(world, readable, loss, steps[0], is_passed=is_passed)


def _by_time(
    world: MirrorWorld, syncs: Sequence[Sync], offset: int
) -> tuple[list[Sync], list[Sync]]:
    """Return the syncs of records written before that of a target offset, and the others.

    The former are in the order in which their records were written, the others in log order.
    """
    before, after, truncations = [], [], world.mirror.truncations
    for number, sync in enumerate(syncs):
        lost = _is_lost(world, sync)
        elections = (at for at, (end, high) in enumerate(truncations) if end <= sync[1] < high)
        # What lies at the offset was written after each election that lost what lay there.
        end = min((each for each, _ in truncations[next(elections) :]), default=0) if lost else 0
        if sync[1] <= offset or (lost and end <= offset):
            before.append((not lost, 0 if lost else sync[1], number))
        else:
            after.append(sync)
    return [syncs[number] for *_, number in sorted(before)], after


def _is_lost(world: MirrorWorld, sync: Sync) -> bool:
    """Tell whether the target has lost the record of a sync in an unclean leader election."""
    upstream, downstream = sync
    entries = world.target.entries
    if not any(end <= downstream < high for end, high in world.mirror.truncations):
        return False
    return downstream >= len(entries) or entries[downstream].origin not in {upstream, MARKER}


def _passes_over_sync(world: MirrorWorld, readable: Readable, loss: Loss) -> bool:
    """Tell whether a sync shows the last copy of a record needed, and no later one hides that."""
    highest, syncs = world.highest_copies(), readable.syncs
    return any(
        upstream >= loss.position
        and downstream < loss.answer
        and highest.get(upstream) == downstream
        and not any(
            step[1][0] == upstream or _has_all(upstream, *step) for step in pairwise(syncs[number:])
        )
        for number, (upstream, downstream) in enumerate(syncs)
    )


def _rests_on_lost(world: MirrorWorld, before: Sequence[Sync], loss: Loss) -> bool:
    """Tell whether an answer rests on a sync whose record the target has lost."""
    lost = [sync for sync in before if _is_lost(world, sync)]
    return loss.answer <= max((down for _, down in lost), default=-2) + 1


def _hides_loss(world: MirrorWorld, record: int, after: Sequence[Sync]) -> bool:
    """Tell whether a sync is of a later copy of a record that the target has lost.

    Unless a later sync has a lower target offset, the syncs say that the copy is there.
    """
    return any(
        sync[0] == record
        and _is_lost(world, sync)
        and all(downstream > sync[1] for _, downstream in after[number + 1 :])
        for number, sync in enumerate(after)
    )


def _shows_records(world: MirrorWorld, readable: Readable) -> bool:
    return readable.source and readable.target and _differs(world, readable.syncs)


def _is_short(world: MirrorWorld) -> bool:
    """Tell whether Connect has not yet committed the last record of the source."""
    last = max((each for each in world.source.records if each < world.source.stable), default=-1)
    return last > (-1 if world.mirror.committed is None else world.mirror.committed)


def _is_read(position: int, steps: Sequence[tuple[Sync, Sync]]) -> bool:
    """Tell whether a plan reads the first of some steps: it reads the newest over a position."""
    first, *later = (before[0] <= position < after[0] for before, after in steps)
    return first and not any(later)


def _may_be_the_same(syncs: Sequence[Sync], *, complete: bool) -> bool:
    """Tell whether what the target held before the first known sync may be the same records.

    It may where the source can have had as many by then, or as many were copied since as can lie
    beyond the first sync: where later ones show no hole in the source, it has none before. Before
    the first sync of all, the target should hold nothing.
    """
    (up, down), *_ = syncs
    steps = [(later[0] - each[0], later[1] - each[1]) for each, later in pairwise(syncs)]
    copied = sum(min(step) for step in steps if step[0] > 0)
    has_holes = any(source > target for source, target in steps)
    if complete:
        return copied >= down
    return down <= up or copied >= (down if has_holes else down - up)


def _goes_back(before: Sync, after: Sync) -> bool:
    """Tell whether a step shows that something was copied again in it."""
    source_step, target_step = after[0] - before[0], after[1] - before[1]
    return source_step <= 0 or target_step <= 0 or target_step > source_step + 1


def _growth(record: int, steps: Sequence[tuple[Sync, Sync]]) -> set[tuple[int, int, int]]:
    """Return the steps over a record: between which source offsets, and how the target grew."""
    return {
        (first[0], last[0], last[1] - first[1])
        for first, last in steps
        if first[0] < record < last[0]
    }


def _has_all(record: int, before: Sync, after: Sync) -> bool:
    """Tell whether a step passes over a record and seems to have copied all that it passed."""
    # The record itself is never that of a later sync; Connect's was copied with those before it.
    passes = before[0] < record <= after[0]
    return passes and after[1] - before[1] >= after[0] - before[0]


def _by_logs(
    world: MirrorWorld, readable: Readable, loss: Loss, step: tuple[Sync, Sync], *, is_passed: bool
) -> DetectableBy:
    (begin_up, begin), (end_up, end) = step
    is_counted = readable.source and not is_passed
    if is_counted and end - begin > _most_records(world, begin_up, end_up) + 1:
        return DetectableBy.SOURCE
    if readable.target and _is_seen(world, readable, loss.truth, begin, end):
        return DetectableBy.RECORDS
    return DetectableBy.NOTHING


def _misnamed(world: MirrorWorld, readable: Readable) -> DetectableBy:
    if readable.config:
        return DetectableBy.CONFIG
    source, target = world.source.records, world.target
    seen = any(up in source and target.low <= down < target.high for up, down in readable.syncs)
    return DetectableBy.RECORDS if readable.source and seen else DetectableBy.NOTHING


def _recreated(world: MirrorWorld, readable: Readable) -> DetectableBy:
    """Return what could have revealed that syncs are about another incarnation of the target."""
    downs = [down for _, down in readable.syncs]
    if readable.archived_targets - {world.target.incarnation}:
        return DetectableBy.IDS
    if readable.watermarks and world.target.high <= downs[-1]:
        return DetectableBy.WATERMARKS
    return DetectableBy.RECORDS if _shows_records(world, readable) else DetectableBy.NOTHING


def _differs(world: MirrorWorld, syncs: Sequence[tuple[int, int]]) -> bool:
    """Tell whether the records of a sync differ, where the copies of others do not."""
    settings, entries = world.mirror.settings, world.target.entries
    if settings.append_time or settings.stamped or settings.changed:
        return False
    return any(
        up in world.source.records
        and world.target.low <= down < len(entries)
        and entries[down].record != world.source.records[up]
        for up, down in syncs
    )


def _most_records(world: MirrorWorld, after: int, last: int) -> int:
    """Return how many records the source has in ``(after, last]``, or has deleted by now."""
    source = world.source
    if source.is_cleaned:
        return last - after
    deleted = max(0, min(last + 1, source.low) - (after + 1))
    return deleted + sum(after < offset <= last for offset in source.records)


def _is_seen(world: MirrorWorld, readable: Readable, truth: int, first: int, last: int) -> bool:
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
    originals = list(world.source.records.values())
    return originals.count(entry.record) == 1 and entry.record == world.source.records.get(
        entry.origin
    )
