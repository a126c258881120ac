"""An archive returns all that was appended, in whatever order."""

import shutil
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from upath import UPath

from airflow_mm2_offsets.archive import PairIdentity, SyncArchive, TopicIncarnation
from airflow_mm2_offsets.core import Basis, Status
from airflow_mm2_offsets.errors import ArchiveError
from tests.support.golden import NAMES, golden_set
from tests.unit.archive.archive_builder import (
    FAR_END,
    FIRST,
    HOUR,
    ORDERS,
    PAIR,
    Sync,
    append,
    contents,
    index_of,
)
from tests.unit.archive.test_index_builder import rising

LOG: list[Sync] = [("orders", number % 2, 10 * number, 8 * number) for number in range(40)]
LATE: list[Sync | None] = [None, *LOG[1:]]
"""The syncs topic was compacted before the first run; the first sync is not at offset 0."""


def files(archive: SyncArchive) -> list[UPath]:
    return sorted(UPath(archive.location).iterdir(), key=str)


def test_an_empty_archive_holds_nothing(archive: SyncArchive) -> None:
    """A folder that does not exist is an empty archive, and the first read begins at 0."""
    archived = archive.read()
    assert (len(archived), archived.pair, archived.as_of) == (0, None, None)
    assert archived.next_read("any", 7) == (TopicIncarnation(1, "any"), 0)
    assert len(archived.index()) == 0


@settings(max_examples=40, deadline=None)
@given(
    log=rising(),
    extra=st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 5)), max_size=6
    ),
    compact=st.booleans(),
)
def test_any_split_reads_as_the_whole(
    log: list[Sync], extra: list[tuple[int, int, int]], *, compact: bool
) -> None:
    """Runs of any length, repeated, overlapping, in any order, give the index of the topic."""
    with TemporaryDirectory() as folder:
        archive = SyncArchive(folder)
        reached = 0
        for first, length, time in [*extra, (0, len(log), 9)]:
            begin = min(first, reached)
            stop = min(len(log), begin + length)
            append(archive, log, begin, stop, time=time)
            append(archive, log, begin, stop, time=time)
            reached = max(reached, stop)
        before = contents(archive.read().index())
        assert before == contents(index_of(log, source_end=FAR_END))
        if compact:
            archive.compact(over=0)
            assert len(files(archive)) == 1
            assert contents(archive.read().index()) == before


def test_a_retry_writes_nothing_new(archive: SyncArchive) -> None:
    """The same run, appended twice, is one file."""
    append(archive, LOG)
    append(archive, LOG)
    assert len(files(archive)) == 1


def test_the_next_read_follows_the_last(archive: SyncArchive) -> None:
    """The next read begins where the archive ends; at 0 if the topic was recreated or truncated."""
    append(archive, LOG, 0, 25)
    archived = archive.read()
    assert archived.next_read("first-life", 40) == (FIRST, 25)
    assert archived.next_read(None, 40) == (FIRST, 25)
    assert archived.next_read("second-life", 40) == (TopicIncarnation(2, "second-life"), 0)
    assert archived.next_read("first-life", 24) == (TopicIncarnation(2, "first-life"), 0)


def test_a_recreated_syncs_topic_follows_the_first(archive: SyncArchive) -> None:
    """The syncs of a recreated syncs topic follow those of the first one; both stay."""
    append(archive, LOG[:20])
    append(archive, LOG[20:], incarnation=TopicIncarnation(2, "second-life"))
    assert contents(archive.read().index()) == contents(index_of(LOG))
    archive.compact(over=0)
    assert len(files(archive)) == 2
    assert contents(archive.read().index()) == contents(index_of(LOG))


@pytest.mark.parametrize("name", NAMES)
def test_golden_sets_translate_from_the_archive(archive: SyncArchive, name: str) -> None:
    """Syncs that were archived before the topic was compacted answer, together with later ones."""
    golden = golden_set(name)
    log: list[Sync] = [(s.topic, s.partition, s.upstream, s.downstream) for s in golden.syncs]
    append(archive, log, 0, len(log) // 2)
    last = {sync[:2]: offset for offset, sync in enumerate(log)}
    kept = [
        sync if offset >= len(log) // 2 or last[sync[:2]] == offset else None
        for offset, sync in enumerate(log)
    ]
    append(archive, kept, len(log) // 2, len(log))
    assert contents(archive.read().index()) == contents(index_of(log))


def test_a_late_start_refuses_the_earliest_positions(archive: SyncArchive) -> None:
    """If the syncs topic was compacted before the first run, the earliest positions are refused.

    Up to 40, source offsets that were not copied since may have been copied to 0 to 15.
    """
    append(archive, LATE, source_end=381)
    index = archive.read().index()
    refused = {5: Basis.HISTORY_CUT, 20: Basis.COPYING_AGAIN, 39: Basis.COPYING_AGAIN}
    for position, basis in refused.items():
        answer = index.translate("orders", 0, position)
        assert (answer.status, answer.basis) == (Status.REFUSED, basis)
    assert index.translate("orders", 0, 60).status is Status.EXACT


def test_a_late_start_refuses_until_all_is_copied_again(archive: SyncArchive) -> None:
    """Records 381 to 399 existed at the first run, and may have been copied before its syncs."""
    append(archive, LATE, source_end=400)
    index = archive.read().index()
    for position in (20, 60, 380, 399):
        answer = index.translate("orders", 0, position)
        assert (answer.status, answer.basis) == (Status.REFUSED, Basis.COPYING_AGAIN)
    caught_up = index.extended({ORDERS: [(399, 323)]})
    assert caught_up.translate("orders", 0, 60).status is Status.EXACT


@pytest.mark.parametrize("side", [0, 1])
def test_a_recreated_topic_is_cut(archive: SyncArchive, side: int) -> None:
    """Syncs up to the run that saw the new id are cut; later ones, and other topics, answer."""
    both: list[Sync] = [("orders", n % 2, 10 * n, 10 * n) for n in range(40)]
    both += [("bills", 0, 10 * n, 8 * n) for n in range(10)]
    ids = [("s1", "t1"), ("s2", "t1")] if side == 0 else [("s1", "t1"), ("s1", "t2")]
    for number, (first, stop) in enumerate(((0, 20), (20, 30), (30, 50))):
        topics = {"orders": ids[min(number, 1)], "bills": ("b", "b")}
        append(archive, both, first, stop, time=number, topics=topics, source_end=381)
    for _ in range(2):
        index = archive.read().index()
        assert index.translate("orders", 0, 290).basis is Basis.HISTORY_CUT
        assert index.translate("orders", 0, 300).target == 300
        assert index.translate("bills", 0, 30).target == 24
        archive.compact(over=0)


def test_a_recreated_topic_without_a_later_sync_is_refused(archive: SyncArchive) -> None:
    """All its syncs are cut; it is not reported as never replicated."""
    append(archive, LOG, 0, 40, time=1, topics={"orders": ("s", "t1")})
    append(archive, LOG, 40, 40, time=2, topics={"orders": ("s", "t2")})
    answer = archive.read().index().translate("orders", 0, 20)
    assert (answer.status, answer.basis) == (Status.REFUSED, Basis.HISTORY_CUT)


def test_a_topic_whose_id_is_not_known_is_not_cut(archive: SyncArchive) -> None:
    """An unknown id is not a changed id; a later id is still compared with the last known one."""
    append(archive, LOG, 0, 20, time=1, topics={"orders": ("s", "t1")})
    append(archive, LOG, 20, 30, time=2, topics={"orders": ("s", None)})
    assert contents(archive.read().index()) == contents(index_of(LOG[:30]))
    append(archive, LOG, 30, 40, time=3, topics={"orders": ("s", "t2")})
    assert archive.read().index().translate("orders", 0, 20).basis is Basis.HISTORY_CUT


@pytest.mark.parametrize("unknown", [None, ""])
def test_compaction_keeps_topic_ids(archive: SyncArchive, unknown: str | None) -> None:
    """The ids stay when the later of an hour's two runs did not know them or found no topic."""
    append(archive, LOG, 0, 20, time=1, topics={"orders": ("s", "t1")})
    append(archive, LOG, 20, 40, time=2, topics={"orders": ("s", unknown)})
    archive.compact(over=0)
    assert archive.read().topics == {"orders": ("s", "t1")}
    append(archive, LOG, 40, 40, time=HOUR, topics={"orders": ("s", "t2")})
    assert archive.read().index().translate("orders", 0, 20).basis is Basis.HISTORY_CUT


def test_another_pair_is_refused(archive: SyncArchive) -> None:
    """Cluster ids distinguish two pairs with the same aliases, even with skip_damaged."""
    append(archive, LOG)
    other = PairIdentity(source="other-id", target="target-id", syncs_topic="mm2-offset-syncs")
    lenient = SyncArchive(archive.location, skip_damaged=True)
    for each in (archive, lenient):
        with pytest.raises(ArchiveError, match="is source-id, and here it is other-id"):
            each.read(other)
    unknown = PairIdentity(source=None, target="target-id", syncs_topic="mm2-offset-syncs")
    assert len(archive.read(unknown)) == len(LOG)
    append(archive, LOG, pair=other)
    with pytest.raises(ArchiveError, match="another pair"):
        archive.read(PAIR)


def test_runs_of_an_hour_become_one(archive: SyncArchive) -> None:
    """Compaction keeps the time and the watermarks of the last run of each hour."""
    for number in range(8):
        stop = 5 * number + 5
        append(archive, LOG, 5 * number, stop, time=number * HOUR // 4, source_end=stop)
    archive.compact(over=0)
    archived = archive.read()
    assert [run.time for _, run in archived.runs] == [3 * HOUR // 4, 7 * HOUR // 4]
    assert archived.watermarks(FIRST).column("source_high").to_pylist() == [20, 40]
    assert archived.next_read("first-life", 40) == (FIRST, 40)


def test_few_files_are_left_alone(archive: SyncArchive) -> None:
    """No more files than ``over`` are not compacted."""
    append(archive, LOG, 0, 20)
    append(archive, LOG, 20, 40)
    assert archive.compact(over=2) == 0
    assert len(files(archive)) == 2


def test_an_interrupted_compaction_changes_nothing(tmp_path: Path) -> None:
    """The new file with any of the old ones reads as the new one alone, with retention too."""
    log = [*LOG, ("orders", 0, 100, 400), ("orders", 0, 500, 600)]
    whole = SyncArchive(str(tmp_path / "whole"))
    for number in range(4):
        append(whole, log, 12 * number, min(12 * number + 12, len(log)), time=number)
    old = [Path(str(path)) for path in files(whole)]
    for keep in (None, timedelta(days=1)):
        done = tmp_path / f"done-{keep}"
        shutil.copytree(tmp_path / "whole", done)
        SyncArchive(str(done)).compact(over=0, keep=keep)
        expected = contents(SyncArchive(str(done)).read().index())
        for subset in range(16):
            crashed = tmp_path / f"crashed-{keep}-{subset}"
            shutil.copytree(done, crashed)
            for number, path in enumerate(old):
                if subset >> number & 1:
                    shutil.copy(path, crashed)
            assert contents(SyncArchive(str(crashed)).read().index()) == expected
    assert contents(whole.read().index()) == contents(index_of(log))


def test_a_recreated_source_topic_may_have_been_copied_before_the_run_that_saw_it(
    archive: SyncArchive,
) -> None:
    """Its records 0 to 10 were copied at 7 to 17, and since then 0 and 11 to 20 alone."""
    syncs = [(0, 0), (6, 6), (0, 7), (0, 18), (11, 19), (16, 24), (20, 28)]
    log: list[Sync] = [("orders", 0, *sync) for sync in syncs]
    append(archive, log, 0, 2, time=1, topics={"orders": ("s1", "t")})
    append(archive, log, 2, 2, time=2, topics={"orders": ("s1", "t")})
    append(archive, log, 2, 3, time=3, topics={"orders": ("s2", "t")})
    append(archive, log, 3, 7, time=4, topics={"orders": ("s2", "t")})
    for _ in range(2):
        index = archive.read().index()
        assert index.partitions[ORDERS].beginning.settled_below == 7
        answer = index.translate("orders", 0, 1)
        assert (answer.status, answer.basis) == (Status.REFUSED, Basis.COPYING_AGAIN)
        archive.compact(over=0)
