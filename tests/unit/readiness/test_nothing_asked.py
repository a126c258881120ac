"""A check that found nothing to look at does not say ``ok``."""

import shutil

from airflow_mm2_offsets.core.readiness import CheckStatus
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.testing import Mm2Simulation
from tests.unit.readiness.ready_world import NAMING, ReadyWorld, statuses, values
from tests.unit.spark import checkpoints


def test_a_topic_that_the_archive_does_not_know(world: ReadyWorld) -> None:
    """It began after the archive's last run: a disaster would find nothing about it."""
    world.archive()
    world.simulation.source.produce("returns", 0, [b"1"])
    world.simulation.mirror()
    checkpoint = world.folder / "source" / "checkpoint"
    shutil.rmtree(checkpoint)
    both = '{"orders":{"0":4,"1":6},"returns":{"0":1}}'
    checkpoints.write(
        checkpoint,
        {
            "sources/0/0": checkpoints.start(both),
            "offsets/0": checkpoints.batch(both),
            "commits/0": checkpoints.commit(),
        },
    )
    report = world.report(archive=str(world.folder / "archive"))
    assert statuses(report)[CheckName.TOPIC_IDS] is CheckStatus.WARNING
    assert any(
        "does not know topic returns" in value for value in values(report, CheckName.TOPIC_IDS)
    )


def test_without_topics_nobody_was_asked_for(world: ReadyWorld) -> None:
    """Of no checkpoint and no offset sync, no topic is known."""
    world.simulation = Mm2Simulation(NAMING)
    report = world.report(checkpoint=None)
    assert statuses(report)[CheckName.ACTIVE_GROUPS] is CheckStatus.UNKNOWN


def test_a_target_topic_that_is_missing(world: ReadyWorld) -> None:
    """Its settings and its retention can't be fine."""
    world.simulation = Mm2Simulation(NAMING)
    for partition in (0, 1):
        world.simulation.source.produce("orders", partition, [b"1"] * 10)
    found = statuses(world.report())
    assert found[CheckName.LOG_APPEND_TIME] is CheckStatus.UNKNOWN
    assert found[CheckName.TARGET_RETENTION] is CheckStatus.UNKNOWN


def test_a_job_that_does_not_say_what_it_reads(world: ReadyWorld) -> None:
    """Without a driver's file neither brokers nor patterns are known."""
    found = statuses(world.report())
    assert found[CheckName.JOB_CLUSTER] is CheckStatus.NOT_ASKED
    assert found[CheckName.SUBSCRIBE_PATTERN] is CheckStatus.NOT_ASKED
    given = world.report(subscribe_pattern="orders")
    assert statuses(given)[CheckName.SUBSCRIBE_PATTERN] is CheckStatus.OK
