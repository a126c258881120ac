"""Plans of a failover with the source up, held against the truth on a real MirrorMaker 2."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from airflow_mm2_offsets.core import Basis, Status, Translation
from airflow_mm2_offsets.planning.plan import plan_failover
from stack.mirror import Stack
from stack.waiting import wait_until
from tests.integration.mirrored_topics import (
    BUSY,
    DELETED,
    EQUAL,
    FILTERED,
    PLANS,
    TRANSACTIONS,
    MirroredTopic,
    beside_truth,
    holds,
    is_true,
    mirror_topic,
    plan_all,
)
from tests.integration.mirrors import Writer, mirror


@pytest.fixture(scope="module")
def mirrored(stack: Stack) -> Iterator[MirroredTopic]:
    """Mirror a topic with all that makes offsets differ; kill MirrorMaker 2 in between."""
    with mirror(stack) as made:
        yield mirror_topic(made)


@pytest.fixture(scope="module")
def answers(mirrored: MirroredTopic) -> list[Translation]:
    """Return answers for positions of every partition; half of them where it was copied twice."""
    return plan_all(mirrored)


def test_offsets_differ_in_every_way(mirrored: MirroredTopic) -> None:
    """Records were deleted, aborted, filtered and copied twice, and some are equal."""
    assert mirrored.watermarks[DELETED].low == 100
    assert max(map(len, mirrored.copies[TRANSACTIONS].values())) > 1
    assert len(mirrored.copies[FILTERED]) < len(mirrored.source[FILTERED])
    assert len(set(mirrored.source[EQUAL].values())) < len(mirrored.source[EQUAL])
    for partition in BUSY:
        shifts = {
            target_offsets[0] - at for at, target_offsets in mirrored.copies[partition].items()
        }
        assert len(shifts) > 5


def test_no_answer_loses_a_record(mirrored: MirroredTopic, answers: list[Translation]) -> None:
    """Every position has an answer, none above the truth; bounds contain it where that shows."""
    assert {answer.status for answer in answers} <= {Status.EXACT, Status.BOUNDED}
    wrong = [each for each in answers if not holds(each, mirrored)]
    assert [beside_truth(each, mirrored) for each in wrong] == []


@pytest.mark.parametrize("partition", [each for each in range(8) if each != EQUAL])
def test_records_that_differ_are_found_exactly(
    mirrored: MirroredTopic, answers: list[Translation], partition: int
) -> None:
    """Every answer is EXACT and true, also for records that a restart copied twice.

    Where MirrorMaker 2 has left out the sync of a beginning, an answer may be less exact.
    """
    mine = [answer for answer in answers if answer.partition == partition]
    assert len(mine) == PLANS
    shown = [each for each in mine if mirrored.is_shown(partition, each.position)]
    wrong = [each for each in shown if not is_true(each, mirrored)]
    assert [beside_truth(each, mirrored) for each in wrong] == []


def test_syncs_show_where_copying_began(
    mirrored: MirroredTopic, answers: list[Translation]
) -> None:
    """Of whole topic-partitions MirrorMaker 2 may leave the first sync out, and not of all."""
    assert any(mirrored.is_shown(each.partition, each.position) for each in answers)


@pytest.mark.parametrize("asked", [True, False])
def test_ends_are_exact_when_all_is_copied(mirrored: MirroredTopic, *, asked: bool) -> None:
    """The source's end becomes the target's end, with Connect and without it."""
    pair = mirrored.mirror.pair
    plan = plan_failover(
        pair if asked else replace(pair, connect=None),
        {mirrored.topic: {number: marks.high for number, marks in mirrored.watermarks.items()}},
    )
    found = [each.translation for each in plan.partitions]
    assert {(each.status, each.basis) for each in found} == {(Status.EXACT, Basis.DRAINED)}
    assert {each.partition: each.target for each in found} == mirrored.target_ends


def test_an_open_transaction_may_hold_records(stack: Stack) -> None:
    """If MirrorMaker 2 has copied uncommitted records, no answer lies behind them."""
    with mirror(stack) as made:
        topic = made.create_topic(1)
        made.configure(**{"consumer.isolation.level": "read_uncommitted"})
        writer = Writer(made, topic)
        writer.write({0: 10})
        wait_until(lambda: made.has_noted(writer), f"MirrorMaker 2 to note its copy of {topic}")
        writer.begin({0: 5})
        wait_until(lambda: made.has_copied(writer), "the open transaction on the target")
        plan = plan_failover(made.pair, {topic: {0: 10}})
        writer.commit()
    (answer,) = (each.translation for each in plan.partitions)
    assert answer.target is not None
    assert answer.target <= 10
