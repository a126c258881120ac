"""Counts the source's records that MirrorMaker 2 has passed and not copied; ``index`` asks.

MirrorMaker 2 passes records over where it began at the end of a topic (``auto.offset.reset`` is
``latest``), was created again, had its offsets altered ahead, or was overtaken by retention. A job
that moves past such records loses them. ``planning`` reads the records, and leaves out those that a
transform may have dropped.

The syncs cut the target's log into steps: the copies of the source offsets between two neighbouring
syncs lie between their target offsets. A record counts as missing if its content was not found on
the target. It may still have a copy at an offset where none can be seen: one that was not read, or
that the target has deleted. So many of a step's missing records are not counted.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from operator import itemgetter
from statistics import median
from typing import NamedTuple

from airflow_mm2_offsets.core.bracket import SyncPoint
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.evidence import Content, Evidence, RecordWindow
from airflow_mm2_offsets.core.inverse_evidence import InverseEvidence
from airflow_mm2_offsets.core.result import Basis, Status, Translation, Uncopied

_LEFT_AS_THEY_ARE = frozenset({Basis.NEVER_REPLICATED, Basis.RECORDS_DIFFER})
_BEGINNING = SyncPoint(-1, -1)
_STANDS_OUT = 4
"""A step that lacks more than so many times the median of all steps stands out."""
_NOT_ALL_READ = "max_evidence_bytes was not enough to read them all on both clusters"


class CopyStep(NamedTuple):
    """The target offsets after one sync up to the next, both included as ``[first, last]``."""

    source_first: int
    source_last: int
    """Below ``source_first`` where MirrorMaker 2 went back: then copies of any record may lie
    there."""
    target_first: int
    target_last: int

    @property
    def is_rewind(self) -> bool:
        """Whether MirrorMaker 2 went back on the source."""
        return self.source_last < self.source_first

    @property
    def lacking(self) -> int:
        """How many source offsets were surely not copied in the step."""
        source = self.source_last - self.source_first
        return max(0, source - (self.target_last - self.target_first))


def copy_steps(syncs: PartitionSyncs, *, passed: int, target_end: int) -> list[CopyStep]:
    """Return the steps of all syncs, in the order of the target's log, up to its end.

    Args:
        syncs: Of one partition.
        passed: The last source offset that MirrorMaker 2 has passed.
        target_end: The target's end offset.
    """
    points = sorted(zip(syncs.downstream, syncs.upstream, strict=True))
    ordered = [_BEGINNING, *(SyncPoint(up, down) for down, up in points)]
    steps = [
        CopyStep(before.upstream + 1, after.upstream, before.downstream + 1, after.downstream)
        for before, after in pairwise(ordered)
        if before.downstream < after.downstream
    ]
    last = ordered[-1]
    tail = CopyStep(last.upstream + 1, passed, last.downstream + 1, target_end - 1)
    return [*steps, tail]


def stands_out(steps: Sequence[CopyStep], position: int) -> bool:
    """Tell whether a step from a position on lacks many more copies than the others.

    The marker of each transaction lacks a copy, so all steps of a transactional topic lack a few.
    """
    lacks = [each.lacking for each in steps if each.source_last >= position and not each.is_rewind]
    return bool(lacks) and max(lacks) > _STANDS_OUT * median(lacks)


def count_lacking(syncs: PartitionSyncs, position: int) -> int:
    """Return how many source offsets from a position on the syncs show not to be copied.

    Some may have held no record: only the source shows that. Where the source began is not known.
    So before the first sync only offsets from the position on count.
    """
    begin, *steps, _ = copy_steps(syncs, passed=syncs.last.upstream, target_end=0)
    between = sum(
        min(step.lacking, max(0, step.source_last - max(position, step.source_first)))
        for step in steps
    )
    return between + max(0, begin.source_last - position - begin.target_last)


class Original(NamedTuple):
    """A record of the source."""

    offset: int
    content: Content
    milliseconds: int
    """Its timestamp, since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Records that were read to be compared."""

    originals: Sequence[Original]
    """Of the source."""
    target: RecordWindow
    begins_at: int | None = None
    """The first records of ``target`` are not newer than this, in milliseconds. So it reaches back
    to before a newer record: that one's copy does not lie before it. None: times say nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFacts:
    """What is known of the target beside its records."""

    are_comparable: bool = True
    """No transform changes records: a record and its copy are equal."""
    may_be_compacted: bool = False
    """An offset without a record may have held a copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRecords:
    """The records of a partition that were not found on the target."""

    offsets: Sequence[int]
    """On the source, rising."""
    groups: Sequence[tuple[int, ...]]
    """For each, the steps where its copy would lie, and from where on, as an index in ``hidden``.
    """
    hidden: Mapping[tuple[int, ...], int]
    """By group, how many copies can lie unseen."""
    unread: Sequence[tuple[int, int]] = ()
    """First and last source offset of ranges that were not read, where records lack copies."""
    is_cut: bool = False
    """Whether not all was read that was to be read. So none that surely was not copied is no proof
    that all were."""

    def count_from(self, position: int, *, cause: str) -> Uncopied | None:
        """Return how many records from a position on were never copied.

        None if none surely was, and all was read.
        """
        begin = bisect_left(self.offsets, position)
        counts = Counter(self.groups[begin:])
        surely = sum(max(0, count - self.hidden[group]) for group, count in counts.items())
        if not surely and not self.is_cut:
            return None
        unread = [(max(first, position), last) for first, last in self.unread if last >= position]
        most = len(self.offsets) - begin + sum(last - first + 1 for first, last in unread)
        if not most:
            return None
        seen = self.offsets[begin:] if surely else [*self.offsets[begin:], *chain(*unread)]
        return Uncopied(
            at_least=surely,
            at_most=most,
            first=min(seen),
            last=max(seen),
            cause=cause if surely else f"{_NOT_ALL_READ}; {cause}",
        )


def find_missing(
    steps: Sequence[CopyStep],
    compared: Sequence[Compared],
    facts: TargetFacts,
    *,
    unread: Sequence[tuple[int, int]] = (),
    is_cut: bool = False,
) -> MissingRecords:
    """Return the records of the source that were not found in the target windows.

    Args:
        steps: See ``copy_steps``.
        compared: What was read; no record of a cluster twice.
        facts: Of the target.
        unread: See ``MissingRecords``.
        is_cut: See ``MissingRecords``.
    """
    missing = list(_without_copy(compared, facts))
    offsets = [offset for offset, _ in missing]
    owners: list[list[int]] = [[begin] for _, begin in missing]
    for number, step in enumerate(steps):
        first = bisect_left(offsets, step.source_first)
        for at in range(first, bisect_right(offsets, step.source_last)):
            owners[at].append(number)
    groups = [tuple(each) for each in owners]
    targets = [each.target for each in compared]
    return MissingRecords(
        offsets=offsets,
        groups=groups,
        hidden={group: _hidden(group, steps, targets, facts) for group in {*groups}},
        unread=unread,
        is_cut=is_cut,
    )


def _without_copy(compared: Sequence[Compared], facts: TargetFacts) -> Iterator[tuple[int, int]]:
    """Yield the source's offsets whose content the target lacks, rising.

    With each the first target offset at which its copy can lie.
    """
    copies: Counter[Content] = Counter()
    if facts.are_comparable:
        copies.update(content for each in compared for _, content in each.target.records)
    originals = ((record, each) for each in compared for record in each.originals)
    for (offset, content, time), each in sorted(originals, key=lambda pair: pair[0].offset):
        if copies[content]:
            copies[content] -= 1
        else:
            is_reached = each.begins_at is not None and each.begins_at < time
            yield offset, each.target.first if is_reached else 0


def _hidden(
    group: tuple[int, ...],
    steps: Sequence[CopyStep],
    targets: Sequence[RecordWindow],
    facts: TargetFacts,
) -> int:
    """Return at how many offsets the copies of a group's records can lie unseen."""
    begin, *owners = group
    places = {*owners, *(number for number, step in enumerate(steps) if step.is_rewind)}
    return sum(_hidden_in(steps[number], begin, targets, facts) for number in places)


def _hidden_in(
    step: CopyStep, begin: int, targets: Iterable[RecordWindow], facts: TargetFacts
) -> int:
    first, last = max(begin, step.target_first), step.target_last
    hidden = max(0, last - first + 1)
    for window in targets:
        low, high = max(first, window.first), min(last, window.last)
        if low > high or not facts.are_comparable:
            continue
        if facts.may_be_compacted:
            at = bisect_left(window.records, low, key=itemgetter(0))
            hidden -= bisect_right(window.records, high, at, key=itemgetter(0)) - at
        else:
            hidden -= high - low + 1
    return hidden


def settle_uncopied(
    answer: Translation, syncs: PartitionSyncs | None, evidence: Evidence
) -> Translation:
    """Return the answer; a refusal if it passes over records that nobody has given up.

    Another refusal stays, and names the records as well.
    """
    uncopied = evidence.uncopied
    if uncopied is None or not syncs or answer.basis in _LEFT_AS_THEY_ARE:
        return answer
    answer = replace(answer, uncopied=uncopied)
    finding = _describe(uncopied, answer, syncs)
    if uncopied.is_given_up:
        return replace(answer, reason=f"{answer.reason}; GIVEN UP: {finding}")
    if answer.status is Status.REFUSED:
        return replace(answer, reason=f"{answer.reason}; moreover, {finding}")
    return answer.refused(Basis.NEVER_COPIED, f"{finding}. {_next_step(uncopied, answer)}")


def find_unread_at_home(
    evidence: InverseEvidence, *, until: int, cause: str, given_up_until: int = -1
) -> Uncopied | None:
    """Return the records of A before an answer that the job has read nowhere: B does not have them.

    None where there are none, or ``are_read_from`` says that they were not all read.

    Args:
        evidence: For the way home of one partition.
        until: The answer on A.
        cause: See ``Uncopied``.
        given_up_until: The last offset that the user gave up when the job was moved away.
    """
    originals, copies = evidence.originals, evidence.copies
    first = first_at_home(evidence, given_up_until)
    if not originals or not copies or not are_read_from(evidence, first):
        return None
    on_b = {content for _, content in copies.records}
    unread = [
        offset
        for offset, content in originals.records
        if first <= offset < until and content not in on_b
    ]
    if not unread:
        return None
    count = len(unread)
    return Uncopied(at_least=count, at_most=count, first=unread[0], last=unread[-1], cause=cause)


def first_at_home(evidence: InverseEvidence, given_up_until: int) -> int:
    """Return the first offset of A whose record the job must have read somewhere."""
    return max(evidence.base, evidence.home.low, given_up_until + 1)


def are_read_from(evidence: InverseEvidence, first: int) -> bool:
    """Tell whether A's records from an offset on, and all that the job has read of B, were read."""
    originals, copies = evidence.originals, evidence.copies
    if not evidence.is_comparable or not originals or not copies:
        return False
    return originals.first <= first and copies.first <= evidence.begin


def settle_at_home(answer: Translation, uncopied: Uncopied | None) -> Translation:
    """Return the answer on A; a lower one if records before it were read nowhere.

    A holds them: the job reads them there, and what follows again.
    """
    if uncopied is None or answer.target is None:
        return answer
    finding = (
        f"{uncopied} before it, from offset {uncopied.first} to {uncopied.last}, "
        f"{'were never' if uncopied.at_least else 'may never have been'} copied to the cluster "
        f"that the job leaves; {uncopied.cause}"
    )
    if uncopied.is_given_up:
        return replace(answer, uncopied=uncopied, reason=f"{answer.reason}; GIVEN UP: {finding}")
    low = min(answer.target, uncopied.first)
    return replace(
        answer,
        status=Status.BOUNDED,
        target=low,
        low=low,
        reason=f"{answer.reason}; {finding}: the answer begins at {low}, and what follows is read "
        f"again; give_up={uncopied.at_most} leaves them out, and they are lost",
    )


def _describe(uncopied: Uncopied, answer: Translation, syncs: PartitionSyncs) -> str:
    if uncopied.last < min(syncs.upstream):
        where = "before its first known copy"
    elif uncopied.first > max(syncs.upstream):
        where = "after its last known copy"
    else:
        where = "between two copies"
    if not uncopied.at_least:
        return (
            f"{uncopied} from position {answer.position} on, from offset {uncopied.first} to "
            f"{uncopied.last}, may not be on the target: the syncs show fewer copies than source "
            f"offsets there, {where}, and {uncopied.cause}"
        )
    return (
        f"{uncopied} from position {answer.position} on, from offset {uncopied.first} to "
        f"{uncopied.last}, are on the source and not on the target: MirrorMaker 2 passed them "
        f"{where} without copying them; {uncopied.cause}"
    )


def _next_step(uncopied: Uncopied, answer: Translation) -> str:
    raised = "" if uncopied.at_least else "Raise max_evidence_bytes. If they are missing: "
    return (
        f"{raised}Let MirrorMaker 2 copy {answer.topic_partition} from offset {uncopied.first} on "
        f"(AlterConnectorOffsetsOperator sets its offset back), or let the job read past "
        f"{uncopied.last} on the source; give_up={uncopied.at_most}, or the sum of all "
        f"topic-partitions, moves the job without them, and they are lost"
    )
