"""Spark's Kafka offset JSON: ``{"orders":{"0":42,"1":7}}``.

The text of the Kafka source's ``startingOffsets`` option and of its lines in a checkpoint, as
``org.apache.spark.sql.kafka010.JsonUtils`` writes and reads it.
"""

import json
import re

from airflow_mm2_offsets.core.positions import Positions, TopicPartition, check_positions
from airflow_mm2_offsets.errors import PositionError

_NUMBERS = re.compile(r"[\d\s.,:\[\]{}'eE+-]*|True|False|None")
_SHOWN = 500


def parse_offsets(text: str) -> Positions:
    """Read positions from Spark's offset JSON.

    Raises:
        PositionError: It is not such text, names something twice, or holds -1 (latest) or -2
            (earliest), which are not positions.
    """
    try:
        offsets = json.loads(text, object_pairs_hook=_object)
        _refuse_texts(offsets)
        positions = check_positions(offsets)
    except PositionError:
        raise
    except (ValueError, RecursionError) as error:
        # The text is not shown: a wrong file may hold secrets.
        place = (
            f" (line {error.lineno}, column {error.colno})"
            if isinstance(error, json.JSONDecodeError)
            else ""
        )
        raise PositionError(
            f'Spark\'s offsets must be JSON such as {{"orders":{{"0":42}}}}; the text of '
            f"{len(text)} characters is not{place}; give the offsets of a Spark checkpoint"
        ) from None
    _check_spelling(offsets)
    return positions


def to_positions(positions: object) -> Positions:
    """Return positions that come as Spark's offset JSON, or as any mapping.

    Raises:
        PositionError: They are neither.
    """
    return parse_offsets(positions) if isinstance(positions, str) else check_positions(positions)


def format_offsets(positions: Positions) -> str:
    """Write positions as Spark's offset JSON, topics by name and partitions by number.

    Raises:
        PositionError: They are not positions.
    """
    return json.dumps(check_positions(positions), separators=(",", ":"))


def shown_offsets(text: str) -> str:
    """Return offsets for a message: of those of thousands of partitions the beginning."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    offsets = dict(pairs)
    if len(offsets) != len(pairs):
        # Python would keep the last of two equal names in silence.
        raise PositionError(
            f"Spark's offsets name a topic or a partition twice, of {len(pairs)} in one map; name "
            f"each once"
        )
    return offsets


def _refuse_texts(offsets: object) -> None:
    """Refuse what is not made of numbers, unseen: another file's JSON may hold secrets."""
    problem = "must map topics to partitions to offsets, which are numbers; the JSON has a text"
    if not isinstance(offsets, dict):
        raise PositionError(f"Spark's offsets {problem} or a list instead")
    for topic, partitions in offsets.items():
        parts = [partitions]
        if isinstance(partitions, dict):
            parts = [*partitions, *partitions.values()]
        if not all(_NUMBERS.fullmatch(repr(part)) for part in parts):
            raise PositionError(f"Spark's offsets {problem} instead", topic=topic)


def _check_spelling(offsets: dict[str, dict[str, object]]) -> None:
    # XCom may carry offsets as text and "07" may be meant as 7; Spark writes neither.
    for topic, partitions in offsets.items():
        for partition, offset in partitions.items():
            if isinstance(offset, str) or partition != str(int(partition)):
                raise PositionError(
                    f"{TopicPartition(topic, int(partition))}: {offset!r} is not written as Spark "
                    f'writes it: the partition as "7", the offset as a bare number'
                )
