"""What a migration did, for XCom, the log, and the file beside the copy."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core import PartitionPlan, Status
from airflow_mm2_offsets.core.partition_plan import partition_to_json
from airflow_mm2_offsets.core.summary import table
from airflow_mm2_offsets.migration.plan import MigrationPlan, Need
from airflow_mm2_offsets.spark.logs import CheckpointLogs
from airflow_mm2_offsets.spark.rewriting import Asked, Use

SCHEMA_VERSION = 1

_HEADER = ("position", "used as", "on the target", "status", "counted twice")


def report(
    logs: CheckpointLogs, wanted: Sequence[Need], plan: MigrationPlan, target: UPath
) -> dict[str, Any]:
    """Return what was done, as plain JSON; offsets are text, for they may pass 2**53."""
    answers, targets = plan.answers, plan.targets()
    used = [need for need in wanted if need.use is not Use.HISTORY]
    again = [answers[need.asked].translation.max_reread for need in used]
    return {
        "schema_version": SCHEMA_VERSION,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "checkpoint": str(logs.root),
        "target_checkpoint": str(target),
        "query_id": logs.query_id,
        "committed_batch": logs.committed,
        "pending_batch": logs.pending,
        "topics": {need.asked.topic: targets[need.asked][0] for need in sorted(used, key=_topic)},
        "max_reread": None if None in again else sum(each for each in again if each),
        "notes": [*_notes(used, answers, targets), *plan.notes],
        "positions": [
            {
                "file": need.file,
                "use": need.use.value,
                **partition_to_json(answers[need.asked]),
                "target": str(targets[need.asked][1]),
            }
            for need in wanted
        ],
    }


def summarize_migration(done: Mapping[str, Any]) -> str:
    """Return a report as a few sentences and a table."""
    pending = done["pending_batch"]
    begun = "none pending" if pending is None else f"batch {pending} pending, which runs again"
    again = (
        "an unknown number of" if done["max_reread"] is None else f"at most {done['max_reread']}"
    )
    rows = [_row(each) for each in done["positions"]]
    notes = "".join(f"\n- {note}" for note in done["notes"])
    return (
        f"MIGRATED: query {done['query_id']}, last committed batch {done['committed_batch']}, "
        f"{begun}; {again} records counted twice; {done['files']} files with {done['bytes']} bytes "
        f"copied and read back.{notes}\n\n{table(_HEADER, rows)}"
    )


def _row(position: Mapping[str, Any]) -> tuple[object, ...]:
    again = "?" if position["max_reread"] is None else position["max_reread"]
    return (
        f"{position['topic']}[{position['partition']}] at {position['position']}",
        f"{position['use']} in {position['file']}",
        position["target"],
        position["status"],
        "-" if position["use"] == Use.HISTORY else again,
    )


def _notes(
    used: Iterable[Need],
    answers: Mapping[Asked, PartitionPlan],
    targets: Mapping[Asked, tuple[str, int]],
) -> list[str]:
    renamed = {
        need.asked.topic: targets[need.asked][0]
        for need in used
        if targets[need.asked][0] != need.asked.topic
    }
    notes = [
        f"{topic} is called {name} on the target: the job must subscribe to {name} there"
        for topic, name in sorted(renamed.items())
    ]
    bounded = [need for need in used if answers[need.asked].translation.status is not Status.EXACT]
    if bounded:
        notes.append(
            f"{len(bounded)} positions are lower bounds: what is read again there is counted twice "
            f"by state, and comes twice out of an exactly-once sink"
        )
    return notes


def _topic(need: Need) -> str:
    return need.asked.topic
