"""What a Spark checkpoint says of its Kafka positions, and what it can't prove.

Rules: ``MicroBatchExecution.populateStartOffsets`` and its asynchronous and continuous kin. A
batch's end is in ``offsets/N`` before it runs; ``commits/N`` says that it is done.
"""

from dataclasses import dataclass
from typing import NamedTuple

from upath import UPath

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.spark import offset_log
from airflow_mm2_offsets.storage import list_directory, open_location, read_text

CHANGE_MARKS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")
"""What fsspec's file systems call that which changes when a file is written again."""


class ListedFile(NamedTuple):
    """One file of a checkpoint's logs, as its storage lists it."""

    path: str
    size: int
    mark: str
    """Entity tag, time of change, or both, as the storage has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The Kafka positions in a checkpoint: every one is the next offset to read."""

    location: str
    query_id: str
    committed_batch: int | None
    """The last batch that is done; None when the first one never was."""
    positions: Positions
    """Everything before them is done. A partition that is first seen later is not among them."""
    pending_batch: int | None
    """The batch that was begun and not committed, if any."""
    pending: Positions | None
    """Where the pending batch ends."""
    start: Positions
    """Where the first batch began; empty when the checkpoint no longer says so."""

    @property
    def reread(self) -> int:
        """The most records that are processed again because their batch is pending."""
        return sum(
            max(0, end - self.positions.get(topic, {}).get(partition, 0))
            for topic, ends in (self.pending or {}).items()
            for partition, end in ends.items()
        )


def read_checkpoint(location: UPath | str) -> Checkpoint:
    """Read the committed positions of a streaming query, and its pending batch.

    Args:
        location: The query's ``checkpointLocation``.

    Raises:
        CheckpointError: It is missing, half-written, contradicts itself, has no Kafka source, or
            can't be read.
    """
    root = open_location(location, CheckpointError)
    query_id = _query_id(root)
    # Commits first: a job that still runs then looks pending, never committed ahead of itself.
    commits = _batches(root / "commits")
    offsets = _batches(root / "offsets")
    committed, base, pending = _choose(root, commits, offsets)
    if committed is not None:
        _check_commit(root / "commits" / str(committed))
    starts = _starts(root)
    batches = {n: _sources(root, n, starts) for n in (base, pending) if n is not None}
    latest = batches[max(batches)]  # a source that was renamed away keeps its start on storage
    start = offset_log.kafka_positions(
        [text for name, text in starts.items() if name in latest], f"{root}/sources"
    )
    return Checkpoint(
        location=str(location),
        query_id=query_id,
        committed_batch=committed,
        positions=_check_start(root, start) if base is None else _ends(root, base, batches[base]),
        pending_batch=pending,
        pending=None if pending is None else _ends(root, pending, batches[pending]),
        start=start,
    )


def listing(location: UPath | str) -> frozenset[ListedFile]:
    """List the offset and commit logs, temporary files too: two that are equal lay still between.

    Raises:
        CheckpointError: The storage can't be read.
    """
    root = open_location(location, CheckpointError)
    return frozenset(
        ListedFile(
            entry["name"],
            entry["size"] or 0,
            " ".join(str(entry[mark]) for mark in CHANGE_MARKS if mark in entry),
        )
        for log in ("offsets", "commits")
        for entry in list_directory(root / log, CheckpointError).values()
        if entry["type"] == "file"
    )


def _batches(log: UPath) -> set[int]:
    """Return the batches in a log; other names are check sums, temporary or of no batch."""
    names = list_directory(log, CheckpointError)
    return {int(name) for name in names if name.isascii() and name.isdecimal()}


class _Choice(NamedTuple):
    committed: int | None
    base: int | None  # the offsets file up to which all is done; None means sources/N/0
    pending: int | None


def _choose(root: UPath, commits: set[int], offsets: set[int]) -> _Choice:
    if not offsets:
        raise CheckpointError(
            f"{root}: offsets/ holds no batch, so it says nothing of positions; start the job "
            f"with startingOffsets and a new checkpoint"
        )
    latest = max(offsets)
    if not commits:
        if latest > 0:  # batch N is only begun when N-1 is committed
            raise CheckpointError(
                f"{root}: commits/ is empty, yet offsets/{latest} proves that batch "
                f"{latest - 1} was committed; the checkpoint is damaged or half-copied"
            )
        return _Choice(None, None, latest)
    committed = max(commits)
    if committed > latest:
        raise CheckpointError(
            f"{root}: commits/{committed} is ahead of offsets/{latest}; two queries wrote here, "
            f"or it was half-copied (Spark: CONCURRENT_STREAM_LOG_UPDATE)"
        )
    base = _base(root, committed, commits, offsets)
    return _Choice(committed, base, latest if latest > committed else None)


def _base(root: UPath, committed: int, commits: set[int], offsets: set[int]) -> int:
    base = max((batch for batch in offsets if batch <= committed), default=None)
    every_batch = committed - 1 in offsets | commits
    # Asynchronous progress tracking logs only some batches: what lies before the gap is done.
    if base is None or (base < committed and every_batch):
        raise CheckpointError(
            f"{root}: offsets/{committed} is missing although commits/{committed} is there; "
            f"restore it, or the positions can't be proved"
        )
    return base


def _sources(root: UPath, batch: int, starts: dict[str, str]) -> dict[str, str]:
    """Return the offset of each source at a batch's end, as text, by the source's name."""
    path = root / "offsets" / str(batch)
    sources = offset_log.parse_batch(_required(path), str(path))
    # A Kafka source has an offset from its first batch on. Only unnamed ones can't be renamed.
    begun = {
        name
        for name, text in starts.items()
        if name.isdecimal() and offset_log.kafka_positions([text], f"{root}/sources/{name}/0")
    }
    if missing := begun - sources.keys():
        raise CheckpointError(
            f"{path}: cut off, it lacks the Kafka source {', '.join(sorted(missing))} that "
            f"{root}/sources has"
        )
    return sources


def _ends(root: UPath, batch: int, sources: dict[str, str]) -> Positions:
    path = root / "offsets" / str(batch)
    positions = offset_log.kafka_positions(sources.values(), str(path))
    if not positions:
        raise CheckpointError(
            f"{path}: none of its {len(sources)} sources is Kafka, so there's nothing to translate"
        )
    return positions


def _starts(root: UPath) -> dict[str, str]:
    """Return what each source's first file holds, by the source's name."""
    texts = {
        name: read_text(root / "sources" / name / "0", CheckpointError)
        for name in list_directory(root / "sources", CheckpointError)
        if not name.startswith((".", "_"))
    }
    return {name: offset_log.parse_start(text) for name, text in texts.items() if text}


def _check_start(root: UPath, start: Positions) -> Positions:
    if not start:
        raise CheckpointError(
            f"{root}: no batch was committed, and sources/ does not say where a Kafka source "
            f"began; start the job with startingOffsets and a new checkpoint"
        )
    return start


def _query_id(root: UPath) -> str:
    path = root / "metadata"
    text = read_text(path, CheckpointError)
    if text is None:
        raise CheckpointError(f"{path} is missing: {root} is not a checkpoint of a Spark query")
    query_id = offset_log.parse_object(text, str(path)).get("id")
    if not isinstance(query_id, str):
        raise CheckpointError(f"{path}: holds no query id: {text[:80]!r}")
    return query_id


def _check_commit(path: UPath) -> None:
    version, _, body = _required(path).partition("\n")
    if version not in ("v1", "v2", "v3"):
        raise CheckpointError(f"{path}: none of v1 to v3 of Spark's commit log: {version!r}")
    offset_log.parse_object(body, str(path))


def _required(path: UPath) -> str:
    text = read_text(path, CheckpointError)
    if text is None:
        raise CheckpointError(f"{path} was listed and is gone; is the job still running?")
    if not text.strip():
        raise CheckpointError(f"{path}: empty, half-written; restore it or wait for its writer")
    return text
