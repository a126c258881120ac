"""Each fault is named by its check, and by no other."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_mm2_offsets.core import SyncsLocation, TopicPartition
from airflow_mm2_offsets.core.readiness import CheckStatus, ReadinessVerdict
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.core.wire import OffsetSync, encode_offset_sync
from airflow_mm2_offsets.readiness import Thresholds
from airflow_mm2_offsets.testing import Record
from airflow_mm2_offsets.testing.logs import FIRST_TIMESTAMP
from tests.unit.readiness.ready_world import NOW, ReadyWorld, statuses, values

FAILED, WARNING, UNKNOWN = CheckStatus.FAILED, CheckStatus.WARNING, CheckStatus.UNKNOWN


def test_where_all_is_well_nothing_is_named(world: ReadyWorld) -> None:
    """Each check that the settings allow is ok, and the verdict is ready."""
    report = world.report()
    named = {name for name, status in statuses(report).items() if status in {FAILED, WARNING}}
    assert named == set()
    assert [check.problem for check in report.checks if check.status is UNKNOWN] == []
    assert report.verdict is ReadinessVerdict.READY


def _pause(world: ReadyWorld) -> None:
    world.simulation.connect.state = "PAUSED"


def _fail_task(world: ReadyWorld) -> None:
    world.simulation.connect.tasks = [{"id": 0, "state": "FAILED", "trace": "E: too large\n at x"}]


def _set(**config: str) -> Callable[[ReadyWorld], None]:
    def change(world: ReadyWorld) -> None:
        connect = world.simulation.connect
        connect.config = {
            **connect.config,
            **{name.replace("__", "-").replace("_", "."): value for name, value in config.items()},
        }

    return change


def _late_heartbeat(world: ReadyWorld) -> None:
    world.now = NOW + timedelta(minutes=10)


def _no_heartbeats(world: ReadyWorld) -> None:
    world.simulation.target.delete_topic("eu.heartbeats")


def _clock(world: ReadyWorld) -> None:
    world.beat(NOW + timedelta(minutes=2))


def _behind(world: ReadyWorld) -> None:
    world.simulation.source.produce("orders", 1, [b"more"] * 200)


def _no_syncs(world: ReadyWorld) -> None:
    world.simulation.source.delete_topic(world.pair.syncs_topic)


def _fewer_partitions(world: ReadyWorld) -> None:
    world.simulation.target.topics["orders"].partitions = [world.simulation.target.log("orders", 0)]


def _retention(world: ReadyWorld) -> None:
    world.simulation.target.topics["orders"].settings["retention.ms"] = "3600000"


def _expired(world: ReadyWorld) -> None:
    world.simulation.target.topics["orders"].settings["retention.ms"] = "5000"


def _cut_by_size(world: ReadyWorld) -> None:
    world.simulation.target.topics["orders"].settings["retention.bytes"] = "1000"
    world.simulation.source.produce("orders", 0, [b"more"] * 100)
    world.simulation.mirror()


def _append_time(world: ReadyWorld) -> None:
    world.simulation.target.topics["orders"].log_append_time = True


def _group(world: ReadyWorld) -> None:
    world.simulation.source.groups["billing"] = [TopicPartition("orders", 0)]


@pytest.mark.parametrize(
    ("fault", "name", "status", "text"),
    [
        (_pause, CheckName.CONNECTOR_RUNNING, FAILED, "connector mirror is PAUSED; resume it"),
        (_fail_task, CheckName.TASKS_RUNNING, FAILED, "is FAILED (E: too large); mend"),
        (_set(offset_lag_max="5000"), CheckName.OFFSET_LAG_MAX, WARNING, "offset.lag.max is 5000"),
        (
            _set(emit_offset__syncs_enabled="false"),
            CheckName.SYNCS_EMITTED,
            FAILED,
            "connector mirror has emit.offset-syncs.enabled=false",
        ),
        (
            _set(replication_policy_separator="_"),
            CheckName.MIRROR_SETTINGS,
            FAILED,
            "replication.policy.separator is '_' in connector mirror but '.'",
        ),
        (_late_heartbeat, CheckName.LAG_SECONDS, FAILED, "eu.heartbeats is 10 min old; see"),
        (_no_heartbeats, CheckName.LAG_SECONDS, UNKNOWN, "no topic eu.heartbeats; run a Mirror"),
        (_clock, CheckName.CLOCKS, WARNING, "lies 2 min in the future"),
        (_behind, CheckName.REPLICATION_LAG, FAILED, "orders[1]: at most 200 records are not"),
        (_no_syncs, CheckName.SYNCS_EMITTED, FAILED, "the offset-syncs topic does not exist"),
        (_fewer_partitions, CheckName.TARGET_PARTITIONS, FAILED, "lacks partitions [1]"),
        (_retention, CheckName.TARGET_RETENTION, WARNING, "may be deleted in 60 min; lengthen"),
        (_expired, CheckName.TARGET_RETENTION, FAILED, "it may be deleted at any moment"),
        (_cut_by_size, CheckName.TARGET_RETENTION, WARNING, "among the oldest tenth of its"),
        (_append_time, CheckName.LOG_APPEND_TIME, WARNING, "two copies of a record differ"),
        (_group, CheckName.ACTIVE_GROUPS, WARNING, "consumer group billing reads orders"),
    ],
)
def test_a_fault_is_named(
    world: ReadyWorld,
    fault: Callable[[ReadyWorld], None],
    name: CheckName,
    status: CheckStatus,
    text: str,
) -> None:
    """By its own check, with its value, and what to do."""
    fault(world)
    report = world.report(thresholds=Thresholds(max_lag_records=100))
    assert statuses(report)[name] is status
    assert any(text in value for value in values(report, name)), values(report, name)
    assert all(check.next_step for check in report.checks if check.status is status)


def test_an_old_sync_matters_only_where_records_wait(world: ReadyWorld) -> None:
    """An idle topic gets no sync; one that is written to must."""
    world.now = NOW + timedelta(hours=1)
    assert "no record is newer" in values(world.report(), CheckName.SYNC_AGE)[0]
    _behind(world)
    (old,) = values(world.report(), CheckName.SYNC_AGE)
    assert old.startswith("the newest offset sync is 60 min old, and orders[1] has newer records")


def test_spark_s_own_group_is_not_another_reader(world: ReadyWorld) -> None:
    """A query's group bears Spark's name; one without members reads nothing."""
    groups = world.simulation.source.groups
    groups["spark-kafka-source-1-driver-0"] = [TopicPartition("orders", 0)]
    groups["of-old"] = []
    groups["elsewhere"] = [TopicPartition("refunds", 0)]
    assert statuses(world.report())[CheckName.ACTIVE_GROUPS] is CheckStatus.OK


@pytest.mark.parametrize(
    ("low", "position", "status"),
    [
        (3, 3, CheckStatus.OK),
        (6, 4, FAILED),
        (6, 6, WARNING),
        (10, 10, WARNING),
    ],
)
def test_a_hole_counts_where_the_job_has_yet_to_read(
    world: ReadyWorld, low: int, position: int, status: CheckStatus
) -> None:
    """Offset 2 was copied last: what the source deleted after it never reached the target."""
    from tests.unit.spark import checkpoints  # noqa: PLC0415 - one test writes another position

    world.simulation.source.delete_topic(world.pair.syncs_topic)
    world.simulation.write_sync("orders", 0, 2, 2)
    world.simulation.write_sync("orders", 1, 9, 9)
    world.commit_to(2)
    world.simulation.source.delete_records("orders", 0, low)
    checkpoints.simple(
        world.folder / "source" / "checkpoint",
        offsets__1=checkpoints.batch(checkpoints.orders(position, 9)),
    )
    report = world.report()
    assert statuses(report)[CheckName.HOLES] is status
    if status is not CheckStatus.OK:
        (value,) = values(report, CheckName.HOLES)
        assert f"begins at {low}, and the last copied offset is 2: up to {low - 3} rec" in value


def test_without_connect_a_hole_is_not_sure(world: ReadyWorld) -> None:
    """Syncs lag behind the copies: what seems to be a hole may have been copied."""
    world.simulation.source.delete_topic(world.pair.syncs_topic)
    world.simulation.write_sync("orders", 0, 2, 2)
    world.simulation.source.delete_records("orders", 0, 6)
    world.simulation.connect.is_running = False
    assert statuses(world.report())[CheckName.HOLES] is WARNING


def test_syncs_of_the_flow_back_are_named_in_good_days(world: ReadyWorld) -> None:
    """Once the source is lost, nothing could tell them from the pair's own."""
    pair = replace(world.pair, syncs_location=SyncsLocation.TARGET, connect=None)
    syncs = [
        OffsetSync(topic="orders", partition=number, upstream=100, downstream=3)
        for number in (0, 1)
    ]
    records = [Record(*encode_offset_sync(sync), FIRST_TIMESTAMP) for sync in syncs]
    world.simulation.target.produce(pair.syncs_topic, 0, records)
    report = world.report(lambda: pair)
    assert statuses(report)[CheckName.TRANSLATION] is FAILED
    assert "may be those of the flow back" in values(report, CheckName.TRANSLATION)[0]


def test_one_cluster_given_twice_is_named_without_a_checkpoint_too(world: ReadyWorld) -> None:
    """Another address of the source is no target; both are reached."""
    world.simulation.target.cluster_id = world.simulation.source.cluster_id
    report = world.report(checkpoint=None)
    found = statuses(report)
    assert found[CheckName.CONNECTION] is FAILED
    assert "are the same cluster" in values(report, CheckName.CONNECTION)[0]
    assert found[CheckName.TARGET_REACHABLE] is CheckStatus.OK
