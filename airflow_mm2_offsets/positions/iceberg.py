"""Positions that a job notes in the summaries of an Iceberg table's snapshots.

Iceberg itself keeps no source offsets. A job does, in a property of its own: Spark's write option
``snapshot-property.<name>``, ``CommitMetadata.withCommitProperties``, pyiceberg's
``snapshot_properties``.

Iceberg's sink for Kafka Connect notes ``kafka.connect.offsets.<control topic>.<group>``: those are
offsets of its control topic. The offsets of what it reads are in its consumer groups.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.errors import ConfigurationError, StoredPositionsError
from airflow_mm2_offsets.positions.texts import parse_stored

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_CONTROL_TOPIC = "kafka.connect.offsets."
_COUNTS = ("added-", "deleted-", "removed-", "total-", "changed-partition-")
"""How the properties begin that Iceberg itself writes."""


def read_iceberg_positions(
    table: "Table", property_name: str, *, branch: str = "main"
) -> Positions:
    """Return the positions in the newest snapshot of a branch that has them.

    The search goes from the branch's newest snapshot to its parent, and so on: a compaction notes
    no positions, and a snapshot that was rolled back is no parent. Read again before the job starts
    on the target (``check_unchanged``) if the job may run.

    Args:
        table: From a catalog of pyiceberg; it is refreshed. A ``StaticTable`` shows what its
            metadata file has.
        property_name: The property of a snapshot's summary: ``orders,0:42,1:7`` or Spark's JSON,
            each number the next offset to read.
        branch: The branch that the job writes to.

    Raises:
        StoredPositionsError: There is no such branch, no snapshot of its history has the property,
            the property is not of offsets, or the catalog or storage does not answer.
        ConfigurationError: The property is that of Kafka Connect's sink.
    """
    _check_property(property_name)
    name = ".".join(table.name())
    _refresh(table, name)
    looked_at = 0
    others: set[str] = set()
    for snapshot in _history(table, name, branch):
        summary = snapshot.summary.additional_properties if snapshot.summary else {}
        if property_name in summary:
            origin = f"{name}: snapshot {snapshot.snapshot_id}: {property_name}"
            return parse_stored(summary[property_name], origin)
        looked_at += 1
        others |= {each for each in summary if not each.startswith(_COUNTS)}
    raise StoredPositionsError(
        f"{name}: none of the {looked_at} snapshots of the branch {branch} and its history has the "
        f"property {property_name}; their properties are {', '.join(sorted(others)) or 'none'}. "
        f"Correct the name; or, if the snapshot that has it is expired, give positions yourself"
    )


def _check_property(property_name: str) -> None:
    if property_name.startswith(_CONTROL_TOPIC):
        raise ConfigurationError(
            f"{property_name} has offsets of the control topic of Iceberg's sink for Kafka "
            f"Connect, not of the topics that it reads: those are in the consumer group "
            f"connect-<name of the connector> (cg-control-<name> in the sink of Tabular); move "
            f"that group"
        )


def _refresh(table: "Table", name: str) -> None:
    try:
        with suppress(NotImplementedError):  # a StaticTable is of one metadata file
            table.refresh()
    except Exception as error:
        problem = StoredPositionsError(
            f"{name} can't be read: {type(error).__name__}: {error}; check the catalog, its "
            f"credentials and that the table exists"
        )
        problem.retryable = True
        raise problem from error


def _history(table: "Table", name: str, branch: str) -> Iterator["Snapshot"]:
    """Yield the newest snapshot of a branch, its parent, and so on, as far as they are kept."""
    snapshot = table.snapshot_by_name(branch)
    if snapshot is None:
        branches = ", ".join(sorted(table.refs())) or "none: the table has no snapshot"
        raise StoredPositionsError(
            f"{name} has no branch {branch}; its branches and tags are {branches}"
        )
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
