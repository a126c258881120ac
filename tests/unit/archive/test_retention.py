"""After retention, an archive answers as before, or refuses."""

from datetime import timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.core import Basis, Extras, Status, TopicPartition
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
from tests.unit.archive.archive_builder import Sync, append
from tests.unit.archive.test_index_builder import rising


@given(rising(), st.integers(0, 60), st.integers(0, 150))
@example(log=[("orders", 0, 10, 1), ("orders", 0, 10, 4), ("orders", 0, 12, 5)], cut=3, position=12)
@settings(max_examples=60, deadline=None)
def test_retention_keeps_every_answer_that_it_leaves(
    log: list[Sync], cut: int, position: int
) -> None:
    """Positions from the first sync left on keep their answers; earlier ones are refused."""
    with TemporaryDirectory() as folder:
        archive = SyncArchive(folder)
        cut = min(cut, len(log))
        append(archive, log, 0, cut, time=0)
        append(archive, log, cut, len(log), time=4_000_000_000_000)
        before = archive.read().index()
        archive.compact(over=0, keep=timedelta(days=1))
        after = archive.read().index()
        assert set(after) == set(before)
        for place, syncs in after.partitions.items():
            was, now = before.translate(*place, position), after.translate(*place, position)
            if now.status is Status.REFUSED:
                assert position < syncs.first.upstream
            else:
                assert (now.target, now.high) == (was.target, was.high)


def test_retention_loses_nothing() -> None:
    """In simulated runs with rewinds, no answer after retention is above the truth."""
    worlds = islice(worlds_copying_again(), 0, None, 5)
    runs = [(each.syncs.syncs, len(each.syncs.syncs) - 1, truths_of(each)) for each in worlds]
    runs += [(JUMPED, cut, JUMPED_TRUTHS) for cut in range(len(JUMPED))]
    answered = 0
    for pairs, cut, truths in runs:
        with TemporaryDirectory() as folder:
            archive = SyncArchive(folder)
            log: list[Sync] = [("orders", 0, *pair) for pair in pairs]
            append(archive, log, 0, cut, time=0)
            append(archive, log, cut, len(log), time=4_000_000_000_000)
            archive.compact(over=0, keep=timedelta(days=1))
            index = archive.read().index()
        for position, truth in enumerate(truths):
            target = index.translate("orders", 0, position).target
            answered += target is not None
            assert target is None or target <= truth, pairs
    assert answered


@pytest.mark.parametrize("name", NAMES)
def test_retention_holds_the_truth(archive: SyncArchive, name: str) -> None:
    """In recorded runs, the truth is within the bounds after retention."""
    golden = golden_set(name)
    log: list[Sync] = [(s.topic, s.partition, s.upstream, s.downstream) for s in golden.syncs]
    append(archive, log, 0, len(log) // 2, time=0)
    append(archive, log, len(log) // 2, len(log), time=4_000_000_000_000)
    archive.compact(over=0, keep=timedelta(days=1))
    index = archive.read().index()
    for extras in Extras if name in NO_EXTRAS else (Extras.POSSIBLE,):
        for number, partition, position in golden.positions(251):
            answer = index.translate(golden.topic, number, position, extras=extras)
            truth = partition.truth(position)
            if answer.low is not None:
                assert answer.low <= truth <= (truth if answer.high is None else answer.high)


def test_an_archive_loses_nothing(tmp_path: Path) -> None:
    """With all syncs of simulated runs in it, no answer is above the truth."""
    worlds = [(world.syncs.syncs, truths_of(world)) for world in worlds_copying_again()]
    archive = SyncArchive(f"file://{tmp_path}")
    append(
        archive, [("orders", at, *pair) for at, (pairs, _) in enumerate(worlds) for pair in pairs]
    )
    index = archive.read().index()
    for number, (pairs, truths) in enumerate(worlds):
        for position, truth in enumerate(truths):
            target = index.translate("orders", number, position).target
            assert target is None or target <= truth, pairs


@pytest.mark.parametrize("name", REWOUND)
def test_an_archived_rewind_leaves_the_truth_between_the_bounds(tmp_path: Path, name: str) -> None:
    """Neither bound of any position passes it."""
    pairs, truths = REWOUND[name]
    archive = SyncArchive(f"file://{tmp_path}")
    append(archive, [("orders", 0, *pair) for pair in pairs])
    index = archive.read().index()
    for position, truth in enumerate(truths):
        answer = index.translate("orders", 0, position)
        assert answer.low is not None
        assert answer.low <= truth <= (truth if answer.high is None else answer.high), answer


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_holds_the_truth(archive: SyncArchive, name: str) -> None:
    """Of recorded runs whose first syncs may be gone, it is between the bounds."""
    golden = golden_set(name)
    log: list[Sync | None] = [None]
    log += [(sync.topic, sync.partition, sync.upstream, sync.downstream) for sync in golden.syncs]
    append(archive, log)
    index = archive.read().index()
    for number, partition, position in golden.positions(101):
        answer = index.translate(golden.topic, number, position)
        truth = partition.truth(position)
        if answer.low is not None:
            assert answer.low <= truth <= (truth if answer.high is None else answer.high), answer


def test_retention_refuses_positions_that_only_dropped_syncs_bound(archive: SyncArchive) -> None:
    """After a rewind up to 10, only the dropped sync bounds 11; a later sync brings the answer."""
    log: list[Sync] = [("orders", 0, *sync) for sync in ((0, 0), (11, 1), (12, 2), (10, 3))]
    append(archive, log, 0, 3, time=0)
    append(archive, log, 3, 4, time=4_000_000_000_000)
    assert archive.read().index().translate("orders", 0, 10).target == 1
    archive.compact(over=0, keep=timedelta(days=1))
    after = archive.read().index()
    assert after.translate("orders", 0, 10).status is Status.REFUSED
    caught_up = after.extended({TopicPartition("orders", 0): [(12, 5)]})
    assert caught_up.translate("orders", 0, 10).target == 3


def test_retention_keeps_an_idle_partition(archive: SyncArchive) -> None:
    """The last sync of a partition stays, however old; the archive lists the cut partitions."""
    log = [("orders", number % 2, 10 * number, 8 * (number & ~1)) for number in range(40)]
    append(archive, log, 0, 40, time=0)
    append(archive, log, 40, 40, time=4_000_000_000_000)
    assert archive.compact(over=1, keep=timedelta(days=30)) == 2
    index = archive.read().index()
    assert index.translate("orders", 1, 390).target == 304
    assert index.translate("orders", 1, 389).basis is Basis.HISTORY_CUT
    assert "archive" in index.translate("orders", 1, 389).reason


@pytest.mark.parametrize("extras", Extras)
def test_an_archive_that_began_late_loses_nothing(tmp_path: Path, extras: Extras) -> None:
    """Copies before its first sync are considered, whatever ``extras`` is."""
    archive = SyncArchive(f"file://{tmp_path}")
    log: list[Sync] = [("orders", 0, *pair) for pair in REFILLED]
    append(archive, log, 0, len(log))
    index = archive.read().index()
    for position, truth in enumerate(REFILLED_TRUTHS):
        target = index.translate("orders", 0, position, extras=extras).target
        assert target is not None
        assert target <= truth
