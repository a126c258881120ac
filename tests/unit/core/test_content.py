"""Matching by content, on the smallest examples of what a restart leaves behind."""

import pytest

from airflow_mm2_offsets.core import (
    Basis,
    Evidence,
    SourceWindow,
    Status,
    SyncIndex,
    TargetWindow,
    TopicPartition,
    Translation,
    Watermarks,
)

TOPIC = "orders"
REWOUND = ((0, 0), (900, 900), (1000, 1000), (953, 1001), (1100, 1148))
"""Up to record 1000 was copied, then from 953 on again."""


def translate(
    syncs: tuple[tuple[int, int], ...],
    position: int,
    *,
    copied: list[int],
    target: tuple[int, int],
    source: tuple[int, int],
) -> Translation:
    """Translate with windows of both sides.

    Args:
        syncs: In log order.
        position: The next source offset to read.
        copied: The source offset that each target offset copies.
        target: The first and the last offset that was read there.
        source: The same of the source, where no offset is missing.
    """
    first, last = target
    evidence = Evidence(
        source=Watermarks(low=0, high=max(copied) + 1),
        target=Watermarks(low=0, high=len(copied)),
        target_window=TargetWindow.of(
            first, last, [(offset, copied[offset]) for offset in range(first, last + 1)]
        ),
        source_window=SourceWindow(
            first=source[0],
            last=source[1],
            records=[(offset, offset) for offset in range(source[0], source[1] + 1)],
        ),
    )
    index = SyncIndex().extended({TopicPartition(TOPIC, 0): syncs})
    return index.translate(TOPIC, 0, position, evidence=evidence)


@pytest.mark.parametrize("position", [901, 930, 952])
def test_what_lies_just_before_a_rewind_is_found(position: int) -> None:
    """A record before the one that was copied again first exists once, and is found."""
    answer = translate(
        REWOUND,
        position,
        copied=[*range(1001), *range(953, 1101)],
        target=(900, 1001),
        source=(900, 953),
    )
    assert (answer.status, answer.basis, answer.target) == ("exact", "content", position)


LATE = ((0, 0), (100, 100), (200, 200), (150, 301), (400, 551))
COPIED_AGAIN = [*range(201), *range(50, 401)]
"""50 to 149 lie again at 201 to 300, before the first sync that shows it."""


@pytest.mark.parametrize(("position", "truth"), [(49, 49), (50, 201), (60, 211), (99, 250)])
def test_a_copy_before_a_late_first_sync_is_the_answer(position: int, truth: int) -> None:
    """Read on to that sync, and the source to its end, the higher copy is proven."""
    answer = translate(LATE, position, copied=COPIED_AGAIN, target=(0, 301), source=(0, 400))
    assert (answer.status, answer.target) == ("exact", truth)


@pytest.mark.parametrize(("read", "high"), [((0, 100), 301), ((0, 300), 301), ((0, 301), 251)])
def test_a_second_copy_is_no_proof_before_the_source_is_read_whole(
    read: tuple[int, int], high: int
) -> None:
    """Another record may be equal: the older copy is the answer, the higher one bounds it."""
    answer = translate(LATE, 60, copied=COPIED_AGAIN, target=read, source=(0, 399))
    assert (answer.status, answer.low, answer.high) == ("bounded", 60, high)


def test_an_equal_record_is_no_second_copy() -> None:
    """Record 210 equals record 60 and was copied before the restart, which began at 150."""
    copied = [*range(251), *range(150, 401)]
    records = [(at, 60 if at == 210 else at) for at in range(401)]
    evidence = Evidence(
        source=Watermarks(low=0, high=401),
        target=Watermarks(low=0, high=len(copied)),
        target_window=TargetWindow.of(
            0, 302, [(offset, records[copied[offset]][1]) for offset in range(303)]
        ),
        source_window=SourceWindow(first=0, last=400, records=records),
    )
    index = SyncIndex().extended(
        {TopicPartition(TOPIC, 0): [(0, 0), (100, 100), (200, 200), (201, 302)]}
    )
    answer = index.translate(TOPIC, 0, 60, evidence=evidence)
    assert answer.target == 60


def test_a_lone_second_copy_is_no_restart() -> None:
    """Another writer has put record 60 there again: those after it exist before that alone."""
    answer = translate(
        ((0, 0), (100, 100), (200, 200), (201, 202)),
        60,
        copied=[*range(201), 60, *range(201, 301)],
        target=(0, 202),
        source=(0, 300),
    )
    assert answer.target == 60


@pytest.mark.parametrize(("position", "high"), [(49, 100), (50, 301), (100, 301), (149, 301)])
def test_a_late_first_sync_bounds_without_evidence(position: int, high: int) -> None:
    """As many records as fit may have been copied again: nothing in reach is called exact."""
    answer = (
        SyncIndex()
        .extended({TopicPartition(TOPIC, 0): LATE})
        .translate(TOPIC, 0, position, extras="none")
    )
    assert answer.low == position
    assert answer.high == (position if high == 100 else high)


def test_a_changed_copy_before_a_rewind_may_be_of_any_record() -> None:
    """Records 9 and 10 were changed on the way, and the copies since have jumped over both."""
    answer = translate(
        ((0, 0), (6, 6), (3, 11), (5, 13), (11, 14), (17, 20), (23, 26), (13, 28), (24, 39)),
        9,
        copied=[*range(9), -9, -10, 3, 4, 5, *range(11, 25), *range(13, 25)],
        target=(7, 28),
        source=(3, 13),
    )
    assert answer.low is not None
    assert answer.low <= 9


def test_a_last_copy_is_no_proof_before_the_copies_that_were_not_repeated() -> None:
    """A second life has come to 68 and a third one to 7: record 8 has no copy after 53."""
    answer = translate(
        ((1, 1), (6, 120)),
        0,
        copied=[*range(45), *range(69), *range(8)],
        target=(0, 120),
        source=(0, 68),
    )
    assert answer.low is not None
    assert answer.low <= 53


def test_a_record_that_later_copies_passed_over_is_counted() -> None:
    """Record 21 was copied, those from 10 on again, and 21 jumped over (sole writer)."""
    copied = [2, *range(4, 11), 12, 14, 15, 17, 18, 19, 21, 10, 12, 14, 15, 17, 22]
    evidence = Evidence(
        target=Watermarks(low=0, high=len(copied)),
        target_window=TargetWindow.of(0, 20, list(enumerate(copied))),
        sole_writer=True,
    )
    index = SyncIndex().extended({TopicPartition(TOPIC, 0): [(22, 20)]})
    answer = index.translate(TOPIC, 0, 21, evidence=evidence)
    assert answer.low is not None
    assert answer.low <= 14


def test_repeated_copies_do_not_stand_for_records_that_are_missing() -> None:
    """35 and 36 were copied once; since then 37 twice with 39: the target grew as the source."""
    copied = [*range(37), *range(30, 35), 37, 39, 37, 39, 42]
    answer = translate(
        ((0, 0), (36, 36), (30, 37), (34, 41), (37, 44), (39, 45), (42, 46)),
        35,
        copied=copied,
        target=(41, 44),
        source=(34, 37),
    )
    assert answer.low is not None
    assert answer.low <= 35


def test_known_copies_out_of_order_show_a_rewind() -> None:
    """Record 7 was changed on the way; then 0 to 2 were copied again, and 3 to 9 jumped over."""
    copied = [0, 1, -7, 0, 1, 2, *range(10, 21)]
    answer = translate(((20, 16),), 7, copied=copied, target=(0, 16), source=(0, 20))
    assert answer.low is not None
    assert answer.low <= 2


def test_a_sync_does_not_vouch_for_records_that_another_writer_stands_in_for() -> None:
    """0 was copied again, 1 to 13 were jumped over; 13 foreign records make the steps equal."""
    copied = [*range(14), 0, *range(-13, 0), *range(14, 41)]
    answer = translate(
        ((0, 0), (13, 13), (0, 14), (14, 28), (40, 54)),
        0,
        copied=copied,
        target=(14, 28),
        source=(0, 14),
    )
    assert answer.low == 1


def test_nothing_lies_below_the_beginning_of_the_target() -> None:
    """Record 6 is missing, and the range that may hold it begins with the target."""
    copied = [-1, -2, -3, -4, *range(6), -6, 7, 8, 9, 13, 15]
    syncs = ((0, 4), (4, 8), (5, 9), (7, 11), (13, 14), (15, 15))
    answer = translate(syncs, 0, copied=copied, target=(0, 14), source=(0, 13))
    assert answer.low == 0


def test_records_show_a_rewind_behind_which_others_were_skipped() -> None:
    """22 to 24 were copied, then 22, 23 and 25: the source has no records from 14 to 21."""
    originals = [*range(14), *range(22, 41)]
    copied = [*range(3, 14), 22, 23, 24, 22, 23, *range(25, 41)]
    evidence = Evidence(
        source=Watermarks(low=0, high=41),
        target=Watermarks(low=0, high=len(copied)),
        target_window=TargetWindow.of(10, 14, [(at, copied[at]) for at in range(10, 15)]),
        source_window=SourceWindow(first=0, last=40, records=[(at, at) for at in originals]),
    )
    index = SyncIndex().extended(
        {TopicPartition(TOPIC, 0): [(3, 0), (13, 10), (22, 14), (23, 15), (25, 16), (40, 31)]}
    )
    answer = index.translate(TOPIC, 0, 14, evidence=evidence)
    assert (answer.status, answer.low) == ("bounded", 11)


def test_more_copies_than_source_offsets_show_another_order() -> None:
    """Record 15 was changed, and its batch landed before 14: nothing else can lie before 14."""
    copied = [*range(14), -15, 14, *range(16, 21)]
    answer = translate(((20, 20),), 15, copied=copied, target=(0, 20), source=(0, 20))
    assert answer.low == 14


def test_another_writers_records_are_no_doubt_where_every_record_has_its_copy() -> None:
    """Three foreign records lie before the copy of 5; the source has all of 5 to 10."""
    copied = [*range(5), -1, -2, -3, *range(5, 31)]
    answer = translate(
        ((0, 0), (10, 13), (30, 33)), 5, copied=copied, target=(0, 13), source=(0, 10)
    )
    assert (answer.status, answer.target) == ("exact", 8)


def test_equal_records_do_not_look_like_a_rewind() -> None:
    """Records 6 and 7 are equal, in the source as on the target; 20 to 22 are not there."""
    records = [(at, 6 if at == 7 else at) for at in range(43) if at not in {20, 21, 22}]
    copies = [(at, content) for at, (_, content) in enumerate(records)]
    evidence = Evidence(
        source=Watermarks(low=0, high=43),
        target=Watermarks(low=0, high=40),
        target_window=TargetWindow.of(0, 20, copies[:21]),
        source_window=SourceWindow(first=0, last=42, records=records),
    )
    index = SyncIndex().extended({TopicPartition(TOPIC, 0): [(0, 0), (23, 20), (42, 39)]})
    answer = index.translate(TOPIC, 0, 15, evidence=evidence)
    assert (answer.status, answer.target) == ("exact", 15)


@pytest.mark.parametrize("position", [1, 3])
def test_what_was_skipped_and_read_in_its_older_copy_is_settled(position: int) -> None:
    """Records 3 to 5 were jumped over by a second copy, and the syncs show that: content decides.

    An answer that named older copies as its basis would let a planned failover wait for ever.
    """
    answer = translate(
        (*((number, number) for number in range(6)), (0, 6), (1, 7), (2, 8), (6, 9), (9, 12)),
        position,
        copied=[*range(6), 0, 1, 2, *range(6, 12)],
        target=(0, 14),
        source=(0, 11),
    )
    assert (answer.status, answer.basis) == (Status.EXACT, Basis.CONTENT)
    assert answer.target == 3
