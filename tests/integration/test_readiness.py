"""The readiness report on real clusters and a real MirrorMaker 2: one fault of each family."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from upath import UPath

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.core.readiness import CheckStatus, ReadinessCheck, ReadinessReport
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.readiness import ReadinessRequest, Thresholds, check_readiness
from stack.mirror import Stack
from stack.waiting import wait_until
from tests.integration.mirrors import Writer, mirror

NOT_HERE = {CheckName.TARGET_DAG}
"""The callers' own."""


@pytest.fixture(scope="module")
def writer(stack: Stack) -> Iterator[Writer]:
    """Return a writer to a topic that is copied as far as it goes, and heartbeats too."""
    with mirror(stack) as made:
        writer = Writer(made, made.create_topic(2))
        writer.write({0: 10, 1: 10})
        made.configure(**{"heartbeats.replication.enabled": "true"})
        wait_until(lambda: made.has_noted(writer), f"the copy of {writer.topic} to be noted")
        yield writer


@pytest.fixture
def folder(writer: Writer, tmp_path: Path) -> Path:
    """Return the folder of a job that has read everything, beside an archive."""
    ends = writer.mirror.ends(writer.topic)
    _write_checkpoint(tmp_path / "source" / "checkpoint", writer.topic, ends)
    archive_syncs(writer.mirror.pair, SyncArchive(str(tmp_path / "archive")))
    return tmp_path


def _write_checkpoint(root: Path, topic: str, positions: dict[int, int]) -> None:
    batch = json.dumps({topic: {str(number): each for number, each in positions.items()}})
    for name, text in {
        "metadata": '{"id":"3f1a2b4c-0000-4000-8000-000000000000"}',
        "offsets/0": f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{{}}}}\n{batch}',
        "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _report(writer: Writer, folder: Path, **settings: Any) -> ReadinessReport:
    locations: dict[str, Any] = {
        "checkpoint": str(folder / "source" / "checkpoint"),
        "target_checkpoint": str(folder / "target" / "checkpoint"),
        "archive": str(folder / "archive"),
    }
    return check_readiness(
        ReadinessRequest(find_pair=lambda: writer.mirror.pair, open=UPath, **locations | settings)
    )


def _named(report: ReadinessReport, name: CheckName) -> list[ReadinessCheck]:
    return [check for check in report.checks if check.name is name]


def _one(report: ReadinessReport, name: CheckName, status: CheckStatus) -> ReadinessCheck:
    (check,) = _named(report, name)
    assert check.status is status, check
    return check


def test_a_healthy_world_is_ready(writer: Writer, folder: Path) -> None:
    """Every check is asked and none warns; no file is written."""

    def is_ready() -> bool:  # The first heartbeat comes with the next refresh of the topics.
        return _report(writer, folder).verdict == "ready"

    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    wait_until(is_ready, "a healthy world to be ready")
    report = _report(writer, folder)
    assert [each.problem for each in report.checks if each.status is CheckStatus.UNKNOWN] == []
    not_asked = {each.name for each in report.checks if each.status is CheckStatus.NOT_ASKED}
    assert not_asked == NOT_HERE | {
        *(CheckName.JOB_CLUSTER, CheckName.SUBSCRIBE_PATTERN),  # The checkpoint says nothing of it.
        *(CheckName.JOB_FOLDERS, CheckName.SINK),
    }
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == before


def test_values_beyond_a_threshold_fail(writer: Writer, folder: Path) -> None:
    """An archive and heartbeats of an hour ago are told with their age and the threshold."""
    later = datetime.now(UTC) + timedelta(hours=1, minutes=5)
    report = _report(writer, folder, now=lambda: later)
    assert _one(report, CheckName.ARCHIVE_AGE, CheckStatus.FAILED).threshold == "<= 60 min"
    lag = _one(report, CheckName.LAG_SECONDS, CheckStatus.FAILED).value
    # A busy machine writes a heartbeat now and then.
    assert re.search(r"is (6[5-9]|7\d) min old", lag)
    # The newest sync is as old, and no record waits for one.
    assert "no record is newer" in _one(report, CheckName.SYNC_AGE, CheckStatus.OK).value


def test_a_paused_connector(writer: Writer, folder: Path) -> None:
    """It is named, and the lag that grows meanwhile is counted per topic-partition."""
    made = writer.mirror
    made.ask("PUT", "/pause")
    wait_until(lambda: set(made.states()) == {"PAUSED"}, "the connector to pause")
    writer.write({0: 7})
    report = _report(writer, folder, thresholds=Thresholds(max_lag_records=5))
    paused = _one(report, CheckName.CONNECTOR_RUNNING, CheckStatus.FAILED)
    assert paused.value.endswith(f"connector {made.name} is PAUSED")
    assert f"PUT /connectors/{made.name}/resume" in paused.remedy
    behind = _one(report, CheckName.REPLICATION_LAG, CheckStatus.FAILED)
    assert behind.value.startswith(f"{writer.topic}[0]: at most 7 records are not copied")
    made.ask("PUT", "/resume")
    made.wait_running()
    wait_until(lambda: made.has_noted(writer), "the rest to be copied")


def test_a_failed_task(writer: Writer, folder: Path) -> None:
    """It is named with its trace, beside a connector that runs."""
    made = writer.mirror
    made.configure(**{"producer.override.max.request.size": 1})

    def fails() -> bool:
        writer.write({0: 1})  # The task with the old settings may still take some.
        return "FAILED" in made.states()

    wait_until(fails, "the task to fail")
    report = _report(writer, folder)
    _one(report, CheckName.CONNECTOR_RUNNING, CheckStatus.OK)
    assert any("is FAILED (" in each.value for each in _named(report, CheckName.TASKS_RUNNING))
    _restart(writer)


def test_syncs_that_are_switched_off(writer: Writer, folder: Path) -> None:
    """MirrorMaker 2 copies on and writes no syncs: positions will have no answer."""
    made = writer.mirror
    config = made.ask("GET", "/config").json()
    # Connect takes no setting of the topic beside it.
    kept = {name: value for name, value in config.items() if not name.startswith("offset-syncs.")}
    made.ask("PUT", "/config", json=kept | {"emit.offset-syncs.enabled": "false"})
    made.wait_running()
    report = _report(writer, folder)
    off = _one(report, CheckName.SYNCS_EMITTED, CheckStatus.FAILED)
    assert "has emit.offset-syncs.enabled=false" in off.value
    assert _one(report, CheckName.MIRROR_SETTINGS, CheckStatus.OK)
    _restart(writer)


def test_an_active_consumer_group(writer: Writer, folder: Path, stack: Stack) -> None:
    """Another reader of the job's topic on the source is named."""
    group = f"billing-{writer.topic}"
    consumer = Consumer({"bootstrap.servers": stack.source, "group.id": group})
    try:
        consumer.subscribe([writer.topic])

        def is_assigned() -> bool:
            message = consumer.poll(0.2)
            assert message is None or message.error() in {None, KafkaError._PARTITION_EOF}  # noqa: SLF001
            return bool(consumer.assignment())

        wait_until(is_assigned, "the group to be assigned")
        report = _report(writer, folder)
    finally:
        consumer.close()
    reader = _one(report, CheckName.ACTIVE_GROUPS, CheckStatus.WARNING)
    assert reader.subject == group
    assert report.verdict == "ready_with_warnings"


def test_a_target_that_deletes_the_start(writer: Writer, folder: Path, stack: Stack) -> None:
    """A retention that has passed for the record at the start is told before it is deleted."""
    begin = dict.fromkeys(writer.mirror.ends(writer.topic), 3)
    _write_checkpoint(folder / "source" / "checkpoint", writer.topic, begin)
    # A day, which has passed tomorrow: what has really passed, the broker may delete meanwhile.
    _set(stack.target, writer.topic, "retention.ms", "86400000")
    tomorrow = datetime.now(UTC) + timedelta(days=1, hours=1)
    report = _report(writer, folder, now=lambda: tomorrow)
    _set(stack.target, writer.topic, "retention.ms", "604800000")
    expiring = _named(report, CheckName.TARGET_RETENTION)
    assert [each.status for each in expiring] == [CheckStatus.FAILED] * 2
    assert all("it may be deleted at any moment" in each.value for each in expiring)


def test_a_target_partition_that_is_missing(writer: Writer, folder: Path, stack: Stack) -> None:
    """The job reads a partition that MirrorMaker 2 has yet to add."""
    made = writer.mirror
    made.ask("PUT", "/pause")
    wait_until(lambda: set(made.states()) == {"PAUSED"}, "the connector to pause")
    admin = AdminClient({"bootstrap.servers": stack.source})
    admin.create_partitions([NewPartitions(writer.topic, 3)])[writer.topic].result(timeout=30)
    wait_until(lambda: len(_ends(writer)) == 3, "the new partition")
    _write_checkpoint(folder / "source" / "checkpoint", writer.topic, _ends(writer))
    report = _report(writer, folder)
    missing = _one(report, CheckName.TARGET_PARTITIONS, CheckStatus.FAILED)
    assert "lacks partitions [2] of the checkpoint" in missing.value
    _one(report, CheckName.SOURCE_PARTITIONS, CheckStatus.OK)
    made.ask("PUT", "/resume")
    made.wait_running()


def test_a_hole_that_retention_left(writer: Writer, folder: Path, stack: Stack) -> None:
    """Records that the source deleted before they were copied are counted."""
    made = writer.mirror
    wait_until(lambda: made.has_noted(writer), "the copy to be noted")
    made.ask("PUT", "/stop")
    wait_until(lambda: set(made.states()) == {"STOPPED"}, "the connector to stop")
    end = _ends(writer)[0]
    writer.write({0: 10})
    before = KafkaTopicPartition(writer.topic, 0, end + 4)
    admin = AdminClient({"bootstrap.servers": stack.source})
    admin.delete_records([before])[before].result(timeout=30)
    _write_checkpoint(folder / "source" / "checkpoint", writer.topic, _ends(writer) | {0: end})
    hole = _one(_report(writer, folder), CheckName.HOLES, CheckStatus.FAILED)
    assert hole.subject == f"{writer.topic}[0]"
    assert "up to 4 records never reached the target" in hole.value
    # A job that has read them before loses nothing by it.
    _write_checkpoint(folder / "source" / "checkpoint", writer.topic, _ends(writer))
    _one(_report(writer, folder), CheckName.HOLES, CheckStatus.WARNING)
    made.ask("PUT", "/resume")
    made.wait_running()


def _ends(writer: Writer) -> dict[int, int]:
    return writer.mirror.ends(writer.topic)


def _restart(writer: Writer) -> None:
    """Give the connector its settings again, and wait until all is copied."""
    made = writer.mirror
    made.configure(**{"heartbeats.replication.enabled": "true"})
    made.ask("POST", "/restart?includeTasks=true")
    made.wait_running()
    wait_until(lambda: made.has_noted(writer), "the rest to be copied")


def _set(servers: str, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": servers})  # It must outlive its request.
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(30)
