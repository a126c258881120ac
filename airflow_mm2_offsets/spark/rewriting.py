"""Finds the files of a checkpoint that hold Kafka offsets, and rewrites them for another cluster.

``migration/`` calls it. What is not a Kafka source's offset stays byte by byte.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from airflow_mm2_offsets.core.positions import Positions, TopicPartition, by_topic_partition
from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.spark import offset_log
from airflow_mm2_offsets.spark.logs import CheckpointLogs, Sources, read_required

_NEW_CHECKPOINT = "start the job with startingOffsets and a new checkpoint"


class SourcePosition(NamedTuple):
    """A position on the source cluster; prints as ``orders[0] at 42``."""

    topic_partition: TopicPartition
    position: int

    def __str__(self) -> str:
        """Return the form that messages use."""
        return f"{self.topic_partition} at {self.position}"


PositionTranslator: TypeAlias = Callable[[SourcePosition], tuple[str, int]]
"""Returns the topic's name on the target, and the position there."""


class OffsetRole(StrEnum):
    """What Spark does with the offsets of a file when the query starts again."""

    START = "start"
    """Reads on from them."""
    END = "end"
    """Ends the pending batch there, so that its records are those of its first try."""
    BEGINNING = "beginning"
    """Reads a partition that no batch has seen from its beginning, which no file names."""
    HISTORY = "history"
    """Only requires the file: no batch begins or ends at its offsets any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFile:
    """A file with Kafka offsets that the copy of a checkpoint needs."""

    name: str
    """Its path in the checkpoint."""
    text: str
    role: OffsetRole
    sources: Sources
    """The offset of each source in it, as text."""

    def by_source(self) -> dict[tuple[str, TopicPartition], int]:
        """Return the positions of each Kafka source, by the source's name and topic-partition."""
        return {
            (source, topic_partition): position
            for source, text in self.sources.items()
            for topic_partition, position in by_topic_partition(self._positions(text)).items()
        }

    def positions(self) -> set[SourcePosition]:
        """Return the positions of all Kafka sources."""
        return {
            SourcePosition(topic_partition, position)
            for (_, topic_partition), position in self.by_source().items()
        }

    def rewrite(self, translate: PositionTranslator) -> str:
        """Return its text with each position of a Kafka source replaced."""

        def rewrite_offset(offset: str) -> str:
            moved: dict[str, dict[str, int]] = {}
            for partition, position in by_topic_partition(self._positions(offset)).items():
                topic, target = translate(SourcePosition(partition, position))
                moved.setdefault(topic, {})[str(partition.partition)] = target
            return json.dumps(moved, separators=(",", ":")) if moved else offset

        def rewrite_named(line: str) -> str:
            name, colon, offset = line.partition(":")
            return f"{name}{colon}{rewrite_offset(offset)}"

        if self.name.startswith("sources/"):
            head, newline, offset = self.text.partition("\n")
            return f"{head}{newline}{rewrite_offset(offset)}"
        is_named = self.text.startswith("v2")
        return offset_log.rewrite_lines(self.text, 2, rewrite_named if is_named else rewrite_offset)

    def _positions(self, offset: str) -> Positions:
        return offset_log.kafka_positions([offset], self.name)


def offset_files(logs: CheckpointLogs) -> tuple[OffsetFile, ...]:
    """Return the files with Kafka offsets that Spark needs to continue; the newest batch is last.

    These are the newest two batches (``MicroBatchExecution.populateStartOffsets`` takes no fewer),
    and where no batch is committed the beginning of each source.

    Raises:
        CheckpointError: No source is Kafka's, it is unknown where the first batch began, or Spark
            itself would skip batches.
    """
    kafka = kafka_sources(logs)
    if logs.base is None:
        return (*_first_offsets(logs, kafka), _batch(logs, logs.newest, OffsetRole.END))
    if logs.pending is not None:
        if logs.previous != logs.base:
            raise CheckpointError(
                f"{logs.root}: commits/ ends at batch {logs.committed}, and batch {logs.pending} "
                f"is pending: Spark would run only that one and skip those between; "
                f"{_NEW_CHECKPOINT}"
            )
        start = _batch(logs, logs.base, OffsetRole.START)
        return (start, _batch(logs, logs.pending, OffsetRole.END))
    last = _batch(logs, logs.base, OffsetRole.START)
    if logs.previous is None:
        return (last,)
    return (_batch(logs, logs.previous, OffsetRole.HISTORY), last)


def kafka_sources(logs: CheckpointLogs) -> frozenset[str]:
    """Return the names of the sources that are, or once were, Kafka's.

    Raises:
        CheckpointError: No source is Kafka's.
    """
    newest = logs.path(logs.newest)
    kafka = frozenset(
        name
        for name, text in (*logs.starts.items(), *logs.sources(logs.newest).items())
        if offset_log.kafka_positions([text], newest)
    )
    if not kafka:
        raise CheckpointError(f"{newest}: no source is Kafka, so there's nothing to translate")
    return kafka


def _first_offsets(logs: CheckpointLogs, kafka: frozenset[str]) -> list[OffsetFile]:
    """Return the files that say where the first batch of each Kafka source began."""
    if missing := sorted(kafka - logs.start_texts.keys()):
        raise CheckpointError(
            f"{logs.root}: no batch was committed, and sources/ does not say where the Kafka "
            f"source {', '.join(missing)} began; {_NEW_CHECKPOINT}"
        )
    return [
        OffsetFile(
            name=f"sources/{name}/0",
            text=text,
            role=OffsetRole.START,
            sources={name: logs.starts[name]},
        )
        for name, text in logs.start_texts.items()
        if name in kafka
    ]


def _batch(logs: CheckpointLogs, batch: int, role: OffsetRole) -> OffsetFile:
    name = f"offsets/{batch}"
    text = logs.texts.get(batch) or read_required(logs.root / "offsets" / str(batch))
    sources = offset_log.parse_batch(text, f"{logs.root}/{name}")
    return OffsetFile(name=name, text=text, role=role, sources=sources)
