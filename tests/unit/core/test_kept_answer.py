"""Whether a kept answer still holds."""

from dataclasses import replace

import pytest

from airflow_mm2_offsets.core import Basis, Status, SyncIndex, Translation
from airflow_mm2_offsets.core.kept_answer import find_contradiction
from airflow_mm2_offsets.core.positions import TopicPartition

ORDERS = TopicPartition("orders", 0)
BEFORE = [(0, 5), (4, 9), (9, 14)]


def answer(position: int, low: int, high: int | None) -> Translation:
    return Translation(
        topic="orders",
        partition=0,
        position=position,
        status=Status.EXACT if low == high else Status.BOUNDED,
        basis=Basis.CONTENT,
        reason="",
        target=low,
        low=low,
        high=high,
    )


def contradiction(
    kept: Translation, now: Translation, *more: tuple[int, int], is_complete: bool = True
) -> str | None:
    """Return what is said when MirrorMaker 2 has written more syncs since."""
    syncs = SyncIndex().extended({ORDERS: [*BEFORE, *more]}).partitions[ORDERS]
    return find_contradiction(kept, now, syncs, is_complete=is_complete)


EXACT = answer(6, 11, 11)


@pytest.mark.parametrize(
    ("kept", "now", "more"),
    [
        (EXACT, EXACT, []),
        # Less can be read than for the plan.
        (EXACT, answer(6, 10, 14), []),
        (EXACT, answer(6, 10, None), []),
        (EXACT, answer(6, 0, None), [(7, 15)]),
        # More can be read: the true position was within what the plan announced.
        (answer(6, 10, 14), EXACT, []),
        (answer(6, 10, 14), answer(6, 14, 14), []),
        (answer(10, 15, None), answer(10, 40, 40), [(0, 15), (9, 39)]),
        # Another writer's record, or a transaction marker, lies between.
        (answer(10, 15, 15), answer(10, 16, 16), [(10, 16)]),
        # A restart that goes back no further than the position copies nothing before it.
        (EXACT, answer(6, 11, None), [(6, 15)]),
        # The rewind was known when the plan was made.
        (answer(6, 21, 21), answer(6, 20, 24), [(0, 15), (4, 19), (9, 24)]),
    ],
)
def test_what_proves_nothing(
    kept: Translation, now: Translation, more: list[tuple[int, int]]
) -> None:
    """An answer that is closer or less close, and copies that the plan has announced or knew."""
    assert contradiction(kept, now, *more) is None


@pytest.mark.parametrize(
    ("kept", "now", "more", "named"),
    [
        (EXACT, answer(6, 9, 9), [], "at 9 there now, so the job would lose records"),
        (EXACT, answer(6, 8, 10), [], "at 8 to 10 there now, so the job would lose"),
        (
            EXACT,
            answer(6, 10, None),
            [(5, 15)],
            "at 10 or later there now: MirrorMaker 2 has gone back to 5 on the source",
        ),
        (answer(6, 10, 14), answer(6, 20, 24), [(5, 19), (9, 24)], "than the 4 records"),
        (
            answer(4, 9, 9),
            answer(4, 19, 19),
            [(9, 24)],
            "has copied again from 24 on, so more would be read again than the 0 records",
        ),
    ],
)
def test_what_contradicts(
    kept: Translation, now: Translation, more: list[tuple[int, int]], named: str
) -> None:
    """Records would be lost, or more be read again than announced."""
    assert named in str(contradiction(kept, now, *more))


def test_a_refusal_counts_where_as_much_was_read() -> None:
    """It says that copies are gone; with less evidence it may say that less is known."""
    gone = EXACT.refused(Basis.COPYING_AGAIN, "not copied again yet")
    assert contradiction(EXACT, gone) == "not copied again yet"
    assert contradiction(EXACT, gone, is_complete=False) is None
    for basis in (Basis.OUTSIDE_SOURCE, Basis.EXPIRED, Basis.NEVER_REPLICATED):
        assert contradiction(EXACT, EXACT.refused(basis, "deleted there")) is None


def test_a_partition_without_an_answer_is_the_users_choice() -> None:
    """It starts where ``on_unmapped`` says, whatever is known since."""
    refused = EXACT.refused(Basis.NEVER_REPLICATED, "no sync")
    assert contradiction(refused, answer(6, 9, 9), (0, 15)) is None


def test_an_unsafe_start_is_compared_by_its_bounds() -> None:
    """It may lie outside of them by the user's choice; what has changed since still shows."""
    kept = replace(answer(6, 10, 14), target=20)
    assert contradiction(kept, answer(6, 10, 14)) is None
    assert contradiction(kept, answer(6, 8, 9)) is not None
