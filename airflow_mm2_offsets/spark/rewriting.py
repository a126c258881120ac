"""A checkpoint's texts with the Kafka offsets of another cluster; all else stays byte by byte."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from airflow_mm2_offsets.core.positions import Positions, TopicPartition, by_topic_partition
from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.spark import offset_log
from airflow_mm2_offsets.spark.logs import CheckpointLogs, Sources, read_required


class Asked(NamedTuple):
    """A position on the source cluster."""

    topic: str
    partition: int
    position: int

    def __str__(self) -> str:
        """Return it as messages name it."""
        return f"{TopicPartition(self.topic, self.partition)} at {self.position}"


Answer: TypeAlias = Callable[[Asked], tuple[str, int]]
"""Returns the topic's name on the target, and the position there."""


class Use(StrEnum):
    """What Spark does with the offsets of a file when the query starts again."""

    START = "start"
    """Reads on from them."""
    END = "end"
    """Ends the pending batch there, so that its records are those of its first try."""
    BEGINNING = "beginning"
    """Reads a partition that no batch has seen from its beginning, which no file names."""
    HISTORY = "history"
    """Wants the file to be there; no batch begins or ends at its offsets any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    """A file with Kafka offsets that the copy of a checkpoint needs."""

    name: str
    """Its path in the checkpoint."""
    text: str
    use: Use
    sources: Sources
    """What it says of each source, as text."""

    def positions(self, source: str) -> Positions:
        """Return what it says of one source; nothing where that is not Kafka's."""
        text = self.sources.get(source)
        return offset_log.kafka_positions([text], self.name) if text else {}

    def asked(self) -> set[Asked]:
        """Return all positions in it, of every source."""
        return {
            Asked(*partition, position)
            for source in self.sources
            for partition, position in by_topic_partition(self.positions(source)).items()
        }

    def rewrite(self, answer: Answer) -> str:
        """Return its text with each position of a Kafka source replaced."""
        if self.name.startswith("sources/"):
            head, newline, offset = self.text.partition("\n")
            return f"{head}{newline}{_rewrite(offset, self.name, answer)}"
        named = self.text.startswith("v2")
        return offset_log.rewrite_lines(
            self.text, 2, lambda line: _rewrite_line(line, self.name, answer, named)
        )


def kept_files(logs: CheckpointLogs) -> tuple[KeptFile, ...]:
    """Return the files with Kafka offsets without which Spark can't go on.

    The newest two batches (``MicroBatchExecution.populateStartOffsets`` takes no fewer), and
    where no batch is committed the beginning of each source. Older ones only tell history.

    Raises:
        CheckpointError: No source is Kafka's, nobody knows where the first batch began, or Spark
            itself would pass over batches.
    """
    kafka = kafka_sources(logs)
    if logs.base is None:
        if lacking := sorted(kafka - logs.start_texts.keys()):
            raise CheckpointError(
                f"{logs.root}: no batch was committed, and sources/ does not say where the Kafka "
                f"source {', '.join(lacking)} began; start the job with startingOffsets and a new "
                f"checkpoint"
            )
        starts = [
            KeptFile(
                name=f"sources/{name}/0",
                text=text,
                use=Use.START,
                sources={name: logs.starts[name]},
            )
            for name, text in logs.start_texts.items()
            if name in kafka
        ]
        return (*starts, _batch(logs, logs.newest, Use.END))
    if logs.pending is not None:
        if logs.previous != logs.base:
            raise CheckpointError(
                f"{logs.root}: commits/ ends at batch {logs.committed}, and batch {logs.pending} "
                f"is pending: Spark would run that one alone and pass over those between; start "
                f"the job with startingOffsets and a new checkpoint"
            )
        return (_batch(logs, logs.base, Use.START), _batch(logs, logs.pending, Use.END))
    last = _batch(logs, logs.base, Use.START)
    return (last,) if logs.previous is None else (_batch(logs, logs.previous, Use.HISTORY), last)


def kafka_sources(logs: CheckpointLogs) -> frozenset[str]:
    """Return the names of the sources that are, or once were, Kafka's.

    Raises:
        CheckpointError: There is none.
    """
    newest = logs.path(logs.newest)
    found = frozenset(
        name
        for name, text in (*logs.starts.items(), *logs.sources(logs.newest).items())
        if offset_log.kafka_positions([text], newest)
    )
    if not found:
        raise CheckpointError(f"{newest}: no source is Kafka, so there's nothing to translate")
    return found


def _batch(logs: CheckpointLogs, batch: int, use: Use) -> KeptFile:
    name = f"offsets/{batch}"
    text = logs.texts.get(batch) or read_required(logs.root / "offsets" / str(batch))
    sources = offset_log.parse_batch(text, f"{logs.root}/{name}")
    return KeptFile(name=name, text=text, use=use, sources=sources)


def _rewrite_line(line: str, place: str, answer: Answer, named: bool) -> str:  # noqa: FBT001 - private
    if not named:
        return _rewrite(line, place, answer)
    name, colon, offset = line.partition(":")
    return f"{name}{colon}{_rewrite(offset, place, answer)}"


def _rewrite(text: str, place: str, answer: Answer) -> str:
    """Return one source's offset on the target; what is not Kafka's as it is."""
    positions = offset_log.kafka_positions([text], place)
    if not positions:
        return text
    moved: dict[str, dict[str, int]] = {}
    for topic, partitions in positions.items():
        for partition, position in partitions.items():
            name, target = answer(Asked(topic, partition, position))
            moved.setdefault(name, {})[str(partition)] = target
    return json.dumps(moved, separators=(",", ":"))
