"""Looks up the records of a window by their content, for ``content`` and ``last_copy``."""

from collections.abc import Sequence

from airflow_mm2_offsets.core.evidence import Content, WindowRecord


def first_offsets(records: Sequence[WindowRecord]) -> dict[Content, int]:
    """Return the first offset of each content."""
    return {content: offset for offset, content in reversed(records)}


def last_offsets(records: Sequence[WindowRecord]) -> dict[Content, int]:
    """Return the last offset of each content."""
    return {content: offset for offset, content in records}


def between(first: int, last: int, records: Sequence[WindowRecord]) -> list[WindowRecord]:
    """Return the records from one offset to another, both included."""
    return [record for record in records if first <= record[0] <= last]
