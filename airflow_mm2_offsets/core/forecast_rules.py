"""The rules of a forecast: how many records are at risk.

The source's end at its death bounds what is lost. It is read where the source still answers. Else
it is bounded from the last watermarks in the archive, and by how fast records can have been written
since. Records before the job's position are not lost: the job has read them.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from airflow_mm2_offsets.core.forecast import CountRange
from airflow_mm2_offsets.core.result import Uncopied

RATE_FACTOR = 2.0
"""The archive knows average rates between two runs; a burst in between may be faster."""
FRESH_SECONDS = 3600.0
"""For so long the rates of an archive count, however short the time in which they were seen."""
_SHORTEST = 1000
"""Milliseconds: a rate over less says more about the clock than about the writers."""


class EndSample(NamedTuple):
    """The ends of a partition on both clusters when the archive's run at ``time`` saw them."""

    time: int
    """Milliseconds since 1970. The ends were read then or later: the source's first."""
    source_end: int
    target_end: int | None = None


class Estimate(NamedTuple):
    """A range of records, and what it rests on."""

    records: CountRange
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskFacts:
    """What is known of one partition to tell which of its records are lost."""

    position: int
    """The job's position: where its committed batches end."""
    read_until: int
    """Where the batch ends that the job began and did not commit; else the position."""
    copied_to: int
    """The last source offset that is known to be copied; -1: none is."""
    known_end: int
    """The source's end was here or later when it was lost: positions, syncs and Connect say so."""
    target_end: int
    skipped_by_start: int = 0
    """The most records that a start chosen by the user, not proven, skips on the target."""
    undecided: int = 0
    """Offsets of open transactions on the target whose end can't be copied any more."""
    samples: Sequence[EndSample] = ()
    """What the archive's runs saw of this incarnation of the topic, in order of time."""
    source_end: int | None = None
    """The source's end now; None: it does not answer."""
    uncopied: Sequence[int] | None = None
    """Offsets of the source's records after ``copied_to`` and from the position on, where the
    source answers; None: they were not read."""

    @property
    def first_at_risk(self) -> int:
        """The first offset on the source that can be lost."""
        return max(self.position, self.copied_to + 1)


def estimate_at_risk(
    facts: RiskFacts,
    *,
    lost_at: int,
    max_rate: float | None = None,
    rate_factor: float = RATE_FACTOR,
) -> Estimate:
    """Return how many records that the job had not read are not on the target.

    Args:
        facts: Of one partition.
        lost_at: When the source was lost, or later: milliseconds since 1970.
        max_rate: The user's word: records per second at most; it counts instead of the archive's.
        rate_factor: Times this, the highest rate in the archive counts as the highest possible.
    """
    if facts.source_end is not None:
        estimate = _of_live_source(facts, facts.source_end)
    else:
        estimate = _of_lost_source(facts, lost_at, max_rate, rate_factor)
    skipped = "the chosen start, which is not proven, skips at most {} more"
    estimate = _with_more(estimate, facts.skipped_by_start, skipped)
    aborted = "at most {} offsets of open transactions on the target are lost if these are aborted"
    return _with_more(estimate, facts.undecided, aborted)


def _with_more(estimate: Estimate, more: int, why: str) -> Estimate:
    most = estimate.records.at_most
    if not more:
        return estimate
    most = None if most is None else most + more
    records = CountRange(at_least=estimate.records.at_least, at_most=most)
    return Estimate(records, f"{estimate.basis}; {why.format(more)}")


def _of_live_source(facts: RiskFacts, end: int) -> Estimate:
    copied = f"copied up to {facts.copied_to}" if facts.copied_to >= 0 else "nothing surely copied"
    basis = f"the source answers: its end is {end}, {copied}"
    if facts.uncopied is None:
        return Estimate(CountRange(at_most=max(0, end - facts.first_at_risk)), basis)
    records = CountRange(at_least=_surely_lost(facts, facts.uncopied), at_most=len(facts.uncopied))
    return Estimate(records, basis)


def with_uncopied(estimate: Estimate, uncopied: Uncopied, *, has_gone_on: bool) -> Estimate:
    """Return an estimate with the records that MirrorMaker 2 has passed over.

    Args:
        estimate: Without them.
        uncopied: As the plan found them.
        has_gone_on: Whether the job may have read some of them since.
    """
    most = estimate.records.at_most
    surely = 0 if has_gone_on else uncopied.at_least
    records = CountRange(
        at_least=estimate.records.at_least + surely,
        at_most=None if most is None else most + uncopied.at_most,
    )
    return Estimate(
        records,
        f"{estimate.basis}; {uncopied} from offset {uncopied.first} to {uncopied.last} were never "
        f"copied",
    )


def with_gaps(estimate: Estimate, offsets: int) -> Estimate:
    """Return an estimate with source offsets that the syncs show not to be copied.

    A source that is lost no longer shows whether they held records.
    """
    held = "at most {} offsets that were not copied in between may have held records"
    return _with_more(estimate, offsets, held)


def _surely_lost(facts: RiskFacts, uncopied: Sequence[int]) -> int:
    """Return how many records can't be on the target, because it has not grown by as many.

    Records at or after the source's end at a run did not exist when the run before it had read the
    target's end: each copy of one lies after that end.
    """
    lost = 0
    for before, sample in pairwise(facts.samples):
        if before.target_end is not None:
            begin = bisect_left(uncopied, max(facts.read_until, sample.source_end))
            lost = max(lost, len(uncopied) - begin - (facts.target_end - before.target_end))
    return lost


def _of_lost_source(
    facts: RiskFacts, lost_at: int, max_rate: float | None, rate_factor: float
) -> Estimate:
    if not facts.samples:
        return _unknown(
            f"the source's end was at {facts.known_end} or later, and no archive has seen its "
            f"watermarks: an archive of the offset syncs would bound it"
        )
    newest = facts.samples[-1]
    seconds = max(0, lost_at - newest.time) / 1000
    rate = max_rate
    if rate is None:
        if reason := _why_no_rate(facts.samples, seconds):
            return _unknown(reason)
        rate = rate_factor * _highest_rate_seen(facts, lost_at)
    end = newest.source_end + ceil(rate * seconds)
    limit = f"at most {rate:.6g} records/s"
    if max_rate is None:
        limit += f" ({rate_factor:g} times the highest rate seen, {rate / rate_factor:.6g})"
    if facts.known_end > end:
        return _unknown(
            f"{limit} is too low: the source's end was {newest.source_end} {seconds:.0f} s before "
            f"it was lost, and {facts.known_end} or later when it was lost; give a higher max_rate"
        )
    return Estimate(
        CountRange(at_most=max(0, end - facts.first_at_risk)),
        f"the archive saw the end {newest.source_end} {seconds:.0f} s before the loss; since then "
        f"{limit}; copied up to {facts.copied_to}",
    )


def _why_no_rate(samples: Sequence[EndSample], seconds: float) -> str | None:
    """Return why an archive says nothing of the rate since its last run, ``seconds`` ago."""
    newest = samples[-1]
    if len(samples) == 1:
        return (
            f"the archive saw the source's end once, at {newest.source_end}, so no rate is known: "
            f"max_rate (records per second) would bound it"
        )
    watched = (newest.time - samples[0].time) / 1000
    if seconds <= max(FRESH_SECONDS, watched):
        return None
    return (
        f"the archive's last run was {seconds:.0f} s before the loss, and its runs saw the "
        f"partition for {watched:.0f} s only: max_rate (records per second) would bound it"
    )


def _highest_rate_seen(facts: RiskFacts, lost_at: int) -> float:
    """Return the highest rate that the archive's runs, and all that is known of later, show."""
    newest = facts.samples[-1]
    end = max(facts.known_end, newest.source_end + _copied_since(facts, newest))
    now = EndSample(max(lost_at, newest.time), end)
    return highest_rate([*facts.samples, now]) or 0.0


def _copied_since(facts: RiskFacts, newest: EndSample) -> int:
    """Return how many offsets of the target can be copies of records newer than an archive's run.

    Where all syncs are lost, nothing else shows that records were written since.
    """
    if newest.target_end is None:
        return 0
    backlog = max(0, newest.source_end - 1 - facts.copied_to)
    return max(0, facts.target_end - newest.target_end - backlog)


def _unknown(reason: str) -> Estimate:
    return Estimate(CountRange(at_most=None), f"unknown: {reason}")


def highest_rate(samples: Sequence[EndSample]) -> float | None:
    """Return the highest rate between two samples, in records per second; None without two.

    A sample less than a second after the one before is passed over; the last one replaces it.
    """
    thinned: list[EndSample] = []
    for sample in samples:
        if not thinned or sample.time - thinned[-1].time >= _SHORTEST:
            thinned.append(sample)
        elif len(thinned) > 1 and sample is samples[-1]:
            thinned[-1] = sample
    rates = [
        1000 * max(0, later.source_end - before.source_end) / max(1, later.time - before.time)
        for before, later in pairwise(thinned)
    ]
    return max(rates, default=None)
