"""Topic-partitions and positions; every room that takes positions from outside checks them here."""

import re
from collections.abc import Mapping
from operator import index
from typing import NamedTuple, SupportsIndex, TypeAlias

from airflow_mm2_offsets.errors import PositionError

Positions: TypeAlias = dict[str, dict[int, int]]
"""Topic, then partition, then the next offset to read."""

MAX_OFFSET = 2**63 - 1
"""The highest offset that Kafka's INT64 holds."""
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""As in org.apache.kafka.common.internals.Topic. librdkafka crashes on names that are not UTF-8."""
_SHOWN = 100


class TopicPartition(NamedTuple):
    """One partition of a topic; prints as ``orders[0]``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Return the form that messages and tables use."""
        return f"{self.topic}[{self.partition}]"


class PartitionPosition(NamedTuple):
    """A position and its topic-partition; consumer groups may have several of one."""

    topic_partition: TopicPartition
    position: int
    """The next offset to read."""


def by_topic_partition(positions: Positions) -> dict[TopicPartition, int]:
    """Return positions by topic-partition, in the same order."""
    return {
        TopicPartition(topic, partition): position
        for topic, partitions in positions.items()
        for partition, position in partitions.items()
    }


def check_position(topic: str, partition: int, position: object) -> int:
    """Return a position as a number; XCom and JSON carry large ones as their decimal digits.

    Raises:
        PositionError: It is not a whole number from 0 to 2**63 - 1.
    """
    number = _whole_number(position)
    if number is not None and 0 <= number <= MAX_OFFSET:
        return number
    raise PositionError(
        f"{position!r} is not a position; it must be the next offset to read, a whole number from "
        f"0 to {MAX_OFFSET} (-2 and -1 mean earliest and latest to Spark, which can't be "
        f"translated)",
        topic=topic,
        partition=partition,
    )


def check_positions(positions: object) -> Positions:
    """Return positions with partitions and offsets as numbers, sorted; they may come as text.

    Raises:
        PositionError: It is not a map of topics to maps of partitions to positions, one of the maps
            is empty, or a partition is there twice.
    """
    if not isinstance(positions, Mapping) or not positions:
        raise PositionError(
            f"positions must map topics to partitions to offsets, as in "
            f'{{"orders": {{"0": 42}}}}; got {positions!r}'
        )
    return {topic: _check_topic(topic, positions[topic]) for topic in sorted(positions, key=str)}


def _check_topic(topic: object, partitions: object) -> dict[int, int]:
    if not isinstance(topic, str) or not _TOPIC.fullmatch(topic):
        raise PositionError(
            f"a topic's name must be text of 1 to 249 letters, digits, dots, underscores and "
            f"hyphens; got {str(topic)[:_SHOWN]!r}"
        )
    if not isinstance(partitions, Mapping) or not partitions:
        raise PositionError(
            f'its positions must map partitions to offsets, as in {{"0": 42}}; got {partitions!r}',
            topic=topic,
        )
    checked = {}
    for key, position in partitions.items():
        partition = check_partition(topic, key)
        if partition in checked:
            raise PositionError(f"partition {partition} is given twice; give it once", topic=topic)
        checked[partition] = check_position(topic, partition, position)
    return dict(sorted(checked.items()))


def check_partition(topic: str, key: object) -> int:
    """Return the number of a partition, which may come as its decimal digits.

    Raises:
        PositionError: It is not a whole number from 0 to 2**31 - 1.
    """
    number = _whole_number(key)
    if number is not None and 0 <= number < 2**31:
        return number
    raise PositionError(f"{key!r} is not a partition; it must be a number from 0", topic=topic)


def _whole_number(value: object) -> int | None:
    """Return a whole number, whatever its class (NumPy's too), or of decimal digits."""
    if isinstance(value, str):
        return int(value) if _is_digits(value) else None
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return index(value)
    except TypeError:  # NumPy's truth values have an __index__ that refuses
        return None


def _is_digits(text: str) -> bool:
    # Python refuses to convert thousands of digits; no offset has more than int64's highest.
    return text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_OFFSET))
