"""The tables in which ``lookup`` finds positions: one row with one array for a topic-partition.

``logs`` has them made on the executors.

The cost of a lookup is the memory that it touches. So all numbers of a topic-partition lie in one
``array<bigint>``, usually with 8 to 10 bytes for a sync:

- the header: see ``HEADER``;
- for each bin, ``2**shift`` positions wide, where its first entry lies in the array; and one more;
- the entries: where a row of core begins, counted from ``base`` and shifted by 32 bits, plus a
  number;
- the records: ``low`` and ``high`` (-1 for None), and with ``EXTRAS_NONE`` the breakpoints of both.

Most rows begin with a sync and follow from it and the next sync. The number of their entry is the
sync's target offset, counted from ``base_d``; the bounds of the other positions are computed from
this entry and the next one. A row gets this form only if each of its numbers equals the computed
one. The number of every other entry has the bit ``RECORDED``, the basis in the next three bits,
and the index of its record. If a row has another answer at its begin, that answer has an entry;
if the row before needs the next sync, an entry with that sync comes first.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HEADER: Final = ("base", "tail", "shift", "base_d", "records_at")
"""The position that entries count from; the last one that an entry begins at; the width of a bin;
the target offset that entries count from; where the records lie."""
BASES: Final = (
    *("sync", "between-syncs", "before-first-sync", "after-last-sync", "copying-again"),
    "history-cut",
)
"""An entry with a record holds the basis as its index here."""
SYNC, BETWEEN, AGAIN = (BASES.index(name) for name in ("sync", "between-syncs", "copying-again"))
EXTRAS_POSSIBLE, EXTRAS_NONE = 0, 1
"""The kinds of tables: for any log, or for a log without extras."""
RECORDED: Final = 2**31
"""An entry begins less than so many positions from the base, and its number is less."""
BASIS_AT: Final = 28
"""The bit of an entry's number where the basis begins."""
LOW_BITS: Final = 2**32 - 1

_MAX_OFFSET: Final = 2**63 - 1
_BIN_ENTRIES: Final = 16
"""About: fewer would make the bins a larger part of the memory, and be no faster."""


def tables_of(rows: Iterable[Any], *, extras: str, most: int) -> Iterator[tuple[Any, ...]]:
    """Yield the tables of a partition: more than one where offsets lie far apart, or are many.

    Args:
        rows: Those of ``rows_of`` of core, made with the same ``extras``.
        extras: See ``segments``.
        most: The most rows in one table.

    Returns:
        ``begin`` and ``end``, the first and the last position; ``kind``;
        ``search_depth``, how many halvings find an entry in the fullest bin; ``lookup``, the array.
    """
    kind = EXTRAS_NONE if extras == "none" else EXTRAS_POSSIBLE
    part: list[Any] = []
    base = 0
    for row in rows:
        if len(part) == most or (part and row.begin - base >= RECORDED - 1):
            yield _table(part, kind, base)
            part = []
        if not part:
            # The first row needs no begin; the others may begin far behind it.
            base = row.end if row.at_low is None else row.begin
        part.append(row)
    if part:
        yield _table(part, kind, base)


def _table(part: list[Any], kind: int, base: int) -> tuple[Any, ...]:
    base_d = next((row.at_low for row in part if row.basis == BASES[BETWEEN] and row.at_low), 0)
    entries, records = _packed(part, kind, base, base_d)
    tail = base + (entries[-1] >> 32)
    shift = ((_BIN_ENTRIES * (tail - base + 1) - 1) // len(entries)).bit_length()
    bins = ((tail - base) >> shift) + 1
    first = len(HEADER) + bins + 1
    starts = [
        first - 1 + bisect_right(entries, number << shift + 32 | LOW_BITS)
        for number in range(bins + 1)
    ]
    header = (base, tail, shift, base_d, first + len(entries))
    edges = zip(starts, starts[1:])
    fullest = max(end - start for start, end in edges)
    # As a list: Spark reads no array of 64-bit numbers.
    return (
        part[0].begin,
        part[-1].end,
        kind,
        fullest.bit_length(),
        [*header, *starts, *entries, *records],
    )


def _packed(part: list[Any], kind: int, base: int, base_d: int) -> tuple[array[int], array[int]]:
    """Return the entries and the records."""
    entries, records = array("q"), array("q")
    numbers = [_implied_number(row, kind, base_d) for row in part]
    numbers[-1] = None
    neighbour = None
    for row, number, after in zip(part, numbers, [*numbers[1:], None]):
        begin = max(0, row.begin - base) << 32
        if number is not None and after in (None, row.high - base_d):
            entries.append(begin | number)
            neighbour = row.high - base_d
            continue
        if neighbour is not None:
            entries.append(begin | neighbour)
            neighbour = None
        for past, basis, record in _records(row):
            entries.append(begin + (past << 32) | RECORDED | basis << BASIS_AT | len(records))
            records.extend(record[: 4 if kind == EXTRAS_NONE else 2])
    return entries, records


def _records(row: Any) -> Iterator[tuple[int, int, tuple[int, ...]]]:  # noqa: ANN401 - see below
    """Yield a row's records: how far past its begin, the basis and the numbers."""
    begin, end, at_low, at_high, low, low_rises_from, high, high_rises_until, basis = row
    code, past = BASES.index(basis), 0
    if at_low is not None:
        at_code = AGAIN if code == AGAIN else SYNC
        yield 0, at_code, (_number_of(at_low), _number_of(at_high), _MAX_OFFSET, 0)
        past = 1
    if begin + past <= end:
        yield past, code, (_number_of(low), _number_of(high), low_rises_from, high_rises_until)


def _number_of(offset: int | None) -> int:
    return -1 if offset is None else min(offset, _MAX_OFFSET)


def _implied_number(row: Any, kind: int, base_d: int) -> int | None:  # noqa: ANN401 - core may be absent
    """Return the number of a row that follows from its sync and the next one; else None."""
    begin, end, at_low, at_high, low, low_rises_from, high, high_rises_until, basis = row
    if at_low is None or high is None or basis != BASES[BETWEEN]:
        return None
    breakpoints: tuple[int, int] = (_MAX_OFFSET, 0)
    if kind == EXTRAS_NONE:
        breakpoints = end + 1 - high + low, high - at_low + begin
    follows = (
        at_high == at_low
        and low == at_low + 1
        and (low_rises_from, high_rises_until) == breakpoints
    )
    fits = base_d <= at_low and high - base_d < RECORDED
    return at_low - base_d if follows and fits and at_low <= high else None
