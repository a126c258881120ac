"""Which clusters and topics a job's positions are of.

A Spark checkpoint names topics, not their ids. A topic that is deleted and created again keeps its
name, and its offsets begin again: positions of the old one would be translated with the new one's
data. So the ids are noted when the positions are first read, best while the job still runs, and
every later step of the failover compares them. The note lies beside the checkpoint and outlives a
cleared task and a failed run.
"""

import json
import logging
from dataclasses import asdict, dataclass, replace
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.spark.checkpoint import Checkpoint
from airflow_mm2_offsets.storage import read_text, write_text

log = logging.getLogger(__name__)

_STEPS = {
    "clusters.source.cluster_id": "see that the connection names the cluster that the job reads",
    "clusters.target.cluster_id": "see that the connection names the cluster that the job moves to",
    "clusters.source.topic_ids": (
        "the topic was deleted or recreated, so the positions are of other records. Let the job on "
        "the source commit a batch of the topic that exists now, then start a new run of the "
        "failover; or start the job on the target at offsets that you choose"
    ),
    "clusters.target.topic_ids": (
        "the topic was deleted or recreated. Wait until MirrorMaker 2 has copied the source again, "
        "then start a new run of the failover"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """The ids, and which positions they were read for."""

    request_id: str
    """The failover: DAG id and run id."""
    query_id: str
    committed_batch: int | None
    pending_batch: int | None
    clusters: dict[str, Any]
    """``PairIds`` as plain JSON."""

    def is_of_positions(self, other: "_Note") -> bool:
        """Tell whether the job has begun no batch between the two notes."""
        fields = ("query_id", "committed_batch", "pending_batch")
        return all(getattr(self, field) == getattr(other, field) for field in fields)


def note_ids(checkpoint: UPath, found: Checkpoint, request_id: str, now: PairIds) -> PairIds:
    """Return the ids from when a job's positions were first read, and note them.

    An earlier note counts where it is of the same failover, or the job has begun no batch since.

    Args:
        checkpoint: The job's checkpoint location.
        found: What it holds.
        request_id: The failover.
        now: The ids of now.

    Raises:
        HandoverError: The note can't be read.
    """
    path = _note_path(checkpoint)
    fresh = _Note(
        request_id=request_id,
        query_id=found.query_id,
        committed_batch=found.committed_batch,
        pending_batch=found.pending_batch,
        clusters=now.to_json(),
    )
    earlier, first = _read(path), now
    if earlier is not None and earlier.query_id == fresh.query_id:
        noted = PairIds.from_json(earlier.clusters)
        if earlier.request_id == request_id:
            first = noted.completed_by(now)
        elif earlier.is_of_positions(fresh):
            first = PairIds(source=noted.source.completed_by(now.source), target=now.target)
    kept = replace(fresh, clusters=first.to_json())
    if kept != earlier:
        _write(path, kept)
    return first


def check_ids(first: PairIds, now: PairIds) -> None:
    """Raise where a cluster or topic is another one than when the positions were first read.

    Args:
        first: The ids from then.
        now: The ids of now; a cluster that was not asked is not compared.

    Raises:
        HandoverError: One is; the field, both ids and the next step are named.
    """
    for change in first.changes(now):
        step = next(step for field, step in _STEPS.items() if change.field.startswith(field))
        raise HandoverError(
            f"{change.field} is {change.now!r} now, and was {change.planned!r} when the job's "
            f"positions were first read, so nothing was started: {step}"
        )


def _note_path(checkpoint: UPath) -> UPath:
    return checkpoint.with_name(f"{checkpoint.name}.clusters.json")


def _read(path: UPath) -> _Note | None:
    text = read_text(path, HandoverError)
    if not text:
        return None
    try:
        values = json.loads(text)
        note = _Note(**{field: values[field] for field in _Note.__slots__})
        PairIds.from_json(note.clusters)
    except (KeyError, TypeError, ValueError) as error:
        raise HandoverError(
            f"{path} does not hold the ids of clusters and topics: {text[:100]!r}; delete it if no "
            f"failover of this job is under way"
        ) from error
    return note


def _write(path: UPath, note: _Note) -> None:
    text = json.dumps({"schema_version": 1, **asdict(note)})
    try:
        write_text(path, text, HandoverError)
    except HandoverError as error:
        # The source's storage may be read-only for us: the ids still pass from task to task.
        log.warning("The ids are not kept for a cleared task or another run: %s", error)
