"""Explains an answer in words; ``rules`` calls it."""

from airflow_mm2_offsets.core.bracket import END, SyncBracket
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.result import Basis


def describe_answer(basis: Basis, low: int, high: int | None, bracket: SyncBracket) -> str:
    """Return in words what an answer rests on; ``high`` is None for the target's end."""
    before = "{} -> {}".format(*bracket.before) if bracket.before else "the target's beginning"
    after = "{} -> {}".format(*bracket.after) if bracket.after else "the target's end"
    if low == high:
        answer = f"the answer is {low}"
    else:
        end = "the target's end" if high is None else high
        answer = f"the answer is from {low} to {end}"
    match basis:
        case Basis.SYNC:
            once = low == high
            return f"is the sync {before}" + ("" if once else f", maybe copied again: {answer}")
        case Basis.DRAINED:
            return (
                f"MirrorMaker 2 has copied every record before it and none from it on exists: "
                f"{answer}, the target's end"
            )
        case Basis.CONTENT:
            return f"the record there was found on the target by content: {answer}"
        case Basis.TARGET_WINDOW:
            return f"records counted on the target between {before} and {after}: {answer}"
        case Basis.COPYING_AGAIN:
            return (
                f"MirrorMaker 2 has copied records from here on more than once, and may not have "
                f"copied all of them again: {answer}; wait for it to catch up for a closer one"
            )
        case _:
            return f"lies between {before} and {after}: {answer}"


def describe_older_copies(low: int, high: int | None, syncs: PartitionSyncs) -> str:
    """Return in words why an answer is the target's beginning, and how to get a closer one."""
    end = "the target's end" if high is None else high
    return (
        f"the only copies of records from here on may lie before the first known sync "
        f"{syncs.first.upstream} -> {syncs.first.downstream}: the answer is from {low} to {end}; "
        f"{step_past_older_copies(syncs)}"
    )


def step_past_older_copies(syncs: PartitionSyncs) -> str:
    """Return in words how a position needs no copy from before the first known sync."""
    if (end := syncs.beginning.source_end) < END:
        return (
            f"wait for it to catch up, or let the job read to {end} or further: no record from "
            f"there on was copied before that sync"
        )
    return (
        "wait for it to catch up; or let mm2_archive_syncs run for this mm2 connection, give its "
        "folder as archive, and let the job read past the source's end of that time"
    )
