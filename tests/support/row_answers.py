"""What a row of ``core.rows`` answers, for tests of all faces that search rows."""

from airflow_mm2_offsets.core import Basis
from airflow_mm2_offsets.core.bracket_bounds import BracketBounds
from airflow_mm2_offsets.core.rows import Row


def answer_of(row: Row, position: int) -> tuple[int | None, int | None, Basis]:
    """Return lower bound, upper bound and basis of one of the row's positions."""
    if position == row.begin and row.at_low is not None:
        copying_again = row.basis is Basis.COPYING_AGAIN
        return row.at_low, row.at_high, row.basis if copying_again else Basis.SYNC
    if row.low is None:
        return None, None, row.basis
    return *BracketBounds(row.low, *row[5:]).at(position), row.basis
