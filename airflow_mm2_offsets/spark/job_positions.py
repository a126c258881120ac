"""Where a job stands, as a user or another task gives it; operators, sensors and moves call it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.core.times import parse_zoned
from airflow_mm2_offsets.errors import PositionError, as_class, did_you_mean
from airflow_mm2_offsets.spark.offsets import to_positions

_FIELDS: Final = ("positions", "pending", "read_until", "topics", "clusters", "as_of")
"""What a note of positions may have."""
_NULL: Final = (None, "", "None")
"""Jinja writes a value that is null as ``None``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPositions:
    """Where a job stands, and what was read with it."""

    positions: Positions
    pending: Positions | None = None
    """Where the batch ends that the job began and did not commit; None: there is none."""
    clusters: Mapping[str, Any] | None = None
    """``PairIds`` as plain JSON, of when the positions were read; None: they were not read."""
    as_of: str | None = None
    """When the job stood there, if it may have gone on since: ISO 8601 with its zone."""


def parse_job_positions(value: object) -> JobPositions:
    """Return positions that a user gives, or that another task has returned.

    A mapping is a note of positions, or what a task has returned, where its ``positions`` are text
    or map topics. Else it is of topics, and one of them may have that name: it maps partitions.

    Args:
        value: Topic to partition to next offset, as a mapping or as Spark's JSON text. Or what
            ``ReadSparkCheckpointOperator``, ``StopSparkStreamingOperator`` or ``note_positions``
            returned. Or your own mapping of ``positions``, and ``pending``, ``clusters`` or
            ``as_of``.

    Raises:
        PositionError: They are not positions, a field is unknown, or ``as_of`` is no time.
    """
    note = _note_in(value)
    if note is None:
        return JobPositions(positions=to_positions(value))
    if "origin" not in note:  # what a task returned has further fields
        _refuse_unknown(note)
    pending, clusters, as_of = map(note.get, ("pending", "clusters", "as_of"))
    if not isinstance(clusters, Mapping | None):
        raise PositionError(
            f"clusters is {type(clusters).__name__}; give the mapping that the task returned which "
            f"read the positions, or none"
        )
    if as_of not in _NULL and parse_zoned(str(as_of)) is None:
        raise PositionError(
            f"as_of is {as_of!r}; give a time with its zone, such as 2026-11-21T09:10:00Z"
        )
    return JobPositions(
        positions=to_positions(note["positions"]),
        pending=None if pending in _NULL else _parse_pending(pending),
        clusters=clusters,
        as_of=None if as_of in _NULL else str(as_of),
    )


def _note_in(value: object) -> Mapping[str, Any] | None:
    """Return a value that is a note of positions, also as JSON text; None if it is something else.

    Python's own reading of the text decides no more than that.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if not isinstance(value, Mapping) or "positions" not in value:
        return None
    inner = value["positions"]
    maps_topics = isinstance(inner, Mapping) and any(
        isinstance(each, Mapping) for each in inner.values()
    )
    return value if isinstance(inner, str) or maps_topics else None


def _refuse_unknown(note: Mapping[str, Any]) -> None:
    for name in note:
        if name not in _FIELDS:
            hint = did_you_mean(str(name), _FIELDS, otherwise=f"give some of {', '.join(_FIELDS)}")
            raise PositionError(f"{name!r} is no field beside positions; {hint}")


def _parse_pending(pending: object) -> Positions:
    try:
        return to_positions(pending)
    except PositionError as error:
        raise as_class(PositionError, error, f"pending: {error}") from error
