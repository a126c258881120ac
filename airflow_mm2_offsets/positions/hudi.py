"""Positions of a HoodieStreamer (once DeltaStreamer) that reads Kafka, from its Hudi table.

It notes ``topic,partition:offset,...`` with each write, ``OffsetRange.untilOffset`` of each
partition (``KafkaOffsetGen.CheckpointUtils.offsetsToStr``): the next offset to read. It goes on
from the newest completed write that has a checkpoint or a reset key, in a merge-on-read table from
the newest deltacommit (``StreamerCheckpointUtils.getLatestCommitMetadataWithValidCheckpointInfo``).
The keys are those of ``StreamerCheckpointV1`` and ``StreamerCheckpointV2``; the latter counts.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from upath import UPath

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.errors import StoredPositionsError
from airflow_mm2_offsets.positions.texts import is_hudi_form, parse_stored
from airflow_mm2_offsets.spark.sinks.hudi_timeline import (
    CompletedWrite,
    completed_writes,
    list_timeline,
    read_extra_metadata,
)
from airflow_mm2_offsets.storage import list_directory, open_location, read_text

_KEYS = (
    ("streamer.checkpoint.key.v2", "streamer.checkpoint.reset.key.v2"),
    ("deltastreamer.checkpoint.key", "deltastreamer.checkpoint.reset_key"),
)
_MERGE_ON_READ = re.compile(r"^hoodie\.table\.type\s*[=:]\s*MERGE_ON_READ\s*$", re.MULTILINE)
_RESTORE = re.compile(r"(\d{14,17})(_\d{14,17})?\.restore(\.requested|\.inflight)?")
_SHOWN = 5


class _Checkpoint(NamedTuple):
    """What a write noted."""

    text: str
    path: UPath

    @property
    def topic(self) -> str:
        """As ``strToOffsets`` finds it."""
        return self.text.partition(",")[0]

    def parse(self) -> Positions:
        return parse_stored(self.text, str(self.path))


def read_hudi_positions(table: UPath | str, *, topic: str | None = None) -> Positions:
    """Return the positions at which a HoodieStreamer goes on.

    Writes that are not completed do not count, and no write that was rolled back. Read again
    before the job starts on the target (``check_unchanged``) if the streamer may run.

    Args:
        table: The table's base path: text, with the credentials of the process, or a path such as
            Airflow's ``ObjectStoragePath``.
        topic: Needed only where the active timeline has checkpoints of several topics.

    Raises:
        StoredPositionsError: There is no Hudi table, no completed write of its active timeline has
            a checkpoint, the checkpoint is not of Kafka offsets, it may be of several topics, a
            restore has not ended, or a file is damaged or out of reach.
        ConfigurationError: The table is of version 8 or later, and fastavro is not installed.
    """
    table = open_location(table, StoredPositionsError)
    is_merge_on_read = bool(_MERGE_ON_READ.search(_properties(table)))
    timeline = list_timeline(table, StoredPositionsError)
    _check_restored(table, timeline)
    writes = completed_writes(timeline)
    deltas = [write for write in writes if write.action == "deltacommit"]
    if is_merge_on_read and deltas:
        writes = deltas
    newest: dict[str, _Checkpoint] = {}
    for checkpoint in _checkpoints(writes):
        newest.setdefault(checkpoint.topic, checkpoint)
    if not newest:
        raise StoredPositionsError(
            f"{table}: none of the {len(writes)} completed writes of the active timeline has a "
            f"checkpoint ({' or '.join(key for key, _ in _KEYS)}). No HoodieStreamer has written "
            f"them, or its last write was archived: find out where the job stands, and give "
            f"positions yourself"
        )
    return _choose(table, newest, topic).parse()


def _properties(table: UPath) -> str:
    properties = table / ".hoodie" / "hoodie.properties"
    text = read_text(properties, StoredPositionsError)
    if text is None:
        names = sorted(list_directory(table, StoredPositionsError))
        holds = ", ".join(names[:_SHOWN]) or "nothing"
        raise StoredPositionsError(
            f"{table} is not a Hudi table: it has no .hoodie/hoodie.properties, and holds {holds}; "
            f"give the table's base path"
        )
    return text


def _check_restored(table: UPath, timeline: Mapping[str, UPath]) -> None:
    """Refuse a table that is being restored: the newest of its writes are removed one by one."""
    restores = [match for name in timeline if (match := _RESTORE.fullmatch(name))]
    if pending := {match[1] for match in restores} - {m[1] for m in restores if m[3] is None}:
        raise StoredPositionsError(
            f"{table}: the restore {min(pending)} has not ended, and the writes that it has yet to "
            f"remove would still count; let it end, then read again"
        )


def _checkpoints(writes: list[CompletedWrite]) -> Iterator[_Checkpoint]:
    """Yield the checkpoints of writes, in their order."""
    for write in writes:
        extra = read_extra_metadata(write.path, StoredPositionsError)
        if extra is None:
            gone = StoredPositionsError(
                f"{write.path} was removed while the timeline was read: it was archived or "
                f"rolled back; read again"
            )
            gone.retryable = True
            raise gone
        if (noted := _noted(write, extra)) is not None:
            yield _Checkpoint(noted, write.path)


def _noted(write: CompletedWrite, extra: Mapping[str, Any]) -> str | None:
    """Return a write's checkpoint; None if its writer noted none."""
    for key, reset_key in _KEYS:
        if noted := extra.get(key):
            return str(noted)
        if extra.get(reset_key):
            raise StoredPositionsError(
                f"{write.path} has a {reset_key} and no {key}: HoodieStreamer does not go on from "
                f"there either; find out where it stands, and give positions yourself"
            )
    return None


def _choose(table: UPath, newest: Mapping[str, _Checkpoint], topic: str | None) -> _Checkpoint:
    """Return the newest checkpoint of a topic."""
    topics = ", ".join(sorted(name for name in newest if is_hudi_form(newest[name].text)))
    if topic is None:
        first = next(iter(newest.values()))
        if is_hudi_form(first.text) and topics != first.topic:
            raise StoredPositionsError(
                f"{table}: the active timeline has checkpoints of several topics, {topics}; give "
                f"topic= the one that the job reads"
            )
        return first
    if topic not in newest:
        raise StoredPositionsError(
            f"{table}: no checkpoint is of the topic {topic}; the active timeline has those of "
            f"{topics or 'no topic'}"
        )
    return newest[topic]
