"""The tables of a Spark job: each position finds in them what core's rows say."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import pytest

from airflow_mm2_offsets.core import Extras, TopicPartition
from airflow_mm2_offsets.core.epochs import PartitionSyncs
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.core.rows import rows_of
from airflow_mm2_offsets.job.translation.tables import (
    BASES,
    BASIS_AT,
    BETWEEN,
    EXTRAS_NONE,
    HEADER,
    LOW_BITS,
    RECORDED,
    SYNC,
    tables_of,
)
from tests.support.golden import NAMES, NO_EXTRAS, golden_set
from tests.support.row_answers import answer_of
from tests.support.worlds import (
    JUMPED,
    JUMPED_TRUTHS,
    REFILLED,
    REFILLED_TRUTHS,
    REWOUND,
    truths_of,
    worlds_copying_again,
)

Answer = tuple[int | None, int | None, str]


def look_up(tables: Sequence[Any], position: int) -> Answer:
    """Read a table as ``lookup`` does."""
    (table,) = (candidate for candidate in tables if candidate[0] <= position <= candidate[1])
    _, _, kind, depth, lookup = table
    base, tail, shift, base_d, records_at = lookup[: len(HEADER)]
    along = min(max(position, base), tail) - base
    first, last = lookup[len(HEADER) + (along >> shift) :][:2]
    assert last - first < 2**depth
    at = bisect_right(lookup, along << 32 | LOW_BITS, first, last + 1) - 1
    entry, number = lookup[at], lookup[at] & LOW_BITS
    if number & RECORDED:
        record = lookup[records_at + number % 2**BASIS_AT :][:4]
        basis = number >> BASIS_AT & 7
    else:
        up, down = (entry >> 32) + base, number + base_d
        next_up, next_down = (lookup[at + 1] >> 32) + base, (lookup[at + 1] & LOW_BITS) + base_d
        breakpoints = next_up - next_down + down + 1, next_down - down + up
        basis = SYNC if up == position else BETWEEN
        record = [down, down] if basis == SYNC else [down + 1, next_down, *breakpoints]
    low, high, *breakpoints = record
    if kind == EXTRAS_NONE and basis != SYNC:
        low += max(0, position - breakpoints[0])
        high -= max(0, breakpoints[1] - position) if high >= 0 else 0
    return None if low < 0 else low, None if high < 0 else high, BASES[basis]


def logs() -> list[list[tuple[int, int]]]:
    """Return logs of every kind: one rises only, one lies far up, one is wild."""
    chance = Random(3)  # noqa: S311 - no secret
    rising = [(number * 100 + number % 7, number * 97 + number % 7) for number in range(1000)]
    extras = [(number * 100, number * 100 + number // 3 * 5) for number in range(1000)]
    rewound = [(up - min(up // 33_000, 2) * 500, down) for up, down in rising]
    far = [(2**33 + up, 2**40 + down) for up, down in rising]
    wild = [(20, 10)]
    for _ in range(300):
        up, down = wild[-1]
        wild.append((max(0, up + chance.randint(-12, 16)), down + chance.randint(1, 9)))
    ends = [(5, MAX_OFFSET - 9), (MAX_OFFSET, MAX_OFFSET)]
    return [rising, extras, rewound, [*rising, *far], far, wild, JUMPED, ends, [(7, 3)]]


@pytest.mark.parametrize("most", [2**20, 64])
@pytest.mark.parametrize("extras", Extras)
def test_tables_say_what_the_rows_say(extras: Extras, most: int) -> None:
    """At the begin, in the middle and at the end of each row, in one table and in many."""
    for pairs in logs():
        rows = list(rows_of(PartitionSyncs(pairs), extras=extras))
        tables = list(tables_of(rows, extras=extras, most=most))
        for row in rows:
            for position in {row.begin, min(row.begin + 1, row.end), row.end}:
                assert look_up(tables, position) == answer_of(row, position), row


@pytest.mark.parametrize("extras", Extras)
def test_most_rows_take_eight_bytes(extras: Extras) -> None:
    """A rewind costs no more than its own rows do.

    Where the target grew by more, a rewind may be hidden: three records more, or six.
    """
    rising, more, rewound, *_ = logs()
    for pairs, most in ((rising, 1.1), (rewound, 1.4), (more, 9.2 if extras == "none" else 4.2)):
        rows = rows_of(PartitionSyncs(pairs), extras=extras)
        (table,) = tables_of(rows, extras=extras, most=2**20)
        assert len(table[4]) < most * len(pairs)


def check_truths(
    syncs: PartitionSyncs, truths: Iterable[tuple[int, int]], extras: Extras = Extras.POSSIBLE
) -> None:
    """Assert that no lower bound of the tables is above the truth."""
    tables = list(tables_of(rows_of(syncs, extras=extras), extras=extras, most=2**20))
    for position, truth in truths:
        low, _, _ = look_up(tables, position)
        assert low is not None
        assert low <= truth, (position, list(zip(syncs.upstream, syncs.downstream, strict=True)))


@pytest.mark.parametrize("name", NAMES)
def test_recorded_runs_hold_the_truth(name: str) -> None:
    """On real MirrorMaker 2's syncs, no position of a table loses a record."""
    golden = golden_set(name)
    for number, partition in golden.partitions.items():
        positions = range(partition.source.low, partition.source.high + 1, 7)
        truths = [(position, partition.truth(position)) for position in positions]
        for extras in Extras if name in NO_EXTRAS else (Extras.POSSIBLE,):
            check_truths(
                golden.index.partitions[TopicPartition(golden.topic, number)], truths, extras
            )


def test_copying_again_holds_the_truth() -> None:
    """Where records exist only in older epochs or behind hidden rewinds, none is lost."""
    worlds = [(world.syncs.syncs, truths_of(world)) for world in worlds_copying_again()]
    for pairs, truths in [(JUMPED, JUMPED_TRUTHS), *worlds]:
        check_truths(PartitionSyncs(pairs), enumerate(truths))


@pytest.mark.parametrize("name", REWOUND)
def test_a_rewind_leaves_the_truth_between_the_bounds(name: str) -> None:
    """Neither bound of any position passes it."""
    pairs, truths = REWOUND[name]
    tables = list(tables_of(rows_of(PartitionSyncs(pairs)), extras="possible", most=2**20))
    for position, truth in enumerate(truths):
        low, high, _ = look_up(tables, position)
        assert low is not None
        assert low <= truth <= (truth if high is None else high), position


@pytest.mark.parametrize("extras", Extras)
def test_copies_before_the_first_sync_are_not_lost(extras: Extras) -> None:
    """Records that were not copied again lie below the first known sync, whatever extras says."""
    check_truths(PartitionSyncs(REFILLED), enumerate(REFILLED_TRUTHS), extras)
