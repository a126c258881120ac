"""Notes and compares the clusters and topic ids that a job's positions belong to.

A Spark checkpoint names topics, not their ids. A recreated topic keeps its name, and its offsets
begin again: positions of the old incarnation would be translated with the new one's syncs. So the
ids are noted when the positions are first read, best while the job still runs, and every later step
of the failover compares them. The note lies beside the checkpoint and outlives a cleared task and a
failed run.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core import Positions, check_positions
from airflow_mm2_offsets.core.ids import ClusterIds, PairIds
from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.locations import beside
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
    read_until: Positions
    """The positions before which all may have been read: the end of a batch that was begun."""
    clusters: PairIds

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"schema_version": 1, **asdict(self), "clusters": self.clusters.to_json()}

    @classmethod
    def from_json(cls, note: Mapping[str, Any]) -> "_Note":
        """Return the note that ``to_json`` made."""
        return cls(
            request_id=note["request_id"],
            query_id=note["query_id"],
            read_until=check_positions(note["read_until"]),
            clusters=PairIds.from_json(note["clusters"]),
        )


def note_ids(
    location: UPath,
    checkpoint: Checkpoint,
    request_id: str,
    now: PairIds,
    *,
    is_kept: bool = True,
) -> PairIds:
    """Return the ids from when a job's positions were first read, and note them if ``is_kept``.

    An earlier note of the same failover counts. A note of another failover counts for the topics of
    which the job has begun no batch since: a batch of other topics does not tell to which
    incarnation of a topic a position belongs.

    Raises:
        HandoverError: The note can't be read.
    """
    path = _note_path(location)
    fresh = _Note(
        request_id=request_id,
        query_id=checkpoint.query_id,
        read_until=checkpoint.read_until,
        clusters=now,
    )
    earlier, first = _read(path), now
    if earlier is not None and earlier.query_id == fresh.query_id:
        if earlier.request_id == request_id:
            first = earlier.clusters.completed_by(now)
        else:
            first = ids_of_positions(earlier.clusters, earlier.read_until, fresh.read_until, now)
    kept = replace(fresh, clusters=first)
    if is_kept and kept != earlier:
        _write(path, kept)
    return first


def read_noted_ids(location: UPath, checkpoint: Checkpoint) -> ClusterIds | None:
    """Return which source the positions of a checkpoint are of, as the note beside it says.

    Of its topics those are there of which the job has begun no batch since. The cluster stays the
    same as long as the checkpoint does. None: no note is there, or one of another query.

    Raises:
        HandoverError: The note can't be read.
    """
    note = _read(_note_path(location))
    if note is None or note.query_id != checkpoint.query_id:
        return None
    return replace(
        note.clusters.source,
        topic_ids=_unmoved(note.clusters, note.read_until, checkpoint.read_until),
    )


def ids_of_positions(
    noted: PairIds, noted_until: Positions, read_until: Positions, now: PairIds
) -> PairIds:
    """Return the current ids, but the source's noted ids of topics without progress since.

    A job that has read on in all topics may read another cluster now.

    Args:
        noted: The ids that were noted earlier.
        noted_until: The positions before which the job may have read all then.
        read_until: The same now.
        now: The current ids.
    """
    unmoved = _unmoved(noted, noted_until, read_until)
    if not unmoved:
        return now
    source = replace(noted.source, topic_ids=unmoved).completed_by(now.source)
    return replace(now, source=source)


def _unmoved(
    noted: PairIds, noted_until: Positions, read_until: Positions
) -> dict[str, str | None]:
    """Return the noted ids of the source's topics of which the job has begun no batch since."""
    return {
        topic: topic_id
        for topic, topic_id in noted.source.topic_ids.items()
        if noted_until.get(topic) == read_until.get(topic)
    }


def check_ids(first: PairIds, now: PairIds) -> None:
    """Raise if a cluster or topic id has changed since the positions were first read.

    Raises:
        HandoverError: An id has changed; the field, both ids and the next step are named.
    """
    for change in first.changes(now):
        step = next(step for field, step in _STEPS.items() if change.field.startswith(field))
        raise HandoverError(
            f"{change.field} is {change.now!r} now, and was {change.planned!r} when the job's "
            f"positions were first read, so nothing was started: {step}"
        )


def _note_path(checkpoint: UPath) -> UPath:
    return beside(checkpoint, "clusters.json")


def _read(path: UPath) -> _Note | None:
    text = read_text(path, HandoverError)
    if not text:
        return None
    try:
        return _Note.from_json(json.loads(text))
    except (KeyError, TypeError, ValueError) as error:
        raise HandoverError(
            f"{path} does not hold the ids of clusters and topics: {text[:100]!r}; delete it if no "
            f"failover of this job is under way"
        ) from error


def _write(path: UPath, note: _Note) -> None:
    try:
        write_text(path, json.dumps(note.to_json()), HandoverError)
    except HandoverError as error:
        # The source's storage may be read-only for us: the ids still pass from task to task.
        log.warning("The ids are not saved for a cleared task or another run: %s", error)
