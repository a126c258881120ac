"""The rows of a partition give each position the answer of SyncIndex.translate."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_mm2_offsets.core import Basis, Extras, SyncIndex, TopicPartition
from airflow_mm2_offsets.core.epochs import Beginning, History, PartitionSyncs
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.core.rows import Row, rows_of
from tests.support.golden import NAMES, NO_EXTRAS, golden_set
from tests.support.row_answers import answer_of
from tests.support.worlds import JUMPED, JUMPED_TRUTHS, truths_of, worlds_copying_again

STEPS = st.tuples(st.integers(-12, 6), st.integers(-3, 9))


def check(syncs: PartitionSyncs, positions: Iterable[int]) -> None:
    index = SyncIndex.of_partitions({TopicPartition("orders", 0): syncs})
    listed = list(positions)
    for extras in Extras:
        rows = list(rows_of(syncs, extras=extras))
        assert (rows[0].begin, rows[-1].end) == (0, MAX_OFFSET)
        assert all(one.end + 1 == other.begin for one, other in pairwise(rows))
        for position in listed:
            one = index.translate("orders", 0, position, extras=extras)
            assert answer(rows, position) == (one.low, one.high, one.basis), one


def answer(rows: Sequence[Row], position: int) -> tuple[int | None, int | None, Basis]:
    row = rows[bisect_right(rows, position, key=attrgetter("begin")) - 1]
    return answer_of(row, position)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=25), st.sampled_from(History))
def test_any_syncs_answer_as_translate_does(steps: list[tuple[int, int]], history: History) -> None:
    """With rewinds, hidden rewinds, recreated topics and disorder, at each position."""
    pairs = [(20, 10)]
    for up, down in steps:
        upstream, downstream = pairs[-1]
        pairs.append((max(0, upstream + up), max(0, downstream + down)))
    syncs = PartitionSyncs(pairs, beginning=Beginning(history=history))
    check(syncs, (*range(100), MAX_OFFSET))


def test_copying_again_answers_as_translate_does() -> None:
    """Where records exist only in older epochs and behind hidden rewinds, those count as well."""
    worlds = [(world.syncs.syncs, truths_of(world)) for world in worlds_copying_again()]
    for number, (pairs, truths) in enumerate([(JUMPED, JUMPED_TRUTHS), *worlds]):
        syncs = PartitionSyncs(pairs)
        if number % 5 == 0:
            check(syncs, range(len(truths)))
        rows = list(rows_of(syncs))
        for position, truth in enumerate(truths):
            low, _, _ = answer(rows, position)
            assert low is not None
            assert low <= truth, pairs


def test_the_highest_offsets_answer_as_translate_does() -> None:
    """Up to the last position."""
    top = MAX_OFFSET
    ends = ([(0, 0), (top, top)], [(5, top - 9), (top, top)], [(top - 9, 5), (top, 11)], [(top, 0)])
    for pairs in ends:
        check(PartitionSyncs(pairs), (0, 4, 5, 6, *range(top - 10, top + 1)))


@pytest.mark.parametrize("name", NAMES)
def test_recorded_runs_hold_the_truth(name: str) -> None:
    """On real MirrorMaker 2's syncs: as translate answers, with the truth between the bounds."""
    golden = golden_set(name)
    for number, partition in golden.partitions.items():
        syncs = golden.index.partitions[TopicPartition(golden.topic, number)]
        check(syncs, range(0, partition.source.high + 2, 251))
        for extras in Extras if name in NO_EXTRAS else (Extras.POSSIBLE,):
            rows = list(rows_of(syncs, extras=extras))
            for position in range(partition.source.low, partition.source.high + 1, 7):
                low, high, _ = answer(rows, position)
                assert low is not None
                assert low <= partition.truth(position)
                assert high is None or partition.truth(position) <= high


def test_no_syncs_have_no_rows() -> None:
    """A partition without syncs has no answers."""
    assert not list(rows_of(PartitionSyncs()))
