"""Copies from before the first sync lie below the source's end that a later run noted."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings

from airflow_mm2_offsets.archive import SyncArchive, TopicIncarnation
from airflow_mm2_offsets.core import Status
from airflow_mm2_offsets.core.bracket import END
from airflow_mm2_offsets.testing import in_memory_clients
from tests.support.mirror_world.archive_check import Gain, judge_archive, with_archives
from tests.support.mirror_world.cases import drawn_worlds
from tests.support.mirror_world.draw import Drawn
from tests.unit.archive.archive_builder import ORDERS, Sync, append

TURNED: list[Sync] = [("bills", 0, 0, 0), ("orders", 0, 236, 278), ("orders", 0, 250, 292)]
"""The target of orders held 278 records of its own when MirrorMaker 2 began to copy there."""


def until(archive: SyncArchive) -> int:
    return archive.read().index().partitions[ORDERS].beginning.source_end


def until_or_none(archive: SyncArchive) -> int | None:
    syncs = archive.read().index().partitions.get(ORDERS)
    return None if syncs is None else syncs.beginning.source_end


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Let no archive warn of recreated topics."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def test_a_position_from_that_end_on_is_answered(archive: SyncArchive) -> None:
    """Without the end it is refused until 278 records more were copied."""
    append(archive, TURNED, 0, 1, time=1, source_end=230)
    assert until_or_none(archive) is None
    append(archive, TURNED, 1, 3, time=2, source_end=260)
    index = archive.read().index()
    assert index.translate("orders", 0, 255).target == 0
    assert index.translate("orders", 0, 260).target == 293


def test_the_earliest_run_that_saw_the_sync_counts(archive: SyncArchive) -> None:
    """A run before it read the end too early; runs after it read a higher one."""
    for stop, end in ((1, 230), (1, 235), (2, 240), (3, 260), (3, 300)):
        append(archive, TURNED, 0, stop, time=end, source_end=end)
    assert until(archive) == 240


def test_a_clock_that_went_back_does_not_count(archive: SyncArchive) -> None:
    """What a run has read decides, not its time; and a compaction keeps no end that was too early.

    The run at 9 began later than the one at 5 by its clock, and has seen less.
    """
    append(archive, TURNED, 0, 1, time=9, source_end=230)
    append(archive, TURNED, 0, 3, time=5, source_end=260)
    for _ in range(2):
        assert until(archive) == 260
        archive.compact(over=0)


def test_a_compaction_keeps_a_later_end(archive: SyncArchive) -> None:
    """Of the runs of an hour the last one's watermarks are left: their end is higher."""
    append(archive, TURNED, 0, 3, time=1, source_end=260)
    append(archive, TURNED, 3, 3, time=2, source_end=300)
    assert until(archive) == 260
    archive.compact(over=0)
    assert until(archive) == 300


def test_runs_that_began_at_once_give_the_later_end(archive: SyncArchive) -> None:
    """Their watermarks can't be told apart by time once they are in one file."""
    append(archive, TURNED, 0, 1, time=5, source_end=230)
    append(archive, TURNED, 1, 3, time=5, source_end=260)
    archive.compact(over=0)
    assert until(archive) == 260


@pytest.mark.parametrize("ids", [("s2", "t1"), ("s1", "t2")], ids=["source", "target"])
def test_the_end_before_a_recreation_does_not_count(
    archive: SyncArchive, ids: tuple[str, str]
) -> None:
    """Only a run that saw the first sync of the new topics counts."""
    log: list[Sync] = [*TURNED, ("orders", 0, 100, 400), ("orders", 0, 110, 410)]
    append(archive, log, 0, 3, time=1, source_end=260, topics={"orders": ("s1", "t1")})
    append(archive, log, 3, 3, time=2, source_end=20, topics={"orders": ids})
    append(archive, log, 3, 3, time=3, source_end=30, topics={"orders": ids})
    assert until_or_none(archive) == END
    append(archive, log, 3, 5, time=4, source_end=120, topics={"orders": ids})
    assert until(archive) == 120


def test_a_run_of_another_incarnation_of_the_syncs_topic_does_not_count(
    archive: SyncArchive,
) -> None:
    """Its offsets say nothing of when a sync was written."""
    append(archive, TURNED, 0, 1, time=1, source_end=230)
    log: list[Sync] = [("orders", 0, 236, 278)]
    second = TopicIncarnation(2, "second-life")
    append(archive, log, time=2, source_end=240, incarnation=second)
    assert until(archive) == 240


def test_watermarks_are_read_only_where_they_count(archive: SyncArchive) -> None:
    """No copy is older than a first sync at the target's beginning."""
    append(archive, [("orders", 0, 0, 0), ("orders", 0, 50, 50)])
    archived = archive.read()
    unread = {
        name: replace(segment, watermarks=pytest.fail)
        for name, segment in archived.segments.items()
    }
    index = replace(archived, segments=unread).index()
    assert index.translate("orders", 0, 50).status is Status.EXACT


def test_the_end_loses_nothing() -> None:
    """In worlds of second lives and mirrors turned round, with runs at random times."""
    gain = Gain()
    with in_memory_clients():
        for seed in range(60):
            judge_archive(with_archives(seed), gain)
    assert not gain.losses, gain.losses[0]
    assert not gain.misread
    assert gain.before["refused"] > gain.after["refused"]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(drawn_worlds())
def test_the_end_loses_nothing_in_any_world(drawn: Drawn) -> None:
    """The same in worlds that Hypothesis picks, and makes small where one fails."""
    gain = Gain()
    with in_memory_clients():
        judge_archive(drawn, gain)
    assert not gain.losses, gain.losses[0]
    assert not gain.misread
