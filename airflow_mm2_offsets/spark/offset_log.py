"""The files of a Spark checkpoint that hold positions: ``offsets/N`` and ``sources/N/0``.

Formats: ``OffsetSeqLog`` (v1: one line per source in plan order; v2, from Spark 4.2: lines
``name:offset`` in any order) and ``KafkaSourceInitialOffsetWriter`` (a NUL first).
"""

import json
from collections.abc import Iterable

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.errors import CheckpointError, PositionError
from airflow_mm2_offsets.spark.offsets import parse_offsets


def parse_batch(text: str, place: str) -> dict[str, str]:
    """Return each source's offset, as text, by the source's name.

    Args:
        text: The content of ``offsets/N``.
        place: The file, for messages.

    Raises:
        CheckpointError: The file is half-written, or of a version that is not known.
    """
    version, _, rest = text.partition("\n")
    metadata, _, lines = rest.partition("\n")
    if version not in ("v1", "v2"):
        raise CheckpointError(f"{place}: neither v1 nor v2 of Spark's offset log: {version!r}")
    if metadata:  # continuous processing leaves it empty
        parse_object(metadata, place)
    if version == "v1":
        sources = {str(index): line for index, line in enumerate(lines.split("\n"))}
    else:
        sources = dict(_split_named(line, place) for line in lines.split("\n"))
    if "" in sources.values():
        raise CheckpointError(f"{place}: half-written, a source's offset is missing")
    return sources


def parse_start(text: str) -> str:
    """Return the offset in ``sources/N/0`` as text, or what else a source not Kafka's put there."""
    return text.lstrip("\0").partition("\n")[2]


def parse_object(text: str, place: str) -> dict[str, object]:
    """Return a JSON object.

    Raises:
        CheckpointError: The text is none; the file, ``place``, is half-written.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise CheckpointError(
            f"{place}: half-written or damaged: {error}, in {text[:60]!r}"
        ) from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{place}: expected a JSON object, found {text[:80]!r}")
    return value


def kafka_positions(offsets: Iterable[str], place: str) -> Positions:
    """Return the positions of the Kafka sources among ``offsets``; empty when there are none.

    Raises:
        CheckpointError: One is cut off, or two sources read a partition at different offsets.
    """
    merged: Positions = {}
    for offset in offsets:
        for topic, partitions in _kafka_offset(offset, place).items():
            for partition, position in partitions.items():
                known = merged.setdefault(topic, {}).setdefault(partition, position)
                if known != position:
                    raise CheckpointError(
                        f"{place}: two sources read {topic}[{partition}], at {known} and at "
                        f"{position}; one map of positions can't hold both: migrate the "
                        f"checkpoint, which keeps each one's own"
                    )
    return merged


def _split_named(line: str, place: str) -> tuple[str, str]:
    name, colon, offset = line.partition(":")
    if not colon:
        raise CheckpointError(f"{place}: half-written, expected name:offset, found {line[:80]!r}")
    return name, offset


def _kafka_offset(text: str, place: str) -> Positions:
    if not text.startswith("{"):  # "-" is no offset yet; a rate source's is a number
        return {}
    if not _is_kafka(parse_object(text, place)):
        return {}
    try:
        return parse_offsets(text)
    except PositionError as error:
        raise CheckpointError(f"{place}: {error}") from error


def _is_kafka(offset: dict[str, object]) -> bool:
    """Whether it has the shape of a Kafka source's: topic to partition number to anything."""
    return all(
        isinstance(partitions, dict) and all(name.isdecimal() for name in partitions)
        for partitions in offset.values()
    ) and bool(offset)
