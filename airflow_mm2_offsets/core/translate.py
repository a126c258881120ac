"""Finds the answer for one position: which syncs bound it, what else is known, what refuses it."""

from dataclasses import replace
from functools import reduce
from operator import and_

from airflow_mm2_offsets.core.bounds import Bounds, bounds_of, counts
from airflow_mm2_offsets.core.content import match_content
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.evidence import NO_EVIDENCE, Evidence, TargetWindow, Watermarks
from airflow_mm2_offsets.core.recopies import shown_again
from airflow_mm2_offsets.core.stretch import Stretch
from airflow_mm2_offsets.core.translation import Basis, Status, Strategy, Translation


def translate(
    syncs: PartitionSyncs | None,
    topic: str,
    partition: int,
    position: int,
    *,
    strategy: Strategy = Strategy.SAFE,
    evidence: Evidence = NO_EVIDENCE,
) -> Translation:
    """Translate one position; see ``SyncIndex.translate``."""
    blank = Translation(
        topic=topic,
        partition=partition,
        position=position,
        status=Status.REFUSED,
        basis=Basis.NEVER_REPLICATED,
        reason=f"no offset sync is known of {topic}[{partition}]: MirrorMaker 2 never copied it",
    )
    if refusal := _outside_source(blank, syncs, evidence.source):
        return refusal
    if syncs is not None and not syncs and syncs.history_cut:
        return _before_history(blank, syncs)
    if not syncs:
        return _drained(blank, evidence.target) if evidence.drained else blank
    stretches = syncs.stretches(position, caught_up=evidence.caught_up)
    newest = stretches[0]
    if newest.floor is None and (syncs.history_cut or strategy is not Strategy.SAFE):
        return _before_history(blank, syncs)
    bounds, basis = _prove(syncs, stretches, evidence)
    cut = syncs.history_cut and any(each.floor is None for each in stretches)
    if cut and basis is Basis.COPYING_AGAIN:
        return _copied_before_history(blank, syncs)
    answer = _answer(blank, bounds, basis, newest)
    if strategy is not Strategy.SAFE:
        answer = replace(answer, target=_guess(newest, strategy))
    return _within_target(answer, evidence.target)


def _outside_source(
    blank: Translation, syncs: PartitionSyncs | None, source: Watermarks | None
) -> Translation | None:
    if source is None or source.low <= blank.position <= source.high:
        return None
    if blank.position > source.high:
        return blank.refused(
            Basis.OUTSIDE_SOURCE,
            f"position {blank.position} lies beyond the source's end {source.high}: it is not of "
            f"this cluster or topic, or the topic was made again",
        )
    if syncs and syncs.first.upstream <= blank.position:
        return None
    return blank.refused(
        Basis.OUTSIDE_SOURCE,
        f"position {blank.position} lies below the source's first offset {source.low}: its "
        f"records were deleted before MirrorMaker 2 copied them",
    )


def _drained(blank: Translation, target: Watermarks | None) -> Translation:
    if target is None:
        return blank
    return replace(
        blank,
        status=Status.EXACT,
        basis=Basis.DRAINED,
        reason=f"no record of it was ever to be copied: the answer is {target.high}, the target's "
        f"end",
        target=target.high,
        low=target.high,
        high=target.high,
    )


def _prove(
    syncs: PartitionSyncs, stretches: tuple[Stretch, ...], evidence: Evidence
) -> tuple[Bounds, Basis]:
    """Return the closest bounds that syncs and evidence prove, and what they rest on."""
    newest = stretches[0]
    if newest.ceiling is None and not newest.is_sync and evidence.drained and evidence.target:
        end = evidence.target.high
        return Bounds(low=end, high=end), Basis.DRAINED
    bounds = reduce(and_, (bounds_of(each, evidence) for each in stretches))
    basis, read_on = _basis(stretches, evidence), -1
    if len(stretches) == 1 and (found := _by_content(newest, evidence)):
        window, known = found
        if not (newest.is_sync and known == bounds):
            bounds, basis = known, Basis.CONTENT
        read_on = window.last
    again = shown_again(syncs, newest.position)
    if again and again.downstream > read_on:
        bounds = bounds.up_to(again.downstream)
    return bounds, basis


def _before_history(blank: Translation, syncs: PartitionSyncs) -> Translation:
    first = "{} -> {}".format(*syncs.first) if syncs else "the next sync"
    if not syncs.history_cut:
        return blank.refused(
            Basis.BEFORE_FIRST_SYNC,
            f"position {blank.position} lies before the first known sync ({first}), where only "
            f"strategy safe has an answer",
        )
    return blank.refused(
        Basis.HISTORY_CUT,
        f"position {blank.position} lies before {first}, the first since its history was cut: the "
        f"topic was made again on a cluster and what was copied before is gone, or an archive does "
        f"not hold older syncs",
    )


def _copied_before_history(blank: Translation, syncs: PartitionSyncs) -> Translation:
    return blank.refused(
        Basis.COPYING_AGAIN,
        "MirrorMaker 2 may copy again since a restart, and until it is as far as before, records "
        "from position {} on may exist only in copies older than {} -> {}, the first sync since "
        "its history was cut: wait for it to catch up".format(blank.position, *syncs.first),
    )


def _by_content(stretch: Stretch, evidence: Evidence) -> tuple[TargetWindow, Bounds] | None:
    source, target = evidence.source_window, evidence.target_window
    if source is None or target is None:
        return None
    source_end = evidence.source.high if evidence.source else None
    found = match_content(stretch, source, target, source_end=source_end)
    return (target, found) if found else None


def _basis(stretches: tuple[Stretch, ...], evidence: Evidence) -> Basis:
    stretch = stretches[0]
    if len(stretches) > 1:
        return Basis.COPYING_AGAIN
    if stretch.is_sync:
        return Basis.SYNC
    if counts(stretch, evidence):
        return Basis.TARGET_WINDOW
    if stretch.floor is None:
        return Basis.BEFORE_FIRST_SYNC
    return Basis.BETWEEN_SYNCS if stretch.ceiling else Basis.AFTER_LAST_SYNC


def _answer(blank: Translation, bounds: Bounds, basis: Basis, stretch: Stretch) -> Translation:
    return replace(
        blank,
        status=Status.EXACT if bounds.low == bounds.high else Status.BOUNDED,
        basis=basis,
        reason=_reason(basis, stretch, bounds),
        target=bounds.low,
        low=bounds.low,
        high=bounds.high,
    )


def _reason(basis: Basis, stretch: Stretch, bounds: Bounds) -> str:
    floor = "{} -> {}".format(*stretch.floor) if stretch.floor else "the target's beginning"
    ceiling = "{} -> {}".format(*stretch.ceiling) if stretch.ceiling else "the target's end"
    if bounds.low == bounds.high:
        answer = f"the answer is {bounds.low}"
    else:
        end = "the target's end" if bounds.high is None else bounds.high
        answer = f"the answer is from {bounds.low} to {end}"
    match basis:
        case Basis.SYNC:
            once = bounds.low == bounds.high
            return f"is the sync {floor}" + ("" if once else f", maybe copied again: {answer}")
        case Basis.DRAINED:
            return (
                f"MirrorMaker 2 has copied every record before it and none from it on exists: "
                f"{answer}, the target's end"
            )
        case Basis.CONTENT:
            return f"the record there was found on the target by content: {answer}"
        case Basis.TARGET_WINDOW:
            return f"records counted on the target between {floor} and {ceiling}: {answer}"
        case Basis.COPYING_AGAIN:
            return (
                f"MirrorMaker 2 may copy again since a restart and not be as far as before: "
                f"{answer}; wait for it to catch up for a closer one"
            )
        case _:
            return f"lies between {floor} and {ceiling}: {answer}"


def _guess(stretch: Stretch, strategy: Strategy) -> int:
    # translate() has answered every position without a floor before this.
    assert stretch.floor is not None  # noqa: S101
    past = stretch.position - stretch.floor.upstream
    return stretch.floor.downstream + (past if strategy is Strategy.LINEAR else min(past, 1))


def _within_target(answer: Translation, target: Watermarks | None) -> Translation:
    if target is None or answer.target is None:
        return answer
    if answer.target < target.low or (answer.low or 0) < target.low:
        return answer.refused(
            Basis.EXPIRED,
            f"the answer {answer.target} lies below the target's first offset {target.low}: "
            f"the target has deleted records that the job has yet to read",
        )
    if answer.target > target.high:
        return answer.refused(
            Basis.NOT_REPLICATED_YET,
            f"the answer {answer.target} lies above the target's end {target.high}: wait until "
            f"MirrorMaker 2 has copied as far, or see whether the target was truncated",
        )
    return answer
