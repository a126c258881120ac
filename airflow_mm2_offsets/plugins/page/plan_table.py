"""A plan as a table: filtered, sorted and cut into pages, so that 10,000 rows can be read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

PAGE_ROWS = 200

Row: TypeAlias = Mapping[str, Any]
"""One of a plan's ``partitions``; see ``core.partition_plan.partition_to_json``."""


class Sort(StrEnum):
    """How rows are sorted."""

    WORST = "worst"
    """Refused first, then fallbacks, then by the records read again, the most first."""
    PARTITION = "partition"
    REREAD = "read again"
    SHIFT = "shift"


class Shown(StrEnum):
    """Which rows are shown."""

    ALL = "all"
    EXACT = "exact"
    BOUNDED = "bounded"
    REFUSED = "refused"
    """Without an answer and without a fallback."""
    FALLBACK = "fallback"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """What a user asks of the table."""

    text: str = ""
    """Rows whose topic-partition, basis or reason holds it, whatever its case."""
    shown: Shown = Shown.ALL
    sort: Sort = Sort.WORST
    page: int = 1

    def at(self, page: int) -> "TableQuery":
        """Return the same query for another page."""
        return replace(self, page=page)

    def to_query(self) -> dict[str, str]:
        """Return the parameters of a URL."""
        return {"text": self.text, "shown": self.shown, "sort": self.sort, "page": str(self.page)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePage:
    """The rows of one page."""

    rows: Sequence[Row]
    query: TableQuery
    """With a page that exists."""
    found: int
    """The rows of all pages."""
    pages: int

    @property
    def first(self) -> int:
        """The number of the first row among those found, from 1."""
        return (self.query.page - 1) * PAGE_ROWS + 1


def kind_of(row: Row) -> str:
    """Return the status of a row, or ``fallback`` where a user's choice stands in for it."""
    return Shown.FALLBACK.value if row.get("fallback") else str(row["status"])


def table_page(rows: Sequence[Row], query: TableQuery) -> TablePage:
    """Return one page of the rows that a query finds."""
    text = query.text.strip().casefold()
    found = [
        row
        for row in rows
        if query.shown in {Shown.ALL, kind_of(row)} and (not text or text in _searched(row))
    ]
    found.sort(key=_KEYS[query.sort])
    pages = max(1, -(-len(found) // PAGE_ROWS))
    page = min(max(1, query.page), pages)
    begin = (page - 1) * PAGE_ROWS
    return TablePage(
        rows=found[begin : begin + PAGE_ROWS], query=query.at(page), found=len(found), pages=pages
    )


def name_of(row: Row) -> str:
    """Return the topic-partition on the source."""
    return f"{row['topic']}[{row['partition']}]"


def _searched(row: Row) -> str:
    words = (name_of(row), row["target_topic"], row["basis"], row["reason"])
    return "\n".join(map(str, words)).casefold()


def _by_partition(row: Row) -> tuple[str, int]:
    return str(row["topic"]), int(row["partition"])


def _by_reread(row: Row) -> tuple[int, float, tuple[str, int]]:
    """Sort rows of which nobody knows how much is read again before all others."""
    again = row.get("max_reread")
    return (0, 0.0, _by_partition(row)) if again is None else (1, -again, _by_partition(row))


def _by_shift(row: Row) -> tuple[float, tuple[str, int]]:
    return -abs(row.get("shift") or 0), _by_partition(row)


def _worst(row: Row) -> tuple[int, tuple[int, float, tuple[str, int]]]:
    kinds = (Shown.REFUSED, Shown.FALLBACK)
    kind = kind_of(row)
    return (kinds.index(Shown(kind)) if kind in kinds else len(kinds)), _by_reread(row)


_KEYS: Mapping[Sort, Callable[[Row], Any]] = {
    Sort.WORST: _worst,
    Sort.PARTITION: _by_partition,
    Sort.REREAD: _by_reread,
    Sort.SHIFT: _by_shift,
}
