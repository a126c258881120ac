"""The tables that positions are looked up in: a row with one array for each topic and partition.

A lookup is worth what it touches of the memory, so all that it needs lies in one ``array<bigint>``
of 8 to 10 bytes for a sync, as a rule:

- the header: see ``HEADER``;
- for each bin, ``2**shift`` positions wide, where its first entry lies in the array; and one more;
- the entries: where a row of core's begins, from ``base`` on, shifted by 32 bits, and a number;
- the records: ``low`` and ``high`` (-1 for None), and with ``STRAIGHT`` the knees of both.

Most rows lie between two syncs and are as their neighbours tell: they begin with a sync, whose
target offset, from ``base_d`` on, is the entry's number; the bounds of the others follow from it
and from the next entry. The tables are made of core's rows, and no row is taken for such a one
before each of its numbers was compared. The number of any other entry has the bit ``RECORDED``,
the basis in the next three, and where its record lies. A row that is another one at its begin has
an entry for that; where the row before needs a neighbour, an entry for it comes first.
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
RISING, STRAIGHT = 0, 1
"""What a table is: of any log, or of one where extras are ruled out."""
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
        most: So many rows fit into a table.

    Returns:
        ``begin`` and ``end``, the first and the last position; ``kind``; ``crowd``, into how many
        entries of one bin a position can fall; ``lookup``, the array.
    """
    kind = STRAIGHT if extras == "none" else RISING
    piece: list[Any] = []
    base = 0
    for row in rows:
        if len(piece) == most or (piece and row.begin - base >= RECORDED - 1):
            yield _table(piece, kind, base)
            piece = []
        if not piece:
            # All other rows may lie far behind the begin of the first, which needs none itself.
            base = row.end if row.at_low is None else row.begin
        piece.append(row)
    if piece:
        yield _table(piece, kind, base)


def _table(piece: list[Any], kind: int, base: int) -> tuple[Any, ...]:
    base_d = next((row.at_low for row in piece if row.basis == BASES[BETWEEN] and row.at_low), 0)
    entries, records = _packed(piece, kind, base, base_d)
    tail = base + (entries[-1] >> 32)
    shift = ((_BIN_ENTRIES * (tail - base + 1) - 1) // len(entries)).bit_length()
    bins = ((tail - base) >> shift) + 1
    first = len(HEADER) + bins + 1
    starts = [
        first - 1 + bisect_right(entries, number << shift + 32 | LOW_BITS)
        for number in range(bins + 1)
    ]
    header = (base, tail, shift, base_d, first + len(entries))
    crowd = max(end - start for start, end in zip(starts, starts[1:]))  # noqa: B905, RUF007 - Python 3.9
    # As a list: Spark reads no array of 64-bit numbers.
    return piece[0].begin, piece[-1].end, kind, crowd, [*header, *starts, *entries, *records]


def _packed(piece: list[Any], kind: int, base: int, base_d: int) -> tuple[array[int], array[int]]:
    """Return the entries and the records."""
    entries, records = array("q"), array("q")
    numbers = [_number(row, kind, base_d) for row in piece]
    numbers[-1] = None
    neighbour = None
    for row, number, after in zip(piece, numbers, [*numbers[1:], None]):  # noqa: B905 - Python 3.9
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
            records.extend(record[: 4 if kind == STRAIGHT else 2])
    return entries, records


def _records(row: Any) -> Iterator[tuple[int, int, tuple[int, ...]]]:  # noqa: ANN401 - see below
    """Yield what is recorded of a row: how far past its begin, the basis and the numbers."""
    begin, end, at_low, at_high, low, low_knee, high, high_knee, basis = row
    code, past = BASES.index(basis), 0
    if at_low is not None:
        here = AGAIN if code == AGAIN else SYNC
        yield 0, here, (_known(at_low), _known(at_high), _MAX_OFFSET, 0)
        past = 1
    if begin + past <= end:
        yield past, code, (_known(low), _known(high), low_knee, high_knee)


def _known(offset: int | None) -> int:
    return -1 if offset is None else min(offset, _MAX_OFFSET)


def _number(row: Any, kind: int, base_d: int) -> int | None:  # noqa: ANN401 - core may be absent
    """Return the number of an entry that tells all of a row, with the next one's; else None."""
    begin, end, at_low, at_high, low, low_knee, high, high_knee, basis = row
    if at_low is None or high is None or basis != BASES[BETWEEN]:
        return None
    knees: tuple[int, int] = (_MAX_OFFSET, 0)
    if kind == STRAIGHT:
        knees = end + 1 - high + low, high - at_low + begin
    follows = at_high == at_low and low == at_low + 1 and (low_knee, high_knee) == knees
    fits = base_d <= at_low and high - base_d < RECORDED
    return at_low - base_d if follows and fits and at_low <= high else None
