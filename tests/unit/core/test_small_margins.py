"""One example for each condition of the rule that changes an answer by a single offset or record.

Simulated worlds seldom meet them: a change of such a condition would go unnoticed.
"""

from dataclasses import replace

import pytest

from airflow_mm2_offsets.core import (
    Basis,
    Evidence,
    Status,
    SyncIndex,
    TargetWindow,
    TopicPartition,
    Watermarks,
)
from airflow_mm2_offsets.core.bracket import SyncBracket, SyncPoint
from airflow_mm2_offsets.core.counting import count_records
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.evidence import RecordWindow, SourceWindow
from airflow_mm2_offsets.core.inverse import search_from
from airflow_mm2_offsets.core.inverse_content import ContentBounds, bound_by_content
from airflow_mm2_offsets.core.inverse_evidence import FirstMove, InverseEvidence

ORDERS = TopicPartition("orders", 0)


@pytest.mark.parametrize("high", [10, 9])
def test_a_target_that_lost_its_last_synced_record_is_refused(high: int) -> None:
    """The last sync names offset 9. A target that ends there has lost that record alone."""
    index = SyncIndex().extended({ORDERS: [(0, 0), (9, 9)]})
    evidence = Evidence(target=Watermarks(low=0, high=high))
    answer = index.translate(*ORDERS, 5, evidence=evidence)
    if high == 10:
        assert answer.target == 1
    else:
        assert (answer.status, answer.basis) == (Status.REFUSED, Basis.NOT_REPLICATED_YET)


def _counted(low: int, first: int) -> tuple[int, int] | None:
    """Count from 107 to the syncs 100 -> 50 and 110 -> 70, with records at even offsets."""
    bracket = SyncBracket(107, SyncPoint(100, 50), SyncPoint(110, 70))
    records = [(offset, offset) for offset in range(first, 71, 2)]
    evidence = Evidence(
        target=Watermarks(low=low, high=80),
        target_window=TargetWindow.of(first, 70, records),
        sole_writer=True,
    )
    return count_records(bracket, 51, evidence)


def test_counting_needs_nothing_that_the_target_has_deleted() -> None:
    """Records below the target's first offset 60 can't be read: counting back needs none of them.

    Counting on from the earlier sync does, so only the later one bounds from above.
    """
    assert _counted(low=0, first=50) == (64, 64)
    assert _counted(low=60, first=60) == (64, 70)


def test_counting_needs_all_that_the_target_has() -> None:
    """A window that begins after the target's first offset leaves records uncounted."""
    assert _counted(low=50, first=60) is None
    assert _counted(low=60, first=62) is None


def _walked(
    copies: str, *, committed: int | None = 4, home_high: int = 5, changed: bool = False
) -> ContentBounds:
    """Return the bounds of a job that has read three copies; A holds a, x, b, x and c."""
    evidence = InverseEvidence(
        home=Watermarks(low=0, high=home_high),
        away=Watermarks(low=0, high=len(copies)),
        first=FirstMove(position=0, start=0),
        originals=SourceWindow(first=0, last=4, records=tuple(enumerate("axbxc"))),
        copies=RecordWindow(first=0, last=len(copies) - 1, records=tuple(enumerate(copies))),
        committed=committed,
        changed_records=changed,
    )
    bounds = ContentBounds(low=1, high=5, basis=Basis.BETWEEN_SYNCS, read_from=0)
    return bound_by_content(bounds, 3, evidence)


def test_an_equal_record_that_was_read_ends_the_walk_home() -> None:
    """The x that the job has read may be a copy of either one: the first may be needed."""
    assert _walked("axbc").low == 1


def test_a_record_that_a_filter_dropped_does_not_end_the_walk_home() -> None:
    """No x was copied, and Connect has committed past both: only c is left to read."""
    assert _walked("aabc").low == 4


def test_records_that_a_transform_changes_are_not_compared() -> None:
    """A record that equals a changed one is no copy of it: the bounds stay those of the syncs."""
    answer = _walked("aabc", changed=True)
    assert (answer.low, answer.high, answer.basis) == (1, 5, Basis.BETWEEN_SYNCS)


@pytest.mark.parametrize("committed", [None, 0, 5])
def test_a_record_that_may_come_ends_the_walk_home(committed: int | None) -> None:
    """Connect has not committed past x, or its offset is of an earlier topic of that name."""
    assert _walked("aabc", committed=committed).low == 1


def test_the_walk_home_ends_at_the_next_sync() -> None:
    """The job has not read the record of that sync, whatever equals it."""
    evidence = InverseEvidence(
        home=Watermarks(low=0, high=3),
        away=Watermarks(low=0, high=3),
        first=FirstMove(position=0, start=0),
        originals=SourceWindow(first=0, last=2, records=tuple(enumerate("abc"))),
        copies=RecordWindow(first=0, last=2, records=tuple(enumerate("abc"))),
    )
    bounds = ContentBounds(low=0, high=3, basis=Basis.BETWEEN_SYNCS, read_from=0)
    assert bound_by_content(bounds, 3, evidence).low == 3
    assert bound_by_content(replace(bounds, next_sync=2), 3, evidence).low == 2


@pytest.mark.parametrize(
    ("syncs", "starts"),
    [(PartitionSyncs([(5, 5), (10, 10), (20, 20)]), (11, 11)), (None, (2, 1))],
)
def test_the_way_home_reads_from_the_sync_before(
    syncs: PartitionSyncs | None, starts: tuple[int, int]
) -> None:
    """On both clusters; without a sync from where the first plan has begun."""
    evidence = InverseEvidence(
        home=Watermarks(low=0, high=30),
        away=Watermarks(low=0, high=30),
        first=FirstMove(position=2, start=1),
    )
    assert search_from(syncs, 15, evidence) == starts
