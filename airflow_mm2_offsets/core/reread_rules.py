"""The rule of a forecast: how many records are read again."""

from dataclasses import dataclass

from airflow_mm2_offsets.core.forecast import CountRange
from airflow_mm2_offsets.core.forecast_rules import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RereadFacts:
    """What is known of one partition to tell which records are processed twice."""

    start: int
    """Where the job continues on the target."""
    target_end: int
    max_reread: int | None
    """What the plan says; None: not known."""
    is_older: bool = False
    """The job may have processed more than its positions say."""
    unsynced: int = 0
    """Target offsets after the newest known sync, where only an archive was read: MirrorMaker 2 may
    have copied records again there, and no sync shows it."""
    still_to_come: int = 0
    """Records that the job may have processed and that MirrorMaker 2 may yet copy."""


def estimate_read_again(facts: RereadFacts) -> Estimate:
    """Return how many records of the target the job reads again; never unknown."""
    whole = max(0, facts.target_end - facts.start) + facts.still_to_come
    all_from_start = f"all from {facts.start} to the target's end {facts.target_end}"
    if facts.is_older:
        reason = f"the job may have gone on after its positions were read: {all_from_start}"
        return Estimate(CountRange(at_most=whole), reason)
    if facts.max_reread is None:
        reason = f"the translation has no upper bound: {all_from_start}"
        return Estimate(CountRange(at_most=whole), reason)
    if facts.unsynced:
        most = facts.max_reread + facts.unsynced
        reason = (
            f"the plan, and the {facts.unsynced} target offsets after the archive's last sync, "
            f"which may be copied again"
        )
        return Estimate(CountRange(at_most=min(whole, most)), reason)
    return Estimate(CountRange(at_most=facts.max_reread), "the plan")
