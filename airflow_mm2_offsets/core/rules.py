"""Answers one position: by its syncs, by evidence, or with a refusal.

``SyncIndex.translate`` calls it.
"""

from dataclasses import replace

from airflow_mm2_offsets.core.bounds import lacks_records
from airflow_mm2_offsets.core.bracket import BEGINNING, END, SyncBracket
from airflow_mm2_offsets.core.bracket_bounds import NEVER_RISES, BracketBounds, unsafe_offset
from airflow_mm2_offsets.core.content import is_only_copy, match_content, missing_records, skip_read
from airflow_mm2_offsets.core.counting import count_records
from airflow_mm2_offsets.core.duplicates import rewind_after
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.evidence import (
    NO_EVIDENCE,
    Evidence,
    Extras,
    SourceWindow,
    TargetWindow,
    Watermarks,
)
from airflow_mm2_offsets.core.lows import Progress
from airflow_mm2_offsets.core.positions import TopicPartition
from airflow_mm2_offsets.core.reasons import describe_answer, describe_older_copies
from airflow_mm2_offsets.core.refusals import (
    refuse_before_history,
    refuse_copied_before_history,
    refuse_differing_records,
    refuse_outside_source,
    refuse_outside_target,
)
from airflow_mm2_offsets.core.result import Basis, Status, Strategy, Translation
from airflow_mm2_offsets.core.search_ranges import (
    SearchRange,
    extend_range,
    search_range,
    step_range,
)
from airflow_mm2_offsets.core.segments import Segments


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
    blank = _never_replicated(TopicPartition(topic, partition), position)
    refusal = refuse_outside_source(blank, syncs, evidence.source)
    if refusal := refusal or refuse_differing_records(blank, evidence):
        return refusal
    if syncs is not None and not syncs and syncs.beginning.history.is_cut:
        return refuse_before_history(blank, syncs)
    if not syncs:
        return _drained(blank, evidence.target) if evidence.drained else blank
    segments = segments_with(syncs, evidence)
    bracket = segments.bracket(position)
    if bracket.before is None and (
        syncs.beginning.history.refuses(bracket.low) or strategy is not Strategy.SAFE
    ):
        return refuse_before_history(blank, syncs)
    bounds = _bound(syncs, segments, bracket, evidence)
    if syncs.beginning.history.refuses(bounds.low):
        return refuse_copied_before_history(blank, syncs)
    answer = _answer(blank, bounds, bracket)
    if bounds.basis is Basis.COPYING_AGAIN and bounds.low == BEGINNING:
        answer = replace(answer, reason=describe_older_copies(0, answer.high, syncs))
    if strategy is not Strategy.SAFE:
        assert bracket.before is not None  # noqa: S101 - a position before all was refused above
        target = unsafe_offset(bracket.before, position, strategy)
        answer = answer.starting_at(target, strategy)
    return refuse_outside_target(answer, syncs.last, evidence.target)


def segments_with(syncs: PartitionSyncs, evidence: Evidence) -> Segments:
    """Return the segments, with how far MirrorMaker 2 has come if it is known.

    The target's end must have been read before Connect's offsets: otherwise a record that Connect
    has committed may lie above that end.
    """
    end = evidence.source_end
    if end is None and evidence.source is not None:
        end = evidence.source.high
    if end is None or syncs.segments.has_caught_up:
        return syncs.segments
    if evidence.committed is None or evidence.target is None:
        return syncs.segments_with(Progress(end))
    gained = evidence.target.high - 1 - syncs.last.downstream
    return syncs.segments_with(Progress(end, evidence.committed, gained))


def suspect_tail(syncs: PartitionSyncs, evidence: Evidence) -> int:
    """Return the target's end if duplicate copies may lie after the last sync; 0 otherwise.

    Where both clusters hold as many offsets after it, each record was copied once, as far as the
    numbers show. A source that ends before the sync shows nothing.
    """
    source, target, last = evidence.source, evidence.target, syncs.last
    if target is None:
        return 0
    if source is None:
        return target.high
    tails = source.high - last.upstream, target.high - last.downstream
    return target.high if tails[0] > 0 and tails[0] != tails[1] else 0


def _never_replicated(topic_partition: TopicPartition, position: int) -> Translation:
    return Translation(
        topic=topic_partition.topic,
        partition=topic_partition.partition,
        position=position,
        status=Status.REFUSED,
        basis=Basis.NEVER_REPLICATED,
        reason=f"no offset sync is known of {topic_partition}: MirrorMaker 2 never copied it",
    )


def _drained(blank: Translation, target: Watermarks | None) -> Translation:
    if target is None:
        return blank
    return replace(
        blank,
        status=Status.EXACT,
        basis=Basis.DRAINED,
        reason=f"the source has no record to copy: the answer is {target.high}, the target's end",
        target=target.high,
        low=target.high,
        high=target.high,
    )


def _bound(
    syncs: PartitionSyncs, segments: Segments, bracket: SyncBracket, evidence: Evidence
) -> BracketBounds:
    """Return the closest bounds that syncs and evidence prove; ``low`` may be BEGINNING."""
    if bracket.after is None and not bracket.is_sync and evidence.drained and evidence.target:
        end = evidence.target.high
        return BracketBounds.fixed(end, end, Basis.DRAINED)
    bounds, searched_to = _by_syncs(segments, bracket, evidence), -1
    search = search_range(segments, bracket) if evidence.target_window else None
    if search and evidence.target_window and (proven := _by_content(search, segments, evidence)):
        if not search.is_newest:
            # The records were copied again, and may be again to the end: the upper bound stays.
            bounds = bounds._replace(low=proven.low, low_rises_from=NEVER_RISES)
        elif not (bracket.is_sync and (proven.low, proven.high) == (bounds.low, bounds.high)):
            bounds = proven
        searched_to = evidence.target_window.last
    source, target = evidence.source_window, evidence.target_window
    if source is not None and target is not None:
        for searched in filter(None, (search, step_range(syncs, bracket))):
            read = extend_range(syncs, searched, source, target)
            bounds = bounds.lowered(_low_of_missing(syncs, read, source, target))
        end = evidence.target.high if evidence.target else target.last + 1
        # A record that was not read may be equal to one before the position, and needed.
        source_end = evidence.source.high if evidence.source else END
        if source.last >= source_end - 1 and not evidence.changed_records:
            bounds = _skipping_read(bounds, bracket.position, source, target, end)
    end = suspect_tail(syncs, evidence)
    rewind = rewind_after(syncs, bracket.position, end if end - 1 > searched_to else 0)
    return bounds.raised(rewind) if rewind and rewind.downstream > searched_to else bounds


def _skipping_read(
    bounds: BracketBounds, position: int, source: SourceWindow, target: TargetWindow, end: int
) -> BracketBounds:
    """Return the bounds without the copies at their low end that the job has read.

    If the target was read to its end, and the next copy is the only one of a record that the job
    has not read, that copy is the truth.
    """
    low = max(0, bounds.low)
    if bounds.low == bounds.high or not target.covers(low, low):
        return bounds
    needed = min(
        skip_read(position, source, target, low), end if bounds.high is None else bounds.high
    )
    if target.last >= end - 1 and is_only_copy(needed, position, source, target):
        return BracketBounds.fixed(needed, needed, Basis.CONTENT)
    return bounds._replace(low=needed, basis=Basis.CONTENT) if needed > low else bounds


def _by_syncs(segments: Segments, bracket: SyncBracket, evidence: Evidence) -> BracketBounds:
    """Return the bounds by the syncs around a position, and by the records counted between."""
    bounds = BracketBounds.of(bracket, extras=evidence.extras is not Extras.NONE)
    if not bracket.is_sync:
        low, _ = bounds.at(bracket.position)
        if counted := count_records(bracket, low, evidence):
            bounds = BracketBounds.fixed(*counted, Basis.TARGET_WINDOW)
    return bounds.lowered(segments.older_low(bracket))


def _by_content(
    search: SearchRange, segments: Segments, evidence: Evidence
) -> BracketBounds | None:
    source, target = evidence.source_window, evidence.target_window
    if source is None or target is None:
        return None
    source_end = evidence.source.high if evidence.source else None
    bounds = match_content(search, source, target, segments=segments, source_end=source_end)
    return BracketBounds.fixed(*bounds, Basis.CONTENT) if bounds else None


def _low_of_missing(
    syncs: PartitionSyncs, search: SearchRange, source: SourceWindow, target: TargetWindow
) -> int | None:
    """Return the lower bound by older copies of records that have no copy in a range.

    Between syncs where the source grew by more than the target, the segments allow for that.
    """
    now = syncs.until(search.end).segments
    for offset in missing_records(search, source, target):
        bracket = now.bracket(offset)
        if bracket.before and bracket.after and not lacks_records(*bracket.steps):
            older = syncs.until(search.begin)
            low = older.segments.low(offset) if older else search.begin.downstream
            return low if low < search.begin.downstream else None
    return None


def _answer(blank: Translation, bounds: BracketBounds, bracket: SyncBracket) -> Translation:
    low, high = bounds.at(bracket.position)
    return replace(
        blank,
        status=Status.EXACT if low == high else Status.BOUNDED,
        basis=bounds.basis,
        reason=describe_answer(bounds.basis, low, high, bracket),
        target=low,
        low=low,
        high=high,
    )
