"""translate_many gives each position the answer of SyncIndex.translate."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_mm2_offsets.bulk import NONE, STATUSES, translate_many
from airflow_mm2_offsets.core import Extras, Status, Strategy, SyncIndex, TopicPartition
from airflow_mm2_offsets.core.epochs import Beginning, History, PartitionSyncs
from airflow_mm2_offsets.core.rows import parts_of
from airflow_mm2_offsets.errors import PositionError
from tests.support.golden import NAMES, NO_EXTRAS, golden_set
from tests.support.worlds import (
    JUMPED,
    JUMPED_TRUTHS,
    REFILLED,
    REFILLED_TRUTHS,
    REWOUND,
    truths_of,
    worlds_copying_again,
)

TOPIC = "orders"
PARTITION = TopicPartition(TOPIC, 0)
STEPS = st.tuples(st.integers(-12, 6), st.integers(-3, 7))


def check(index: SyncIndex, positions: list[int], topic: str = TOPIC, partition: int = 0) -> None:
    for strategy, extras in product(Strategy, Extras):
        many = translate_many(index, topic, partition, positions, strategy=strategy, extras=extras)
        columns = (many.target, many.low, many.high, many.status)
        for position, *answer in zip(positions, *(each.tolist() for each in columns), strict=True):
            one = index.translate(topic, partition, position, strategy=strategy, extras=extras)
            numbers = [NONE if each is None else each for each in (one.target, one.low, one.high)]
            assert answer == [*numbers, STATUSES.index(one.status)], one


@settings(deadline=None)
@given(st.lists(STEPS, max_size=25), st.lists(st.integers(0, 60), max_size=40))
def test_any_syncs_answer_as_translate_does(
    steps: list[tuple[int, int]], positions: list[int]
) -> None:
    """With rewinds, hidden or not, recreated topics and disorder; positions in any order."""
    pairs = [(20, 10)]
    for up, down in steps:
        upstream, downstream = pairs[-1]
        pairs.append((max(0, upstream + up), max(0, downstream + down)))
    whole = SyncIndex().extended({PARTITION: pairs})
    cut = PartitionSyncs(pairs, beginning=Beginning(history=History.LATE))
    for index in (whole, SyncIndex.of_partitions({PARTITION: cut})):
        check(index, positions)
        check(index, sorted(positions))


@pytest.mark.parametrize("first", [(0, 0), (20, 10)], ids=["beginning", "middle"])
def test_a_log_that_rises_is_left_to_numpy(first: tuple[int, int]) -> None:
    """Also where unseen copies may lie before it: core writes out no row for each sync."""
    pairs = [(first[0] + 7 * number, first[1] + 5 * number) for number in range(1000)]
    index = SyncIndex().extended({PARTITION: pairs})
    parts = list(parts_of(index.partitions[PARTITION]))
    assert len(parts) <= 3
    check(index, [*range(40), 6000, 6999, 7100])


def test_copying_again_answers_as_translate_does() -> None:
    """Where records exist only in older epochs and behind hidden rewinds, those count as well."""
    for number, world in enumerate(worlds_copying_again()):
        index = SyncIndex().extended({PARTITION: world.syncs.syncs})
        truths = truths_of(world)
        positions = list(range(len(truths)))
        if number % 5 == 0:
            check(index, positions)
        assert (translate_many(index, TOPIC, 0, positions).target <= truths).all(), world


def test_what_a_second_copy_jumped_over_is_not_lost() -> None:
    """Records that only older copies exist of bound the answer."""
    index = SyncIndex().extended({PARTITION: JUMPED})
    positions = range(len(JUMPED_TRUTHS))
    assert (translate_many(index, TOPIC, 0, positions).target <= JUMPED_TRUTHS).all()


@pytest.mark.parametrize("name", REWOUND)
def test_a_rewind_leaves_the_truth_between_the_bounds(name: str) -> None:
    """Neither bound of any position passes it."""
    pairs, truths = REWOUND[name]
    index = SyncIndex().extended({TopicPartition(TOPIC, 0): pairs})
    many = translate_many(index, TOPIC, 0, range(len(truths)))
    assert (many.low <= truths).all()
    assert ((truths <= many.high) | (many.high == NONE)).all()


@pytest.mark.parametrize("extras", Extras)
def test_copies_before_the_first_sync_are_not_lost(extras: Extras) -> None:
    """Records that were not copied again lie below the first known sync, whatever extras says."""
    index = SyncIndex().extended({PARTITION: REFILLED})
    many = translate_many(index, TOPIC, 0, range(len(REFILLED_TRUTHS)), extras=extras)
    assert (many.target <= REFILLED_TRUTHS).all()


@pytest.mark.parametrize("name", NAMES)
def test_recorded_runs_hold_the_truth(name: str) -> None:
    """The truth is neither below the lower bounds nor above the upper ones."""
    golden = golden_set(name)
    for extras in Extras if name in NO_EXTRAS else (Extras.POSSIBLE,):
        for number, partition in golden.partitions.items():
            positions = range(partition.source.low, partition.source.high + 1, 7)
            many = translate_many(golden.index, golden.topic, number, positions, extras=extras)
            truths = np.array([partition.truth(each) for each in positions])
            assert (many.low <= truths).all()
            assert ((truths <= many.high) | (many.high == NONE)).all()


@pytest.mark.parametrize("name", NAMES)
def test_recorded_runs_answer_as_translate_does(name: str) -> None:
    """On real MirrorMaker 2's syncs, and with positions beyond both ends."""
    golden = golden_set(name)
    for number, partition in golden.partitions.items():
        positions = [*range(0, partition.source.high, 251), 2**62]
        check(golden.index, positions, golden.topic, number)


def test_large_offsets_stay_exact() -> None:
    """Neither a difference nor a sum leaves 64 bits, up to the highest offset."""
    top = 2**63 - 1
    for pairs in ([(0, 0), (top, top)], [(5, top - 9), (top, top)], [(top - 9, 5), (top, 11)]):
        many = [0, 4, 5, 6, top - 10, top - 9, top - 8, top - 1, top]
        index = SyncIndex().extended({PARTITION: pairs})
        for extras in Extras:
            answers = translate_many(index, TOPIC, 0, many, extras=extras)
            alone = [index.translate(TOPIC, 0, each, extras=extras) for each in many]
            assert answers.target.tolist() == [each.target for each in alone]
            assert answers.high.tolist() == [each.high for each in alone]


def test_an_unknown_partition_is_refused() -> None:
    """Each of its positions is."""
    answers = translate_many(SyncIndex(), TOPIC, 0, [1, 2, 3])
    assert {STATUSES[each] for each in answers.status} == {Status.REFUSED}
    assert answers.target.tolist() == [NONE] * 3


def test_no_positions_have_no_answers() -> None:
    """An empty array gives empty arrays."""
    assert not len(translate_many(SyncIndex(), TOPIC, 0, []).target)


@pytest.mark.parametrize(
    "positions", [[3, -1], [1.5], ["7"], [2**63], np.array([2**63], np.uint64), [True]]
)
def test_an_invalid_position_raises(positions: list[object]) -> None:
    """A negative, fractional or too large one among many is an error, not a wrong answer."""
    with pytest.raises(PositionError, match=r"orders\[0\]: .* is not a position"):
        translate_many(SyncIndex(), TOPIC, 0, positions)  # type: ignore[arg-type]


def test_the_positions_are_not_written_to() -> None:
    """A read-only array of positions is accepted."""
    index = SyncIndex().extended({TopicPartition(TOPIC, 0): [(10, 0), (20, 10), (15, 30)]})
    positions = np.arange(25)
    positions.flags.writeable = False
    translate_many(index, TOPIC, 0, positions, extras=Extras.NONE)
