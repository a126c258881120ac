"""A plan as a table: filtered, sorted and cut into pages, so that 10,000 rows can be read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from airflow_mm2_offsets.core.brief import concern_of, rows_of
from airflow_mm2_offsets.core.partition_plan import partition_from_json

PAGE_ROWS = 200

Row: TypeAlias = Mapping[str, Any]
"""One of a plan's ``partitions``; see ``core.partition_plan.partition_to_json``."""


class Sort(StrEnum):
    """How rows are sorted."""

    WORST = "worst"
    """As in the brief of a long plan (``core.brief``): refused, fallbacks, the most read again."""
    PARTITION = "partition"
    REREAD = "read again"
    SHIFT = "shift"
    """The greatest first, to either side."""


class Filter(StrEnum):
    """Which rows are shown."""

    ALL = "all"
    EXACT = "exact"
    BOUNDED = "bounded"
    NOT_SAFE = "not_safe"
    REFUSED = "refused"
    """Without an answer and without a fallback."""
    FALLBACK = "fallback"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """What a user asks of the table."""

    text: str = ""
    """Rows whose topic-partition, basis or reason holds it, whatever its case."""
    status: Filter = Filter.ALL
    sort: Sort = Sort.WORST
    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePage:
    """The rows of one page."""

    rows: Sequence[Row]
    number: int
    """The page's, from 1 on."""
    pages: int
    matches: int
    """The rows of all pages."""

    @property
    def first(self) -> int:
        """The number of the first row among all that match, from 1."""
        return (self.number - 1) * PAGE_ROWS + 1


def parse_rows(plan: Mapping[str, Any]) -> Sequence[Row] | None:
    """Return a plan's partitions; None where this is no plan, or one that this release can't read.

    Args:
        plan: An XCom, which somebody else may have written.
    """
    try:
        rows: Sequence[Row] = rows_of(plan)
        for row in rows:
            partition_from_json(row)
            concern_of(row)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return rows


def kind_of(row: Row) -> str:
    """Return the status of a row, or ``fallback`` where a user's choice stands in for it."""
    return Filter.FALLBACK.value if row.get("fallback") else str(row["status"])


def table_page(rows: Sequence[Row], query: TableQuery) -> TablePage:
    """Return one page of the rows that match a query; beyond the last page, the last."""
    text = query.text.strip().casefold()
    matches = [
        row
        for row in rows
        if query.status in {Filter.ALL, kind_of(row)} and (not text or text in _text_of(row))
    ]
    matches.sort(key=_KEYS[query.sort])
    pages = max(1, -(-len(matches) // PAGE_ROWS))
    number = min(max(1, query.page), pages)
    begin = (number - 1) * PAGE_ROWS
    return TablePage(
        rows=matches[begin : begin + PAGE_ROWS], number=number, pages=pages, matches=len(matches)
    )


def name_of(row: Row) -> str:
    """Return the topic-partition on the source."""
    return f"{row['topic']}[{row['partition']}]"


def _text_of(row: Row) -> str:
    words = (name_of(row), row["target_topic"], row["basis"], row["reason"])
    return "\n".join(map(str, words)).casefold()


def _by_partition(row: Row) -> tuple[str, int]:
    return str(row["topic"]), int(row["partition"])


def _worst(row: Row) -> tuple[tuple[int, ...], tuple[str, int]]:
    return tuple(-number for number in concern_of(row)), _by_partition(row)


def _by_reread(row: Row) -> tuple[bool, int, tuple[str, int]]:
    """Sort rows whose records read again are not known before all others."""
    again = row["max_reread"]
    return again is not None, -(again or 0), _by_partition(row)


def _by_shift(row: Row) -> tuple[int, tuple[str, int]]:
    return -abs(row["shift"] or 0), _by_partition(row)


_KEYS: Mapping[Sort, Callable[[Row], Any]] = {
    Sort.WORST: _worst,
    Sort.PARTITION: _by_partition,
    Sort.REREAD: _by_reread,
    Sort.SHIFT: _by_shift,
}
