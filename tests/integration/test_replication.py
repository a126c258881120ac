"""Waiting for a real MirrorMaker 2 to have copied everything before some positions."""

from collections.abc import Iterator
from dataclasses import replace
from threading import Event, Thread

import pytest

from airflow_mm2_offsets.core import Basis
from airflow_mm2_offsets.planning.plan import plan_failover, still_copying
from stack.mirror import Stack
from stack.waiting import wait_until
from tests.integration.mirrors import FILTER, Mirror, Writer, mirror

FLUSH_SECONDS = 5
"""How often the stack's Connect notes how far it has copied, and sends the last syncs."""
BUSY, IDLE, UNUSED = range(3)


@pytest.fixture(scope="module")
def writer(stack: Stack) -> Iterator[Writer]:
    """Return a writer to a topic that is copied as far as it goes."""
    with mirror(stack) as made:
        writer = Writer(made, made.create_topic(3))
        made.configure(**FILTER)
        writer.write({BUSY: 10, IDLE: 10})
        wait_until(
            lambda: made.has_noted(writer), f"MirrorMaker 2 to note its copy of {writer.topic}"
        )
        yield writer


def _behind(mirror: Mirror, topic: str, positions: dict[int, int]) -> list[int]:
    return [each.partition for each in still_copying(mirror.pair, {topic: positions})]


def test_a_paused_mirror_is_behind_until_it_resumes(writer: Writer) -> None:
    """Only the partitions with uncopied records are named; after the resume, none."""
    made, topic = writer.mirror, writer.topic
    assert _behind(made, topic, made.ends(topic)) == []
    made.ask("PUT", "/pause")
    wait_until(lambda: set(made.states()) == {"PAUSED"}, "the connector to pause")
    writer.write({BUSY: 5})
    ends = made.ends(topic)
    assert _behind(made, topic, ends) == [BUSY]
    without_connect = replace(made.pair, connect=None)
    assert [each.partition for each in still_copying(without_connect, {topic: ends})] == [BUSY]
    made.ask("PUT", "/resume")
    wait_until(lambda: _behind(made, topic, ends) == [], "the copy")
    assert made.has_copied(writer)


def test_a_job_that_is_left_behind_by_its_producer_need_not_wait(writer: Writer) -> None:
    """While records keep coming, the wait ends with the next commit of MirrorMaker 2."""
    made, topic, over = writer.mirror, writer.topic, Event()

    def go_on() -> None:
        while not over.wait(0.02):
            writer.write({BUSY: 1})

    producer = Thread(target=go_on)
    producer.start()
    try:
        ends = made.ends(topic)
        wait_until(lambda: _behind(made, topic, ends) == [], "the copy")
        (busy, *_) = plan_failover(made.pair, {topic: ends}).partitions
    finally:
        over.set()
        producer.join()
    assert (busy.translation.status, busy.max_reread) == ("exact", 0)


def test_records_that_a_transform_drops_leave_no_trace(writer: Writer) -> None:
    """A partition that ends in dropped records is named, with the reason, until a later copy."""
    made, topic = writer.mirror, writer.topic
    writer.write({IDLE: 3}, drop=True)
    ends = {IDLE: made.ends(topic)[IDLE]}
    (behind,) = still_copying(made.pair, {topic: ends})
    assert behind.basis is Basis.AFTER_LAST_SYNC
    assert "if a transform drops the last records" in behind.reason
    writer.write({IDLE: 1})
    wait_until(lambda: _behind(made, topic, ends) == [], "the copy")
