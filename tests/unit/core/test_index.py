"""The index of syncs: how it grows, what it makes of disorder, and what it refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.core import (
    Basis,
    Evidence,
    Extras,
    OffsetSync,
    Status,
    Strategy,
    SyncIndex,
    TopicPartition,
    Translation,
    Watermarks,
)
from airflow_mm2_offsets.core.bracket import END
from airflow_mm2_offsets.core.epochs import Beginning, History, PartitionSyncs
from airflow_mm2_offsets.errors import PositionError
from tests.support.worlds import REFILLED, REFILLED_TRUTHS

TOPIC = "orders"
ORDERS = TopicPartition(TOPIC, 0)
PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=25)


def index_of(*pairs: tuple[int, int]) -> SyncIndex:
    return SyncIndex().extended({ORDERS: pairs})


def answers(index: SyncIndex) -> list[Translation]:
    return [index.translate(TOPIC, 0, position) for position in range(35)]


def contents(syncs: PartitionSyncs) -> tuple[object, ...]:
    return syncs.upstream, syncs.downstream, syncs.starts, syncs.beginning


@given(PAIRS, st.integers(0, 25))
def test_going_on_equals_building_at_once(pairs: list[tuple[int, int]], cut: int) -> None:
    """An index that goes on is the one made of everything, and the first stays as it was."""
    first = index_of(*pairs[:cut])
    before = contents(first.partitions[ORDERS])
    both = first.extended({ORDERS: pairs[cut:]})
    at_once = index_of(*pairs)
    assert contents(both.partitions[ORDERS]) == contents(at_once.partitions[ORDERS])
    assert contents(first.partitions[ORDERS]) == before


@given(PAIRS)
def test_any_syncs_give_an_answer_or_a_refusal(pairs: list[tuple[int, int]]) -> None:
    """Out of order, repeated, stepping back: every position has an answer in its bounds."""
    evidence = Evidence(extras=Extras.NONE, target=Watermarks(low=3, high=40))
    for position in range(35):
        for each in (Evidence(), evidence):
            answer = index_of(*pairs).translate(TOPIC, 0, position, evidence=each)
            if answer.status is Status.REFUSED:
                assert answer.target is answer.low is answer.high is answer.max_reread is None
            else:
                assert answer.target is not None
                assert answer.target == answer.low
                assert answer.high is None or answer.low <= answer.high
                exact = answer.low == answer.high
                assert (answer.status is Status.EXACT) == exact


@given(PAIRS)
def test_a_sync_read_twice_is_one(pairs: list[tuple[int, int]]) -> None:
    """A sync that follows itself changes nothing."""
    doubled = [pair for pair in pairs for _ in range(2)]
    assert answers(index_of(*doubled)) == answers(index_of(*pairs))
    assert len(index_of(*doubled)) == len(index_of(*pairs))


def test_an_overtaken_sync_cuts_nothing() -> None:
    """A sync that arrives after its successor takes its place; the history stays."""
    tidy = index_of((0, 0), (20, 15), (40, 35))
    overtaken = index_of((0, 0), (30, 25), (20, 15), (40, 35))
    assert answers(overtaken) == answers(tidy)
    assert contents(overtaken.partitions[ORDERS]) == contents(tidy.partitions[ORDERS])


def test_syncs_are_sorted_by_partition() -> None:
    """Syncs of all partitions come mixed, as on the topic, and are indexed apart."""
    index = SyncIndex(
        OffsetSync(topic=topic, partition=partition, upstream=up, downstream=down)
        for topic, partition, up, down in [
            ("orders", 1, 20, 0),
            ("bills", 1, 30, 0),
            ("orders", 0, 40, 0),
            ("orders", 1, 50, 30),
            ("orders", 0, 50, 10),
            ("bills", 1, 50, 20),
        ]
    )
    assert len(index) == 6
    assert set(index) == {("orders", 0), ("orders", 1), ("bills", 1)}
    assert index.translate("orders", 1, 50).target == 30
    assert index.translate("bills", 1, 50).target == 20
    assert index.translate("orders", 0, 50).target == 10


@pytest.mark.parametrize(("topic", "partition"), [("bills", 0), ("orders", 7)])
def test_an_unknown_partition_is_refused(topic: str, partition: int) -> None:
    """A topic or partition without a sync was never replicated; both are named."""
    answer = index_of((0, 0)).translate(topic, partition, 0)
    assert (answer.status, answer.basis) == (Status.REFUSED, Basis.NEVER_REPLICATED)
    assert f"{topic}[{partition}]" in answer.reason


def test_an_empty_index_refuses() -> None:
    """No syncs at all: every position is refused."""
    assert SyncIndex().translate(TOPIC, 0, 0).status is Status.REFUSED
    assert index_of().translate(TOPIC, 0, 0).status is Status.REFUSED


def test_a_target_made_again_cuts_history() -> None:
    """Where the downstream offset steps back, what was before is gone, and is refused."""
    index = index_of((0, 0), (100, 100), (150, 0), (200, 50))
    assert index.translate(TOPIC, 0, 150).target == 0
    assert index.translate(TOPIC, 0, 160).target == 1
    refused = index.translate(TOPIC, 0, 149)
    assert (refused.status, refused.basis) == (Status.REFUSED, Basis.HISTORY_CUT)
    gone_on = index.extended({ORDERS: [(300, 150)]})
    assert gone_on.translate(TOPIC, 0, 149).basis is Basis.HISTORY_CUT


def test_a_copy_from_before_the_cut_is_waited_for() -> None:
    """While it copies again, what may lie before the cut is refused unless the end is proven."""
    pairs = [(11, 1), (12, 2), (9, 3)]
    assert index_of(*pairs).translate(TOPIC, 0, 10).target == 0
    cut = PartitionSyncs(beginning=Beginning(history=History.LATE))
    index = SyncIndex.of_partitions({ORDERS: cut}).extended({ORDERS: pairs})
    refused = index.translate(TOPIC, 0, 10)
    assert (refused.status, refused.basis) == (Status.REFUSED, Basis.COPYING_AGAIN)
    drained = Evidence(target=Watermarks(low=0, high=4), drained=True)
    assert index.translate(TOPIC, 0, 10, evidence=drained).target == 4


def test_a_rewind_answers_from_the_newer_copy() -> None:
    """Positions that were copied twice are answered by the second copy, others by the first."""
    index = index_of((0, 0), (100, 100), (50, 160), (160, 270))
    assert index.translate(TOPIC, 0, 0).target == 0
    assert index.translate(TOPIC, 0, 50).target == 160
    assert index.translate(TOPIC, 0, 100).target == 161
    between = index.translate(TOPIC, 0, 49)
    assert (between.low, between.high) == (1, 160)


def test_a_second_copy_that_no_sync_shows_is_suspected() -> None:
    """The target grew by 6 where the source grew by 1: up to record 11 may lie at 7 to 11."""
    index = index_of((0, 0), (6, 6), (7, 12))
    again = index.translate(TOPIC, 0, 7)
    assert (again.basis, again.low, again.high) == (Basis.COPYING_AGAIN, 7, 12)
    # Five offsets are free before 12: what was copied again there begins at record 2 or later.
    before = index.translate(TOPIC, 0, 6)
    assert (before.basis, before.low, before.high) == (Basis.SYNC, 6, 12)
    assert index.translate(TOPIC, 0, 0).status is Status.EXACT
    caught_up = index.extended({ORDERS: [(12, 17)]})
    assert caught_up.translate(TOPIC, 0, 7).target == 12
    assert caught_up.translate(TOPIC, 0, 7).status is Status.EXACT


def test_older_copies_reach_further_where_fewer_records_were_copied() -> None:
    """Half were dropped, so that 22, 24, 26, 28 and 30 may lie at 11 to 15; then all are copied."""
    index = index_of((0, 0), (20, 10), (20, 16), (25, 21))
    assert index.translate(TOPIC, 0, 26).low == 11
    caught_up = index.extended({ORDERS: [(30, 26)]})
    assert caught_up.translate(TOPIC, 0, 26).low == 22


def test_the_next_records_that_were_skipped_may_have_older_copies() -> None:
    """The two copies before 13 -> 15 may be of 19 and 20, which 14 -> 21 passes over."""
    index = index_of((0, 0), (12, 12), (13, 15), (14, 16), (21, 17), (30, 26), (40, 30))
    assert index.translate(TOPIC, 0, 13).low == 13
    assert index.translate(TOPIC, 0, 20).low == 13
    assert index.translate(TOPIC, 0, 21).target == 17


def test_what_an_epoch_passes_over_at_once_may_have_its_copy_before_it() -> None:
    """The copy before 7 -> 8 may be of 8, 9 or 10: up to 11 -> 11 one of them is passed over."""
    index = index_of((0, 0), (6, 6), (7, 8), (11, 11))
    assert index.translate(TOPIC, 0, 8).low == 7
    assert index.translate(TOPIC, 0, 11).target == 11


def test_what_was_copied_before_the_cut_is_waited_for() -> None:
    """Of a recreated target, copies before the first sync may be of records after it."""
    cut = PartitionSyncs(beginning=Beginning(history=History.LATE))
    index = SyncIndex.of_partitions({ORDERS: cut}).extended({ORDERS: [(37, 18)]})
    assert index.translate(TOPIC, 0, 37).basis is Basis.COPYING_AGAIN
    # Any record that the source holds may be one: only its end settles that.
    held = Evidence(source_end=70)
    for position, basis in ((67, Basis.COPYING_AGAIN), (69, Basis.SYNC)):
        further = index.extended({ORDERS: [(position, position - 19)]})
        assert further.translate(TOPIC, 0, 37).basis is Basis.COPYING_AGAIN
        assert further.translate(TOPIC, 0, 37, evidence=held).basis is basis
    assert further.translate(TOPIC, 0, 37, evidence=held).target == 18


def test_a_recreated_target_has_nothing_settled() -> None:
    """What an archive knows of the old log says nothing of the new one."""
    cut = PartitionSyncs([(90, 80)], beginning=Beginning(history=History.CUT, settled_below=80))
    assert cut.beginning.settled_below == 80
    assert PartitionSyncs([(50, 40)], after=cut).beginning.settled_below == 0


TURNED = [(23610, 27819), (24000, 28209), (24127, 28336), (24200, 28409)]
"""A mirror was turned round: the target held 27,819 records when it began to copy there."""


def turned_index(end: int | None, *more: tuple[int, int]) -> SyncIndex:
    beginning = (
        PartitionSyncs() if end is None else PartitionSyncs(beginning=Beginning(source_end=end))
    )
    return SyncIndex.of_partitions({ORDERS: beginning}).extended({ORDERS: [*TURNED, *more]})


@pytest.mark.parametrize(
    ("end", "position", "low"),
    [
        (None, 24127, 0),  # copies of an earlier life may lie below 27819
        (24100, 24127, 28336),
        (24100, 24130, 28337),
        (24100, 24050, 28210),  # all up to 24200 was copied again, in equal steps
        (24300, 24200, 0),
        (24300, 24299, 0),
        (24300, 24300, 28410),  # no record from here on existed when the first sync was written
    ],
)
def test_older_copies_lie_below_the_end_that_was_read_after_them(
    end: int | None, position: int, low: int
) -> None:
    """Positions from the source's end on need none; it was read after the first sync."""
    assert turned_index(end).translate(TOPIC, 0, position).low == low


def test_the_end_bounds_no_other_older_copies() -> None:
    """Copies that a rewind leaves, or a step that hides one, may be of records beyond it."""
    rewound = turned_index(23700, (24150, 28500))
    assert rewound.translate(TOPIC, 0, 24150).low == 28337
    hidden = turned_index(23700, (24300, 28700))
    assert hidden.translate(TOPIC, 0, 24300).low == 28410


def test_a_recreated_target_has_no_end_of_the_old_one() -> None:
    """The end was read after the first sync of the old log, and before that of the new one."""
    recreated = turned_index(23700, (30000, 500))
    assert recreated.partitions[ORDERS].beginning.source_end == END


def test_before_the_first_sync() -> None:
    """What precedes every sync lies between the target's beginning and the first sync."""
    answer = index_of((10, 10)).translate(TOPIC, 0, 5)
    assert (answer.basis, answer.low, answer.high) == (Basis.COPYING_AGAIN, 0, 10)
    assert index_of((10, 0)).translate(TOPIC, 0, 5).status is Status.EXACT
    # What was copied before the first sync is not measured, unless all of it was copied again.
    open_end = index_of((10, 10)).translate(TOPIC, 0, 5, extras=Extras.NONE)
    assert (open_end.low, open_end.high) == (0, 10)
    settled = Evidence(source_end=11, extras=Extras.NONE)
    close = index_of((10, 10)).translate(TOPIC, 0, 5, evidence=settled)
    assert (close.basis, close.low, close.high) == (Basis.BEFORE_FIRST_SYNC, 5, 10)


@pytest.mark.parametrize("low", [1, 10, 11, 50])
def test_before_the_first_sync_of_a_target_that_expired(low: int) -> None:
    """A target that has deleted its beginning may have deleted what the job has yet to read."""
    evidence = Evidence(target=Watermarks(low=low, high=60))
    answer = index_of((10, 10)).translate(TOPIC, 0, 5, evidence=evidence)
    assert (answer.status, answer.basis) == (Status.REFUSED, Basis.EXPIRED)


def test_no_extras_before_the_first_sync_looks_past_no_rewind() -> None:
    """Where a later life began before the first known sync, its records are not measured."""
    index = index_of((700, 200), (1000, 500), (600, 550), (1100, 1050))
    settled = Evidence(source_end=1101, extras=Extras.NONE)
    answer = index.translate(TOPIC, 0, 590, evidence=settled)
    assert (answer.low, answer.high) == (90, 550)
    assert index.translate(TOPIC, 0, 590, extras=Extras.NONE).low == 0


def test_outside_the_target() -> None:
    """Below the target's first offset is expired, above its end is not replicated yet."""
    index = index_of((0, 0), (100, 100))
    evidence = Evidence(target=Watermarks(low=50, high=80))
    below = index.translate(TOPIC, 0, 0, evidence=evidence)
    above = index.translate(TOPIC, 0, 100, evidence=evidence)
    assert (below.status, below.basis) == (Status.REFUSED, Basis.EXPIRED)
    assert "50" in below.reason
    assert (above.status, above.basis) == (Status.REFUSED, Basis.NOT_REPLICATED_YET)
    assert "80" in above.reason


def test_after_the_last_sync_nothing_bounds_from_above() -> None:
    """After the last sync more records may come, so no answer has an upper bound."""
    index = index_of((0, 0), (100, 100))
    open_end = index.translate(TOPIC, 0, 150)
    assert (open_end.low, open_end.high, open_end.max_reread) == (101, None, None)
    evidence = Evidence(target=Watermarks(low=0, high=140))
    closed = index.translate(TOPIC, 0, 150, evidence=evidence)
    assert (closed.low, closed.high, closed.max_reread) == (101, None, None)


def test_drained_is_exact() -> None:
    """Copied up to the source's end, the target's end is the answer, also after a rewind."""
    evidence = Evidence(target=Watermarks(low=0, high=20), drained=True)
    for index in (index_of((0, 0), (6, 6), (7, 12)), index_of((0, 0), (9, 9), (3, 10))):
        answer = index.translate(TOPIC, 0, 12, evidence=evidence)
        assert (answer.status, answer.basis, answer.target) == (Status.EXACT, Basis.DRAINED, 20)


def test_beyond_the_source() -> None:
    """A position that the source can't have is of another topic or cluster."""
    source = Evidence(source=Watermarks(low=50, high=120))
    index = index_of((60, 60), (100, 100))
    assert index.translate(TOPIC, 0, 121, evidence=source).basis is Basis.OUTSIDE_SOURCE
    assert index.translate(TOPIC, 0, 49, evidence=source).basis is Basis.OUTSIDE_SOURCE
    assert index.translate(TOPIC, 0, 120, evidence=source).target == 101


@pytest.mark.parametrize("position", [-1, 2**63, "x", 1.5, None])
def test_no_position_is_an_error(position: object) -> None:
    """An invalid position is an error, with or without syncs of the partition."""
    with pytest.raises(PositionError):
        index_of((0, 0)).translate(TOPIC, 0, position)  # type: ignore[arg-type]


def test_the_largest_offsets_fit() -> None:
    """Offsets up to int64's end are kept and answered as they are."""
    end = 2**63 - 1
    index = index_of((0, 0), (end - 5, end - 5), (end, end))
    assert index.translate(TOPIC, 0, end).target == end
    assert index.translate(TOPIC, 0, end - 3).low == end - 4


@pytest.mark.parametrize(
    ("strategy", "target"), [(Strategy.SAFE, 1), (Strategy.KAFKA, 1), (Strategy.LINEAR, 40)]
)
def test_strategies(strategy: Strategy, target: int) -> None:
    """Each strategy takes its own point; the bounds are the same."""
    answer = index_of((0, 0), (100, 50)).translate(TOPIC, 0, 40, strategy=strategy)
    assert (answer.target, answer.low, answer.high) == (target, 1, 50)
    before = index_of((10, 10)).translate(TOPIC, 0, 5, strategy=strategy)
    assert (before.status is Status.REFUSED) == (strategy is not Strategy.SAFE)


@pytest.mark.parametrize("extras", Extras)
def test_copies_before_the_first_sync_are_not_lost(extras: Extras) -> None:
    """Records that were not copied again lie below the first known sync, whatever extras says."""
    for position, truth in enumerate(REFILLED_TRUTHS):
        target = index_of(*REFILLED).translate(TOPIC, 0, position, extras=extras).target
        assert target is not None
        assert target <= truth


@pytest.mark.parametrize("setting", [{"strategy": "exact"}, {"extras": "maybe"}])
def test_an_unknown_setting_is_an_error(setting: dict[str, str]) -> None:
    """A misspelt strategy or evidence is never taken for a default."""
    with pytest.raises(ValueError, match="is not a valid"):
        index_of((0, 0)).translate(TOPIC, 0, 0, **setting)  # type: ignore[arg-type]
