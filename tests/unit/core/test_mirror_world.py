"""The simulator does what MirrorMaker 2 and Connect do, and knows the truth."""

import json
from random import Random

import pytest

from airflow_mm2_offsets.testing.sync_writer import OffsetSyncWriter, Sync
from tests.support.golden import BURSTS, HOME, NAMES, RECORDED_KINDS, golden_set
from tests.support.mirror_world.settings import MirrorSettings
from tests.support.mirror_world.steps import Step
from tests.support.mirror_world.world import MirrorWorld


def _world(*steps: str | tuple[str, int], **settings: object) -> MirrorWorld:
    made = MirrorWorld(MirrorSettings(**settings), Random(1))  # type: ignore[arg-type]  # noqa: S311
    return made.run(Step(*each) if isinstance(each, tuple) else Step(each) for each in steps)


@pytest.mark.parametrize("name", NAMES)
def test_recorded_syncs_are_those_that_are_due(name: str) -> None:
    """Fed with recorded copies, the writer sends each recorded sync, but for delayed ones.

    A commit sends those: one for each partition in most runs, for each of the three lulls in some,
    for each transaction in one.
    """
    lag_max = json.loads((HOME / name / "meta.json").read_text())["lag_max"]
    recorded = golden_set(name)
    for number, partition in recorded.partitions.items():
        due: list[Sync] = []
        writer = OffsetSyncWriter(lag_max=lag_max, send=due.append)
        for downstream, upstream in partition.records:
            if upstream >= 0:
                writer.commit_record(upstream, downstream)
        sent = {
            (each.upstream, each.downstream)
            for each in recorded.syncs
            if (each.topic, each.partition) == (recorded.topic, number)
        }
        lulls = 3 if name in BURSTS and RECORDED_KINDS[name] == "restart" else 1
        assert len(sent - set(due)) <= (lulls if name != "eos" else len(sent) / 2)


def test_a_due_sync_is_overwritten_while_there_is_no_room() -> None:
    """Of the syncs due meanwhile the last is sent."""
    world = _world(("grow", 1), ("copy", 1), "block", *[("skip", 1), ("grow", 1), ("copy", 1)] * 3)
    assert world.syncs.syncs == [(0, 0)]
    assert world.run([Step("unblock")]).syncs.syncs == [(0, 0), (6, 3)]


def test_a_record_that_is_not_due_gets_its_sync_at_the_next_commit() -> None:
    """KAFKA-15906; a kill before loses it."""
    assert _world(("grow", 5), ("copy", 5), "commit").syncs.syncs == [(0, 0), (4, 4)]
    assert _world(("grow", 5), ("copy", 5), "commit_unseen").syncs.syncs == [(0, 0)]


def test_a_killed_task_goes_on_after_what_is_noted() -> None:
    """What was copied since is copied again."""
    world = _world(("grow", 6), ("copy", 3), "commit", ("copy", 3), "kill", ("copy", 9))
    assert [entry.origin for entry in world.target.entries] == [0, 1, 2, 3, 4, 5, 3, 4, 5]
    assert [*world.truths().values()] == [0, 1, 2, 6, 7, 8, 9]


def test_a_dropped_record_is_never_noted() -> None:
    """Connect submits only what it sends (``recordDropped``)."""
    world = _world(("grow", 40), ("copy", 40), "commit", dropped=0.5)
    last = max(entry.origin for entry in world.target.entries)
    assert world.mirror.committed == last < 39


def test_an_aborted_transaction_delivers_nothing() -> None:
    """Exactly-once: the killed task's records are markers to a read_committed consumer."""
    world = _world(("grow", 4), ("copy", 2), "commit", ("copy", 2), "kill", exactly_once=True)
    assert [entry.origin for entry in world.target.entries] == [0, 1, -2, -2, -2, -2]
    assert world.mirror.committed == 1


def test_a_second_life_leaves_copies_below_its_first_sync() -> None:
    """The truth of what it has not reached is among the first life's copies."""
    world = _world(("grow", 9), ("copy", 9), "reinstall", ("copy", 2))
    assert world.syncs.syncs == [(0, 9)]
    assert [*world.truths().values()] == [2, 2, 2, 3, 4, 5, 6, 7, 8, 11]


def test_a_jump_leaves_records_in_older_copies() -> None:
    """Offsets reset, two records copied again, and the offsets put back."""
    world = _world(
        ("grow", 6), ("copy", 6), "commit", "reset_offsets", ("copy", 2), "put_back", ("grow", 1)
    )
    assert [*world.run([Step("copy", 1)]).truths().values()] == [2, 2, 2, 3, 4, 5, 8, 9]


def test_a_batch_that_lands_after_the_next_one_gets_syncs() -> None:
    """Both its syncs are due, for the source offsets step."""
    world = _world(("grow", 4), ("overtake", 2))
    assert [entry.origin for entry in world.target.entries] == [2, 3, 0, 1]
    assert world.syncs.syncs == [(2, 0), (0, 2)]
