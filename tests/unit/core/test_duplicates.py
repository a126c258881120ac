"""Where records may have been copied again without a sync that shows it."""

import pytest

from airflow_mm2_offsets.core.bracket import SyncPoint
from airflow_mm2_offsets.core.duplicates import (
    last_possible_duplicate,
    recopied_from,
    rewind_after,
)
from airflow_mm2_offsets.core.epochs import PartitionSyncs


@pytest.mark.parametrize(
    ("rewound_to", "last"),
    [
        (SyncPoint(50, 150), SyncPoint(100, 100)),  # 49 free offsets: record 0 alone, before 100
        (SyncPoint(50, 151), SyncPoint(50, 151)),  # 50: the records from 0 to 49
    ],
)
def test_duplicates_need_a_free_offset_each(rewound_to: SyncPoint, last: SyncPoint) -> None:
    """Before a rewind to 50 fit copies from position 0 on, if there are 50 free offsets."""
    syncs = PartitionSyncs([(0, 0), (100, 100), rewound_to])
    bracket = PartitionSyncs([(0, 0), (100, 100)]).segments.bracket(0)
    assert (
        last_possible_duplicate(syncs, bracket, within=1000, end=rewound_to.downstream + 1) == last
    )


@pytest.mark.parametrize(
    ("syncs", "begin"),
    [
        ([(0, 0), (100, 100), (150, 201)], 50),  # 50 records after 100, and 50 before
        # Each second offset holds a record: 25 after 100, 50 before, and the rest before 0.
        ([(100, 0), (200, 50), (250, 151)], 50),
        ([(100, 0), (150, 101)], 50),  # Nothing is known of holes.
    ],
)
def test_holes_leave_more_room_for_duplicates(syncs: list[tuple[int, int]], begin: int) -> None:
    """Where source offsets hold fewer records, the copies of more of them fit."""
    assert recopied_from(PartitionSyncs(syncs), 1) == begin


@pytest.mark.parametrize(
    ("hole", "begin"),
    [(5, -100), (30, -125), (65, -125), (None, -100)],
    ids=["far before", "before", "after", "no hole"],
)
def test_only_holes_nearby_count(hole: int | None, begin: int) -> None:
    """A step with half as many records lets more duplicates fit into a step close to it.

    Syncs lie 100 records apart. After the 45th, 51 source offsets further, the target has 150 free
    offsets. So at least 100 duplicates lie there, or 125 if half of the source's offsets are empty.
    """
    up = down = 0
    syncs = []
    for number in range(90):
        syncs.append((up, down))
        up += 50 if number == 44 else 100
        down += 151 if number == 44 else 50 if number == hole else 100
    assert recopied_from(PartitionSyncs(syncs), 1) - syncs[44][0] == begin


@pytest.mark.parametrize(
    ("position", "end", "rewind"),
    [
        (52, 150, SyncPoint(100, 149)),  # 49 free offsets: the records from 52 to 100
        (51, 150, None),
        (100, 150, SyncPoint(100, 149)),
        (101, 150, None),  # No copy of it is known.
        (100, 102, SyncPoint(100, 101)),
        (99, 102, None),
        (100, 101, None),  # The target ends with the last sync.
        (100, 0, None),
    ],
)
def test_the_target_s_tail_may_hold_duplicates(
    position: int, end: int, rewind: SyncPoint | None
) -> None:
    """As many as offsets lie after the last sync; the last of them bounds the answer."""
    assert rewind_after(PartitionSyncs([(0, 0), (100, 100)]), position, end) == rewind


@pytest.mark.parametrize(
    ("position", "rewind"),
    [(29, None), (30, SyncPoint(50, 121)), (49, SyncPoint(50, 121)), (50, None)],
)
def test_a_rewind_may_have_begun_before_its_sync(position: int, rewind: SyncPoint | None) -> None:
    """Twenty free offsets before the rewind to 50 hold copies of 30 to 49, where no tail counts."""
    syncs = PartitionSyncs([(0, 0), (100, 100), (50, 121)])
    assert rewind_after(syncs, position, 0) == rewind
