"""The bad input of a move, each tried on real clusters and a real MirrorMaker 2.

Each message is in the runbook, nothing is stopped for nothing, and no job starts twice. Approval
that is refused or not given is in test_approval.py, the killed DAG in tests/e2e/soak_kills.py.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.archive import SyncArchive, incremental_read
from airflow_mm2_offsets.archive.update import archive_syncs
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.errors import LockedError, NotReadyError, PlanError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.moves.jobs import Home
from stack.mirror import Stack
from stack.waiting import wait_until
from tests.integration.mirrors import Mirror, Writer, mirror
from tests.integration.nights import (
    NEVER,
    Night,
    TopicJob,
    be_impatient,
    connect_airflow,
    declare,
    quotes,
)
from tests.unit.dags.dags_folder import FOLDER
from tests.unit.operators.worker import Worker

QUIET, BUSY = range(2)
TESTS = 7
COPIED = 20
"""Records of each partition that every test finds copied."""
SETTINGS: dict[str, str | int] = {
    "tasks.max": 2,
    "offset.lag.max": 10,
    "offset-syncs.topic.location": "source",
}
LOST = 25
"""Records of each partition that are not copied when the source is lost."""
WEEK = 7 * 86_400_000
"""Milliseconds."""


@pytest.fixture(scope="module")
def writers(stack: Stack) -> Iterator[list[Writer]]:
    """Writers to topics of one mirror, copied as far as they go, each partition by its own task.

    Each test takes one. The syncs lie on the source.
    """
    with mirror(stack) as made:
        writers = [Writer(made, made.create_topic(2)) for _ in range(TESTS)]
        for each in writers:
            each.write({QUIET: COPIED, BUSY: COPIED})
        made.configure(**SETTINGS)
        wait_until(lambda: all(map(made.has_noted, writers)), "the copies to be noted")
        yield writers


@pytest.fixture
def writer(writers: list[Writer]) -> Iterator[Writer]:
    """Return a writer of the test's own, and let the mirror run as before afterwards."""
    writer = writers.pop()
    yield writer
    made = writer.mirror
    if made.states() != ["RUNNING"] * 3:
        made.configure(**SETTINGS)
        made.ask("PUT", "/resume")
        made.ask("POST", "/restart?includeTasks=true&onlyFailed=true")
        made.wait_running()


@pytest.fixture
def homes(writer: Writer, tmp_path: Path) -> tuple[Home, Home]:
    """The job's homes: at the cluster that is copied, and at that of the copies."""
    naming = writer.mirror.pair.naming
    sides = {"source": naming.source_alias, "target": naming.target_alias}
    here, there = (
        Home(cluster=alias, folder=str(tmp_path / side), kafka_conn_id=f"kafka_{side}")
        for side, alias in sides.items()
    )
    return here, there


@pytest.fixture
def source(writer: Writer, homes: tuple[Home, Home]) -> TopicJob:
    """A job that has read half of what is copied."""
    return TopicJob(Path(homes[0].folder), writer.topic, _both(COPIED // 2))


@pytest.fixture
def night(
    writer: Writer,
    homes: tuple[Home, Home],
    source: TopicJob,
    worker: Worker,
    monkeypatch: pytest.MonkeyPatch,
) -> Night:
    """A run for the job, which may read all that is copied again."""
    connect_airflow(monkeypatch, writer.mirror)
    declare(monkeypatch, *homes, max_read_again=COPIED)
    return Night(worker, source)


def test_two_moves_of_one_job(night: Night) -> None:
    """The second is refused while the first one stops the job, and after; one job starts, once."""
    second = Night(night.worker, night.source, run_id="manual__2")
    for each in (night, second):
        each.run("check")
    night.begin("stop_source")
    for _ in range(2):
        assert "'mm2_failover:manual__1'" in second.fails("check", NotReadyError)
        assert "'mm2_failover:manual__1'" in second.fails("stop_source", LockedError)
        night.run_from("stop_source", "wait_started")
    assert night.starts()
    assert second.report()["outcome"] == "not begun"


def test_a_drill_in_the_folders_of_the_production_job(night: Night) -> None:
    """It is refused before its job begins; no file has changed."""
    files = _files(night.source.folder.parent)
    drill = Night(night.worker, night.source, file=FOLDER / "mm2_drill.py")
    drill.run_from("check", "start_drill")
    for folder in (night.source.folder, night.source.checkpoint, Path(night.there.folder)):
        drill.give(folder=str(folder))
        message = drill.fails("start_drill", NotReadyError)
        assert f"the drill folder {folder} is, lies in, or holds the" in message
        assert "give another" in message
    assert _files(night.source.folder.parent) == files
    assert night.is_untouched()


def test_a_target_that_has_deleted_the_position(night: Night, writer: Writer) -> None:
    """After the plan nothing is handed over; before the stop the check refuses."""
    night.run_from("check", "start_target")
    _delete_on_target(writer, COPIED // 2 + 3)
    message = night.fails("start_target", PlanError)
    assert f"{writer.topic}[{QUIET}]" in message
    assert f"{COPIED // 2 + 3}" in message
    assert night.report()["outcome"] == "given up"
    assert night.is_untouched()
    late = Night(night.worker, night.source, run_id="manual__2")
    message = late.fails("check", NotReadyError)
    assert f"{writer.topic}[{QUIET}] at {COPIED // 2}" in message
    assert f"below the target's first offset {COPIED // 2 + 3}" in message
    assert late.is_untouched()


def test_one_of_two_tasks_has_failed(night: Night, source: TopicJob, writer: Writer) -> None:
    """After the stop the wait names the records, and the stop is withdrawn; else the check does.

    Once the task runs again, the job is moved.
    """
    made, worker = writer.mirror, night.worker
    made.configure(**SETTINGS, **{"producer.override.max.request.size": 2000})
    made.wait_running()
    night.run("check")
    producer = Producer({"bootstrap.servers": made.stack.source})
    producer.produce(writer.topic, b"large" * 1000, partition=BUSY)
    assert producer.flush(30) == 0
    source.read_to(made.ends(writer.topic))
    wait_until(lambda: sorted(made.states()) == ["FAILED", "RUNNING", "RUNNING"], "one to fail")
    night.run_from("stop_source", "wait_replicated")
    message = night.waits_in_vain()
    assert f"{writer.topic}[{BUSY}] at {COPIED + 1}" in message
    assert f"{writer.topic}[{QUIET}]" not in message
    assert f"of connector {made.name} is FAILED" in message
    assert night.report()["outcome"] == "given up"
    assert night.is_untouched()

    late = Night(worker, night.source, run_id="manual__2")
    message = late.fails("check", NotReadyError)
    assert "is FAILED (org.apache.kafka" in message
    assert f"POST /connectors/{made.name}/restart?includeTasks=true" in message
    assert late.is_untouched()
    made.configure(**SETTINGS)
    made.ask("POST", "/restart?includeTasks=true&onlyFailed=true")
    made.wait_running()
    late.run_from("check", "wait_started")
    assert late.starts() == {QUIET: COPIED, BUSY: COPIED + 1}


def test_connect_is_down(
    night: Night, source: TopicJob, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the stop the check refuses; after it the wait does; a disaster goes on without it."""
    be_impatient(monkeypatch)
    made, worker = writer.mirror, night.worker
    night.run("check")
    made.stack.kill_connect()
    try:
        writer.write({QUIET: 3})
        source.read_to(made.ends(writer.topic))
        night.run_from("stop_source", "wait_replicated")
        message = night.waits_in_vain()
        assert f"{made.stack.connect_url} did not answer, tried for" in message
        assert night.report()["outcome"] == "given up"
        assert night.is_untouched()

        late = Night(worker, night.source, run_id="manual__2")
        message = late.fails("check", NotReadyError)
        assert f"{made.stack.connect_url} did not answer, tried for" in message
        assert late.is_untouched()

        lost = Night(worker, night.source, run_id="manual__3")
        lost.give(policy="disaster", approve="never")
        lost.run_from("check", "wait_started")
        assert lost.starts() == _both(COPIED)
    finally:
        made.stack.start_connect()
        made.wait_running()
        wait_until(made.stack.mirror_running, "the other connectors")


def test_a_way_home_before_the_reverse_mirror_has_copied(
    night: Night,
    source: TopicJob,
    writer: Writer,
    homes: tuple[Home, Home],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without its connector; with one that is stopped, that has copied nothing, that lags."""
    made = writer.mirror
    aliases = made.pair.naming
    connect_airflow(
        monkeypatch,
        made,
        conn_id="mm2_back",
        source_alias=aliases.target_alias,
        target_alias=aliases.source_alias,
        source_kafka_conn_id="kafka_target",
        target_kafka_conn_id="kafka_source",
    )
    made.ask("PUT", "/stop")  # With the identity policy both would copy in a circle.
    wait_until(lambda: made.states() == ["STOPPED"], "the connector to stop")
    here, there = homes
    away, home = replace(there, folder=here.folder), replace(here, folder=there.folder)
    declare(monkeypatch, away, home, mm2_back_conn_id="mm2_back", max_read_again=COPIED)
    source.read_to(_both(COPIED))
    message = night.fails("check", NotReadyError)
    assert f"MirrorSourceConnector for {aliases.target_alias}->{aliases.source_alias}" in message
    with mirror(made.stack, f"{made.name}-back") as back:
        _make_reverse(made, back, writer.topic)
        message = night.fails("check", NotReadyError)
        assert f"connector {back.name} is STOPPED; resume it" in message
        back.ask("PUT", "/resume")
        back.wait_running()
        message = night.fails("check", NotReadyError)
        assert "the offset-syncs topic is empty" in message
        assert night.is_untouched()
        _write_on_target(writer, 5)
        wait_until(lambda: made.ends(writer.topic) == _both(COPIED + 5), "the copies on the source")
        night.run("check")
        back.ask("PUT", "/pause")
        wait_until(lambda: set(back.states()) == {"PAUSED"}, "the connector to pause")
        _write_on_target(writer, 3)
        source.read_to(_both(COPIED + 8))
        night.run_from("stop_source", "wait_replicated")
        message = night.waits_in_vain()
        assert f"{writer.topic}[{QUIET}] at {COPIED + 8}" in message
        assert f"connector {back.name} is PAUSED; resume it" in message
        assert night.report()["outcome"] == "given up"
        assert night.is_untouched()
        back.ask("PUT", "/resume")
        late = Night(night.worker, night.source, run_id="manual__2")
        late.run_from("stop_source", "wait_started")
        assert late.starts() == _both(COPIED + 8)


def _both(number: int) -> dict[int, int]:
    return dict.fromkeys((QUIET, BUSY), number)


def _write_on_target(writer: Writer, count: int) -> None:
    producer = Producer({"bootstrap.servers": writer.mirror.stack.target})
    for number in range(2 * count):
        producer.produce(writer.topic, b"on the target %d" % number, partition=number % 2)
    assert producer.flush(30) == 0


def _make_reverse(made: Mirror, back: Mirror, topic: str) -> None:
    """Make a stopped connector that copies a topic back, from behind what was copied there."""
    aliases = made.pair.naming
    config = made.ask("GET", "/config").json() | {
        "name": back.name,
        "topics": topic,
        "source.cluster.alias": aliases.target_alias,
        "target.cluster.alias": aliases.source_alias,
        "source.cluster.bootstrap.servers": "${env:TARGET_BOOTSTRAP}",
        "target.cluster.bootstrap.servers": "${env:SOURCE_BOOTSTRAP}",
        "producer.override.bootstrap.servers": "${env:SOURCE_BOOTSTRAP}",
    }
    asked = {"name": back.name, "config": config, "initial_state": "STOPPED"}
    with made.stack.connect_client() as client:
        client.post("/connectors", json=asked).raise_for_status()
    wait_until(lambda: back.states() == ["STOPPED"], back.name)
    copied = [
        {
            "partition": {"cluster": aliases.target_alias, "partition": number, "topic": topic},
            "offset": {"offset": COPIED - 1},
        }
        for number in (QUIET, BUSY)
    ]
    back.ask("PATCH", "/offsets", json={"offsets": copied})


def _delete_on_target(writer: Writer, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": writer.mirror.stack.target})
    until = KafkaTopicPartition(writer.topic, QUIET, before)
    admin.delete_records([until])[until].result(timeout=30)


def _files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_archive_a_week_old(
    night: Night,
    source: TopicJob,
    writer: Writer,
    homes: tuple[Home, Home],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The check warns, the translation loses nothing, and the forecast covers what is lost.

    One partition was quiet in the archive's days. Source, syncs topic and Connect are lost later.
    """
    made, pair = writer.mirror, Mm2OffsetHook().get_conn()
    archives = source.folder.parent / "archives"
    archive = SyncArchive(str(archives / "mm2_default"))
    for weeks, records in ((3, 10), (1, 60)):
        _archive_weeks_ago(pair, archive, weeks)
        writer.write({QUIET: records if weeks == 1 else 0, BUSY: records})
        wait_until(lambda: made.has_copied(writer), "the copy")
    made.ask("PUT", "/stop")
    wait_until(lambda: made.states() == ["STOPPED"], "the connector to stop")
    writer.write(_both(LOST))
    be_impatient(monkeypatch)
    connect_airflow(monkeypatch, made, source=NEVER, connect_url=f"http://{NEVER}")
    source.read_to(_both(COPIED))
    declare(monkeypatch, *homes, archive=str(archives), max_read_again=COPIED)
    night.give(policy="disaster")
    night.run_from("check", "approve")
    (age,) = night.checks("archive_age")
    assert (age["status"], age["value"]) == ("warning", "its last run was 7 days ago")
    assert quotes(age["value"])
    forecast = night.result("translate", "forecast")
    for line in forecast["partitions"]:
        assert line["at_risk"]["at_most"] >= LOST, line
    assert all(start <= COPIED for start in _planned(night).values())
    night.begin("approve")
    (question,) = night.worker.questions
    assert f"{forecast['totals']['at_risk']['at_most']} records at risk" in question.subject


def _planned(night: Night) -> dict[str, int]:
    (partitions,) = json.loads(night.result("translate", "starting_offsets")).values()
    return dict(partitions)


def _archive_weeks_ago(pair: ClusterPair, archive: SyncArchive, weeks: int) -> None:
    then = incremental_read.now_in_milliseconds() - weeks * WEEK
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(incremental_read, "now_in_milliseconds", lambda: then)
        archive_syncs(pair, archive)
