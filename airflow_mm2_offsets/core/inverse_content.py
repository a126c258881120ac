"""Bounds of the inverse translation by the content of records; ``inverse`` calls it."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from airflow_mm2_offsets.core.evidence import Content, SourceWindow
from airflow_mm2_offsets.core.inverse_evidence import InverseEvidence
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.core.result import Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentBounds:
    """Bounds of an answer on A."""

    low: int
    """No needed record lies below it."""
    high: int
    """The job has processed no record from it on."""
    basis: Basis
    read_from: int
    """The first offset of B whose copies can lie at ``low`` or after it, as far as syncs tell."""
    is_monotone: bool = False
    """No rewind is visible since the job began on B."""
    next_sync: int = MAX_OFFSET
    """The record of the next sync: the job has not read it, nor what follows it."""
    can_walk: bool = True
    """Equal records of A are told apart: by syncs, or because A has deleted no record."""


def bound_by_content(
    bounds: ContentBounds, position: int, evidence: InverseEvidence
) -> ContentBounds:
    """Return closer bounds; the same where the records that were read say nothing.

    A record of A is processed if its content is unique on A and was read on B. The walk from the
    lower bound on ends at the first record that is not, unless Connect has committed past it and a
    later record was copied: then a filter dropped it.

    Args:
        bounds: By the syncs.
        position: The next offset to read on B.
        evidence: The records.
    """
    originals, copies = evidence.originals, evidence.copies
    if not evidence.is_comparable or originals is None or copies is None:
        return bounds
    if not copies.covers(position, evidence.away.high - 1):
        return bounds
    is_whole = copies.first <= evidence.begin
    begin = evidence.begin if is_whole else bounds.read_from
    read = evidence.copied_contents(begin, position)
    unread = evidence.copied_contents(position, copies.last + 1)
    committed = evidence.committed if is_whole else None
    low = _first_needed(bounds.low, read, unread, evidence, committed)
    if originals.first > low or copies.first > bounds.read_from or not bounds.can_walk:
        return replace(bounds, low=low)
    # Where A has deleted records, an equal one may have been copied: only new copies count.
    since = read if not evidence.home.low else evidence.copied_contents(bounds.read_from, position)
    low = max(low, min(_walk(low, since, unread, evidence), bounds.next_sync))
    high = max((at + 1 for at, content in originals.records if content in read), default=low)
    has_open_transaction = originals.last < evidence.home.high - 1
    if has_open_transaction and not evidence.are_originals_known(begin, position):
        high = evidence.home.high  # The copies of its records may be read.
    if not (is_whole or bounds.is_monotone):
        high = max(high, bounds.high)
    return replace(bounds, low=low, high=max(low, high), basis=Basis.CONTENT)


def _first_needed(
    low: int,
    read: AbstractSet[Content],
    unread: AbstractSet[Content],
    evidence: InverseEvidence,
    committed: int | None,
) -> int:
    """Return the first record below ``low`` that was not copied in order; ``low`` without one."""
    for offset, content in evidence.originals.records if evidence.originals else ():
        if offset >= low:
            break
        if offset < evidence.base or content in read:
            continue
        is_uncommitted = committed is not None and committed < offset
        if content in unread or is_uncommitted:
            return offset
    return low


def _walk(
    low: int, read: AbstractSet[Content], unread: AbstractSet[Content], evidence: InverseEvidence
) -> int:
    """Return the offset after the last record of A up to which nothing is needed."""
    originals = evidence.originals
    assert originals is not None  # noqa: S101 - see bound_by_content
    committed = -1 if evidence.committed is None else evidence.committed
    if committed >= evidence.home.high:  # It is of an earlier topic of that name.
        committed = -1
    last_passed = min(_last_copied(originals, (read | unread) & evidence.unique) - 1, committed)
    for offset, content in originals.records:
        if offset < low:
            continue
        if content in read and content in evidence.unique:
            low = offset + 1
        elif content in read or content in unread or offset > last_passed:
            return offset
    return max(low, originals.last + 1)


def _last_copied(originals: SourceWindow, copied: AbstractSet[Content]) -> int:
    return max((offset for offset, content in originals.records if content in copied), default=-1)
