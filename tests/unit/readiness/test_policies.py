"""What each policy asks, and what an unreachable part leaves unknown."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.core.policy import DISASTER, DRILL, PLANNED, POLICIES, Policy
from airflow_mm2_offsets.core.readiness import CheckStatus, ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.move import Mover
from tests.unit.readiness.ready_world import ReadyWorld, statuses, values

OF_SOURCE = {
    *(CheckName.SOURCE_PARTITIONS, CheckName.TRANSLATION, CheckName.REPLICATION_LAG),
    *(CheckName.HOLES, CheckName.ACTIVE_GROUPS, CheckName.ACTIVE_PRODUCERS),
    *(CheckName.SYNCS_EMITTED, CheckName.SYNC_AGE, CheckName.JOB_CLUSTER),
}
OF_CONNECT = {
    *(CheckName.CONNECTOR_RUNNING, CheckName.TASKS_RUNNING),
    *(CheckName.MIRROR_SETTINGS, CheckName.OFFSET_LAG_MAX),
}


def _mover(world: ReadyWorld, policy: Policy) -> Mover:
    """Return a run's that moves the world's job."""
    places = {"eu": "source", "us": "target"}
    homes = [Home(cluster=at, folder=str(world.folder / name)) for at, name in places.items()]
    job = SparkJob(name="orders", homes=tuple(homes))
    return Mover(job, "mm2_failover:manual__1", policy, UPath)


def test_a_source_that_is_down_is_named_once(world: ReadyWorld) -> None:
    """What depends on it is unknown, and the rest is still asked."""
    world.simulation.source.is_running = False
    report = world.report()
    assert [check.name for check in report.failed] == [CheckName.SOURCE_REACHABLE]
    found = statuses(report)
    assert {found[name] for name in OF_SOURCE} == {CheckStatus.UNKNOWN}
    assert found[CheckName.LAG_SECONDS] is CheckStatus.OK
    assert found[CheckName.CONNECTOR_RUNNING] is CheckStatus.OK


def test_connect_that_is_down_is_named_once(world: ReadyWorld) -> None:
    """Its checks are unknown; without its URL they are not asked."""
    world.simulation.connect.is_running = False
    report = world.report()
    assert [check.name for check in report.failed] == [CheckName.CONNECT_REACHABLE]
    assert {statuses(report)[name] for name in OF_CONNECT} == {CheckStatus.UNKNOWN}


def test_a_disaster_does_not_ask_for_what_is_lost(world: ReadyWorld) -> None:
    """Source, Connect and the syncs topic are gone: from the archive, the failover can begin."""
    world.archive()
    world.simulation.source.is_running = False
    world.simulation.connect.is_running = False
    archive = str(world.folder / "archive")
    report = world.report(policy=DISASTER, archive=archive)
    assert report.problems == []
    assert report.verdict == "ready_with_warnings"
    found = statuses(report)
    assert found[CheckName.TRANSLATION] is CheckStatus.OK
    assert found[CheckName.SOURCE_REACHABLE] is CheckStatus.UNKNOWN
    assert found[CheckName.CONNECT_REACHABLE] is CheckStatus.UNKNOWN
    assert found[CheckName.REPLICATION_LAG] is CheckStatus.UNKNOWN


def test_a_disaster_begins_with_half_a_source(world: ReadyWorld) -> None:
    """One broker is gone, others answer: the positions are translated from what is left."""
    world.archive()
    world.simulation.source.leaderless = {("orders", 1)}
    archive = str(world.folder / "archive")
    report = world.report(policy=DISASTER, archive=archive)
    assert report.problems == []
    assert statuses(report)[CheckName.TRANSLATION] is CheckStatus.OK
    planned = world.report(policy=PLANNED, archive=archive)
    assert statuses(planned)[CheckName.TRANSLATION] is CheckStatus.FAILED


@pytest.mark.parametrize("answers", range(0, 28, 3))
def test_a_source_that_falls_silent_at_any_answer_stops_no_disaster(
    world: ReadyWorld, answers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was slower than the probe, or died during the check: that is told, and fails nothing."""
    world.archive()
    source, left = world.simulation.source, iter(range(answers))

    def fall_silent() -> None:
        source.is_running = next(left, None) is not None

    monkeypatch.setattr(source, "before_answer", fall_silent)
    archive = str(world.folder / "archive")
    report = world.report(policy=DISASTER, archive=archive)
    assert not source.is_running
    assert report.problems == []


def test_a_disaster_needs_the_target_and_something_to_translate_with(world: ReadyWorld) -> None:
    """Without syncs and archive there is no translation; without the target there is nothing."""
    world.simulation.source.is_running = False
    report = world.report(policy=DISASTER)
    assert [check.name for check in report.failed] == [CheckName.TRANSLATION]
    assert "no offset syncs are left" in report.problems[0]
    world.simulation.target.is_running = False
    report = world.report(policy=DISASTER)
    assert [check.name for check in report.failed] == [CheckName.TARGET_REACHABLE]


def test_a_disaster_may_have_taken_the_checkpoint(world: ReadyWorld) -> None:
    """The positions may come from elsewhere; by every other policy it is a failure."""
    gone = str(world.folder / "gone")
    for policy in POLICIES.values():
        found = statuses(world.report(policy=policy, checkpoint=gone))
        expected = CheckStatus.UNKNOWN if policy is DISASTER else CheckStatus.FAILED
        assert found[CheckName.CHECKPOINT_READABLE] is expected


def test_a_source_that_is_written_to_is_no_disaster(
    world: ReadyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ends that move say that it lives; in a planned failover that is as it should be."""
    source = world.simulation.source

    def produce() -> None:
        source.produce("orders", 0, [b"more"])

    monkeypatch.setattr(source, "before_answer", produce)
    for policy, expected in ((DISASTER, CheckStatus.WARNING), (PLANNED, CheckStatus.OK)):
        report = world.report(policy=policy)
        assert statuses(report)[CheckName.ACTIVE_PRODUCERS] is expected
        assert "have moved by" in values(report, CheckName.ACTIVE_PRODUCERS)[0]


def test_a_drill_leaves_others_alone(world: ReadyWorld) -> None:
    """It stops nothing: groups and producers are not asked for. A move stands in its way."""
    found = statuses(world.report(policy=DRILL))
    assert found[CheckName.ACTIVE_GROUPS] is CheckStatus.NOT_ASKED
    assert found[CheckName.ACTIVE_PRODUCERS] is CheckStatus.NOT_ASKED
    _mover(world, DRILL).ask()
    other = replace(_mover(world, DRILL), run="mm2_drill:manual__2")
    report = world.report(policy=DRILL, mover=other)
    assert statuses(report)[CheckName.FENCE] is CheckStatus.FAILED


def test_under_way_only_what_is_to_come_is_asked(world: ReadyWorld) -> None:
    """The run has asked the job to stop: the clusters may have changed by its own work."""
    mover = _mover(world, PLANNED)
    mover.ask()
    world.simulation.connect.state = "PAUSED"
    report = world.report(mover=mover)
    assert report.is_under_way
    assert report.problems == []
    asked = {check.name for check in report.checks if check.status is not CheckStatus.NOT_ASKED}
    assert asked == {
        *(CheckName.CHECKPOINT_READABLE, CheckName.KEPT_PLAN),
        *(CheckName.IDS_UNCHANGED, CheckName.CONNECTION),
    }


def test_a_check_changes_nothing(world: ReadyWorld) -> None:
    """No file is written but the note of ids, and that only where it is asked for."""
    world.archive()
    before = world.files()
    settings: dict[str, Any] = {
        "archive": str(world.folder / "archive"),
        "plan_path": str(world.folder / "p.json"),
    }
    for policy in POLICIES.values():
        world.report(policy=policy, **settings)
    assert world.files() == before
    world.report(note_ids=True)
    note = world.folder / "source" / "checkpoint.clusters.json"
    assert world.files().keys() - before.keys() == {note}


def test_a_wrong_connection_leaves_the_folders_to_check(world: ReadyWorld) -> None:
    """It is one problem; what storage says is told all the same."""

    def find_pair() -> None:
        raise ConfigurationError("connection mm2_default does not exist")

    report = world.report(find_pair=find_pair)  # type: ignore[arg-type]
    assert report.problems == ["connection mm2_default does not exist"]
    assert statuses(report)[CheckName.TARGET_FOLDERS] is CheckStatus.OK


def test_the_caller_s_own_checks_are_part_of_the_report(world: ReadyWorld) -> None:
    """Such as of a DAG; an error of theirs is a failure."""

    def refuse() -> list[ReadinessCheck]:
        raise ConfigurationError("Airflow does not answer")

    report = world.report(more={CheckName.TARGET_DAG: refuse})
    assert report.problems == ["Airflow does not answer"]


@pytest.mark.parametrize("days", [0, 7])
def test_the_archive_s_age(world: ReadyWorld, days: int) -> None:
    """A week old is too old; in a disaster it grows no younger, and is only told."""
    from datetime import UTC, datetime, timedelta  # noqa: PLC0415 - its runs have our real time

    world.archive()
    world.now = datetime.now(UTC) + timedelta(days=days)
    archive = str(world.folder / "archive")
    found = statuses(world.report(archive=archive))
    assert found[CheckName.ARCHIVE_AGE] is (CheckStatus.FAILED if days else CheckStatus.OK)
    found = statuses(world.report(archive=archive, policy=DISASTER))
    assert found[CheckName.ARCHIVE_AGE] is (CheckStatus.WARNING if days else CheckStatus.OK)


def test_an_archive_that_can_t_be_used(world: ReadyWorld, tmp_path: Path) -> None:
    """An empty folder is no archive, and a recreated topic is found by the archive's ids."""
    report = world.report(archive=str(tmp_path / "typo"))
    assert values(report, CheckName.ARCHIVE_READABLE) == [f"there is no archive in {tmp_path}/typo"]
    world.archive()
    world.simulation.target.topics["orders"].topic_id = "another"
    report = world.report(archive=str(world.folder / "archive"))
    (recreated,) = values(report, CheckName.TOPIC_IDS)
    assert recreated.startswith("topic orders had the ids ")
    assert "another now; it was recreated" in recreated


def test_a_damaged_archive_may_be_skipped(world: ReadyWorld) -> None:
    """Where the translation is told to: else the check would hold up what would succeed."""
    world.archive()
    world.simulation.source.produce("orders", 0, [b"more"] * 200)
    world.simulation.mirror()
    world.archive()
    folder = world.folder / "archive"
    damaged = sorted(each for each in folder.rglob("*") if each.is_file())[1]
    damaged.write_bytes(damaged.read_bytes()[:-9])
    disaster: dict[str, Any] = {"policy": DISASTER, "archive": str(folder)}
    world.simulation.source.is_running = False
    report = world.report(**disaster)
    assert statuses(report)[CheckName.ARCHIVE_READABLE] is CheckStatus.FAILED
    assert statuses(report)[CheckName.TRANSLATION] is CheckStatus.FAILED
    report = world.report(**disaster, skip_damaged=True)
    assert statuses(report)[CheckName.ARCHIVE_READABLE] is CheckStatus.OK
    assert statuses(report)[CheckName.TRANSLATION] is CheckStatus.OK


def test_a_login_in_a_location_is_not_shown(world: ReadyWorld) -> None:
    """Reports lie in XCom, logs and chats."""
    location = "memory://user:s3cret@host/folder"
    places = ("target_checkpoint", "sink", "archive", "probe_folder", "target_control", "control")
    report = world.report(**dict.fromkeys(places, location))  # type: ignore[arg-type]
    assert [check.value for check in report.checks if "s3cret" in str(check.to_json())] == []


def test_the_archive_serves_the_way_home_too(world: ReadyWorld) -> None:
    """It is of the clusters as MirrorMaker 2 copies, whichever of them the job leaves."""
    world.archive()
    archive = str(world.folder / "archive")
    found = statuses(world.report(world.pair.exchanged, archive=archive))
    assert found[CheckName.ARCHIVE_READABLE] is CheckStatus.OK
    assert found[CheckName.TOPIC_IDS] is CheckStatus.OK
    world.simulation.target.is_running = False
    found = statuses(world.report(world.pair.exchanged, archive=archive))
    assert found[CheckName.TOPIC_IDS] is CheckStatus.UNKNOWN
