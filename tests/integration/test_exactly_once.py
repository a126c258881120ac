"""Plans of a failover where MirrorMaker 2 copies in transactions (KIP-618)."""

from stack.mirror import Stack
from tests.integration.mirrored_topics import (
    BUSY,
    EQUAL,
    beside_truth,
    holds,
    is_true,
    mirror_topic,
    plan_all,
)
from tests.integration.mirrors import mirror


def test_exactly_once_workers_change_nothing(exactly_once_stack: Stack) -> None:
    """Where MM2 writes transactions, their markers and what a kill aborted cost no answer."""
    with mirror(exactly_once_stack) as made:
        mirrored = mirror_topic(made, copies_again=False)
        answers = plan_all(mirrored)
    for partition in BUSY:
        assert max(map(len, mirrored.copies[partition].values())) == 1
        assert mirrored.target_ends[partition] > len(mirrored.target[partition])
    wrong = [each for each in answers if not holds(each, mirrored)]
    assert [beside_truth(each, mirrored) for each in wrong] == []
    differing = [each for each in answers if each.partition != EQUAL]
    shown = [each for each in differing if mirrored.is_shown(each.partition, each.position)]
    assert shown
    wrong = [each for each in shown if not is_true(each, mirrored)]
    assert [beside_truth(each, mirrored) for each in wrong] == []
