"""The files of a Spark checkpoint that hold positions: ``offsets/N`` and ``sources/N/0``.

Formats: ``OffsetSeqLog`` (v1: one line per source in plan order; v2, from Spark 4.2: lines
``name:offset`` in any order) and ``KafkaSourceInitialOffsetWriter`` (a NUL first). Spark reads a
log with ``scala.io.Source.getLines``: a line ends with LF, CR or CRLF, the last one need not.
"""

import json
from collections.abc import Callable, Iterable
from io import StringIO

from airflow_mm2_offsets.core.positions import Positions, TopicPartition
from airflow_mm2_offsets.errors import CheckpointError, PositionError
from airflow_mm2_offsets.spark.offsets import parse_offsets


def read_lines(text: str) -> list[str]:
    """Return the lines of a log as Spark reads them."""
    return [line.removesuffix("\n") for line in StringIO(text, newline=None)]


def split_log(text: str) -> tuple[str, str, list[str]]:
    """Return a log's version, the line after it, and the other lines; what is missing is empty."""
    lines = read_lines(text)
    return "".join(lines[:1]), "".join(lines[1:2]), lines[2:]


def rewrite_lines(text: str, first: int, rewrite: Callable[[str], str]) -> str:
    """Return a log with its lines from number ``first`` on replaced; each ends as before."""
    lines = list(StringIO(text, newline=""))
    for number, line in enumerate(lines[first:], first):
        content = line.rstrip("\r\n")
        lines[number] = rewrite(content) + line[len(content) :]
    return "".join(lines)


def parse_batch(text: str, place: str) -> dict[str, str]:
    """Return each source's offset, as text, by the source's name.

    Raises:
        CheckpointError: The file is half-written, or of an unknown version.
    """
    version, metadata, lines = split_log(text)
    if version not in ("v1", "v2"):
        raise CheckpointError(f"neither v1 nor v2 of Spark's offset log: {version!r}", file=place)
    if metadata:  # continuous processing leaves it empty
        parse_object(metadata, place)
    if version == "v1":
        sources = {str(index): line for index, line in enumerate(lines)}
    else:
        sources = dict(_split_named(line, place) for line in lines)
    if not sources or "" in sources.values():
        raise CheckpointError("half-written, a source's offset is missing", file=place)
    return sources


def parse_start(text: str) -> str | None:
    """Return the offset in ``sources/N/0`` as text; None where no Kafka source wrote the file.

    Only Kafka's begins with a NUL. What others put there is theirs: a file source, for one, writes
    a line per file.
    """
    return text.partition("\n")[2] if text.startswith("\0") else None


def parse_object(text: str, place: str) -> dict[str, object]:
    """Return a JSON object.

    Raises:
        CheckpointError: The text is not a JSON object; ``place`` names the half-written file.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise CheckpointError(
            f"half-written or damaged: {error}, in {text[:60]!r}", file=place
        ) from error
    if not isinstance(value, dict):
        raise CheckpointError(f"expected a JSON object, found {text[:80]!r}", file=place)
    return value


def kafka_positions(offsets: Iterable[str], place: str) -> Positions:
    """Return the positions of the Kafka sources among ``offsets``, if any.

    Raises:
        CheckpointError: One is cut off, or two sources read a partition at different offsets.
    """
    merged: Positions = {}
    for offset in offsets:
        for topic, partitions in _kafka_offset(offset, place).items():
            for partition, position in partitions.items():
                other = merged.setdefault(topic, {}).setdefault(partition, position)
                if other != position:
                    raise CheckpointError(
                        f"two sources read {TopicPartition(topic, partition)}, at {other} and at "
                        f"{position}; one map of positions can't hold both: migrate the "
                        f"checkpoint, which keeps each one's own",
                        file=place,
                    )
    return merged


def _split_named(line: str, place: str) -> tuple[str, str]:
    name, colon, offset = line.partition(":")
    if not colon:
        raise CheckpointError(
            f"half-written, expected name:offset, found {line[:80]!r}", file=place
        )
    return name, offset


def _kafka_offset(text: str, place: str) -> Positions:
    if not text.startswith("{"):  # "-" is no offset yet; a rate source's is a number
        return {}
    if not _is_kafka(parse_object(text, place)):
        return {}
    try:
        return parse_offsets(text)
    except PositionError as error:
        raise CheckpointError(str(error), file=place) from error


def _is_kafka(offset: dict[str, object]) -> bool:
    """Whether it has the shape of a Kafka source's: topic to partition number to anything."""
    return all(
        isinstance(partitions, dict) and all(name.isdecimal() for name in partitions)
        for partitions in offset.values()
    ) and bool(offset)
