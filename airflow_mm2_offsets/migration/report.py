"""What a migration did, for XCom, the log, and the file beside the copy."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core import Status
from airflow_mm2_offsets.core.partition_plan import partition_to_json
from airflow_mm2_offsets.core.summary import table
from airflow_mm2_offsets.migration.plan import MigrationPlan, RequiredPosition
from airflow_mm2_offsets.spark.logs import CheckpointLogs
from airflow_mm2_offsets.spark.rewriting import OffsetRole

SCHEMA_VERSION = 1

_HEADER = ("position", "used as", "on the target", "status", "counted twice")


def report(
    logs: CheckpointLogs, required: Sequence[RequiredPosition], plan: MigrationPlan, target: UPath
) -> dict[str, Any]:
    """Return what was done, as plain JSON; offsets are text, because they may pass 2**53."""
    plans, targets = plan.by_position, plan.targets()
    used = [each.position for each in required if each.role is not OffsetRole.HISTORY]
    rereads = [plans[position].translation.max_reread for position in used]
    topics = {position.topic_partition.topic: targets[position][0] for position in sorted(used)}
    bounded = sum(plans[position].translation.status is not Status.EXACT for position in used)
    return {
        "schema_version": SCHEMA_VERSION,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "checkpoint": str(logs.root),
        "target_checkpoint": str(target),
        "query_id": logs.query_id,
        "committed_batch": logs.committed,
        "pending_batch": logs.pending,
        "topics": topics,
        "max_reread": None if None in rereads else sum(count or 0 for count in rereads),
        "notes": [*_notes(topics, bounded), *plan.notes],
        "positions": [
            {
                "file": each.file,
                "use": each.role.value,
                **partition_to_json(plans[each.position]),
                "target": str(targets[each.position][1]),
            }
            for each in required
        ],
    }


def summarize_migration(done: Mapping[str, Any]) -> str:
    """Return a ``report``, with ``files`` and ``bytes`` of the copy, as sentences and a table."""
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
        "-" if position["use"] == OffsetRole.HISTORY else again,
    )


def _notes(topics: Mapping[str, str], bounded: int) -> list[str]:
    notes = [
        f"{topic} is called {name} on the target: the job must subscribe to {name} there"
        for topic, name in topics.items()
        if name != topic
    ]
    if bounded:
        notes.append(
            f"{bounded} positions are lower bounds: records that are read again there are counted "
            f"twice by state, and leave an exactly-once sink twice"
        )
    return notes
