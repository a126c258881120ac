"""Reads a checkpoint's logs: which batch is committed, which one is pending, and their files.

Rules: ``MicroBatchExecution.populateStartOffsets`` and its asynchronous and continuous kin. A
batch's end is in ``offsets/N`` before it runs (real-time mode: when it ends); ``commits/N`` says
that it is committed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError, CheckpointNotBegunError
from airflow_mm2_offsets.spark import offset_log
from airflow_mm2_offsets.spark.poisoned import check_follows
from airflow_mm2_offsets.storage import list_directory, open_location, read_bytes, read_text

Sources = Mapping[str, str]
"""The offset of each source in a file, as text, by the source's name, or else its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLogs:
    """The content of a checkpoint's small files, without contradictions."""

    root: UPath
    query_id: str
    committed: int | None
    """The last committed batch; None if no batch was committed."""
    base: int | None
    """The last committed batch that is in the offset log; None: ``starts`` is the base."""
    pending: int | None
    """The batch that was begun and not committed, if any."""
    previous: int | None
    """The batch logged before the newest, if any; its file is not read."""
    texts: Mapping[int, str]
    """``offsets/N`` of ``base`` and ``pending``, by batch."""
    start_texts: Sources
    """``sources/NAME/0`` by source, of Kafka sources."""

    @property
    def newest(self) -> int:
        """The newest batch that is logged."""
        return max(self.texts)

    @property
    def starts(self) -> Sources:
        """Where each Kafka source began, if the checkpoint still says so."""
        return {
            name: start
            for name, text in self.start_texts.items()
            if (start := offset_log.parse_start(text)) is not None
        }

    def path(self, batch: int) -> str:
        """Return the location of a batch's file in the offset log."""
        return f"{self.root}/offsets/{batch}"

    def sources(self, batch: int) -> Sources:
        """Return the offset of each source at a batch's end.

        Raises:
            CheckpointError: The file is cut off.
        """
        place = self.path(batch)
        sources = offset_log.parse_batch(self.texts[batch], place)
        # A Kafka source has an offset from its first batch on. Only unnamed ones can't be renamed.
        begun = {
            name
            for name, text in self.starts.items()
            if name.isdecimal()
            and offset_log.kafka_positions([text], f"{self.root}/sources/{name}/0")
        }
        if missing := begun - sources.keys():
            raise CheckpointError(
                f"cut off, it lacks the Kafka source {', '.join(sorted(missing))} that "
                f"{self.root}/sources has",
                file=place,
            )
        return sources

    def base_sources(self) -> Sources:
        """Return the offset of each source where the committed batches end."""
        return self.starts if self.base is None else self.sources(self.base)


def read_logs(location: UPath | str, *, query_id: str | None = None) -> CheckpointLogs:
    """Read a checkpoint's logs; ``query_id`` stands in for a ``metadata`` that is not written yet.

    Raises:
        CheckpointError: It is missing, half-written, contradicts itself, or can't be read.
    """
    root = open_location(location, CheckpointError)
    query_id = query_id or _query_id(root)
    # Commits first: a batch that is committed meanwhile then looks pending, not ahead of offsets.
    commits = _batches(root / "commits")
    offsets = _batches(root / "offsets")
    committed, base, pending = _choose(root, commits, offsets)
    if committed is not None:
        _check_commit(root / "commits" / str(committed))
    logs = CheckpointLogs(
        root=root,
        query_id=query_id,
        committed=committed,
        base=base,
        pending=pending,
        previous=max(offsets - {max(offsets)}, default=None),
        texts={
            batch: read_required(root / "offsets" / str(batch))
            for batch in (base, pending)
            if batch is not None
        },
        start_texts=_start_texts(root),
    )
    _check_pending(logs)
    return logs


def _batches(log: UPath) -> set[int]:
    """Return the batches in a log, without check sums, temporary and other files."""
    names = list_directory(log, CheckpointError)
    return {int(name) for name in names if name.isascii() and name.isdecimal()}


class _Choice(NamedTuple):
    committed: int | None
    base: int | None  # see ``CheckpointLogs``
    pending: int | None


def _choose(root: UPath, commits: set[int], offsets: set[int]) -> _Choice:
    if not offsets:
        raise CheckpointNotBegunError(
            "offsets/ holds no batch, so it says nothing of positions; start the job "
            "with startingOffsets and a new checkpoint",
            file=str(root),
        )
    latest = max(offsets)
    if not commits:
        if latest > 0:  # batch N is only begun when N-1 is committed
            raise CheckpointError(
                f"commits/ is empty, yet offsets/{latest} proves that batch "
                f"{latest - 1} was committed; the checkpoint is damaged or half-copied",
                file=str(root),
            )
        return _Choice(None, None, latest)
    committed = max(commits)
    if committed > latest:
        raise CheckpointError(
            f"commits/{committed} is ahead of offsets/{latest}; two queries wrote here, "
            f"or it was half-copied (Spark: CONCURRENT_STREAM_LOG_UPDATE)",
            file=str(root),
        )
    base = _base(root, committed, commits, offsets)
    return _Choice(committed, base, latest if latest > committed else None)


def _base(root: UPath, committed: int, commits: set[int], offsets: set[int]) -> int:
    base = max((batch for batch in offsets if batch <= committed), default=None)
    every_batch = committed - 1 in offsets | commits
    # Asynchronous progress tracking logs only some batches: those before the gap are committed.
    if base is None or (base < committed and every_batch):
        raise CheckpointError(
            f"offsets/{committed} is missing although commits/{committed} is there; "
            f"restore it, or the positions can't be proved",
            file=str(root),
        )
    return base


def _check_pending(logs: CheckpointLogs) -> None:
    """Raise if the pending batch is of another cluster or subscription."""
    if logs.pending is None:
        return
    place = logs.path(logs.pending)
    base_place = f"{logs.root}/sources" if logs.base is None else logs.path(logs.base)
    starts, ends = logs.base_sources(), logs.sources(logs.pending)
    for name in sorted(starts.keys() & ends.keys()):
        start = offset_log.kafka_positions([starts[name]], base_place)
        end = offset_log.kafka_positions([ends[name]], place)
        check_follows(start, end, batch=logs.pending, file=place)


def _start_texts(root: UPath) -> Sources:
    """Return the first file of each Kafka source, by the source's name."""
    first = {
        name: read_bytes(root / "sources" / name / "0", CheckpointError) or b""
        for name in sorted(list_directory(root / "sources", CheckpointError))
        if not name.startswith((".", "_"))
    }
    # The encoding of other sources is unknown.
    texts = {name: data.decode(errors="replace") for name, data in first.items()}
    return {name: text for name, text in texts.items() if offset_log.parse_start(text) is not None}


def _query_id(root: UPath) -> str:
    path = root / "metadata"
    text = read_text(path, CheckpointError)
    if text is None:
        raise CheckpointNotBegunError(
            f"is missing; {root} is not a checkpoint of a Spark query", file=str(path)
        )
    query_id = offset_log.parse_object(text, str(path)).get("id")
    if not isinstance(query_id, str):
        raise CheckpointError(f"holds no query id: {text[:80]!r}", file=str(path))
    return query_id


def _check_commit(path: UPath) -> None:
    version, body, _ = offset_log.split_log(read_required(path))
    if version not in ("v1", "v2", "v3"):
        raise CheckpointError(
            f"none of v1 to v3 of Spark's commit log: {version!r}", file=str(path)
        )
    offset_log.parse_object(body, str(path))


def read_required(path: UPath) -> str:
    """Return the text of a file that must be there and whole.

    Raises:
        CheckpointError: It is missing or empty, or can't be read.
    """
    text = read_text(path, CheckpointError)
    if text is None:
        raise CheckpointError("was listed and is gone; is the job still running?", file=str(path))
    if not text.strip():
        raise CheckpointError(
            "empty, half-written; restore it or wait for its writer", file=str(path)
        )
    return text
