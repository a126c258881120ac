"""Positions as jobs write them into the metadata of tables; the readers parse them here."""

import re

from airflow_mm2_offsets.core.positions import Positions, check_positions
from airflow_mm2_offsets.errors import PositionError, StoredPositionsError, as_class
from airflow_mm2_offsets.spark.offsets import parse_offsets

_HUDI = re.compile(r"(?P<topic>[\w.-]+)(?P<partitions>(,\d+:-?\d+)+)", re.ASCII)
"""As ``KafkaOffsetGen.CheckpointUtils.strToOffsets`` of Hudi reads it."""
_SHOWN = 60
"""Characters of a wrong text that a message shows."""


def is_hudi_form(text: str) -> bool:
    """Tell whether a text is offsets of one topic in Hudi's form."""
    return _HUDI.fullmatch(text) is not None


def parse_stored(text: str, origin: str) -> Positions:
    """Read ``orders,0:42,1:7`` (Hudi's form, one topic) or Spark's ``{"orders":{"0":42,"1":7}}``.

    Args:
        text: What the metadata has.
        origin: Where it has it, for messages.

    Raises:
        StoredPositionsError: It is neither, names a partition twice, or has a negative offset.
    """
    try:
        if text.lstrip().startswith("{"):
            return parse_offsets(text)
        return _parse_hudi(text)
    except PositionError as error:
        raise as_class(StoredPositionsError, error, f"{origin}: {error}") from error


def _parse_hudi(text: str) -> Positions:
    match = _HUDI.fullmatch(text)
    if match is None:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        raise PositionError(
            f"{shown!r} is not offsets, as in 'orders,0:42,1:7' or in Spark's "
            f'{{"orders":{{"0":42,"1":7}}}}; name where the job keeps its Kafka offsets'
        )
    pairs = [each.split(":") for each in match["partitions"][1:].split(",")]
    if len({int(partition) for partition, _ in pairs}) < len(pairs):
        raise PositionError(f"{text[:_SHOWN]!r} names a partition twice", topic=match["topic"])
    # A negative number is an int here, so that the check names it and its partition.
    return check_positions({match["topic"]: {each: int(offset) for each, offset in pairs}})
