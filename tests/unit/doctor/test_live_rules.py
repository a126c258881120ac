"""What the clusters and Connect say of themselves, and what is made of it all."""

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.doctor import Diagnosis, DoctorRequest, Severity, diagnose
from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector
from airflow_mm2_offsets.planning.topic_settings import shorter_retention
from tests.unit.readiness.ready_world import HEARTBEATS, ReadyWorld

SYNCS = "mm2-offset-syncs.us.internal"
SOUND = {
    "source.consumer.isolation.level": "read_committed",
    "producer.override.enable.idempotence": "true",
    "tasks.max": "4",
    **dict.fromkeys(("key.converter", "value.converter", "header.converter"), "ByteArrayConverter"),
}


@pytest.fixture
def world(tmp_path: Path) -> ReadyWorld:
    """Two clusters between which all is well, and a connector without a fault."""
    world = ReadyWorld(folder=tmp_path)
    connect = world.simulation.connect
    connect.config = {**connect.config, **SOUND}
    world.simulation.source.topics[SYNCS].settings["cleanup.policy"] = "compact"
    return world


def examine(world: ReadyWorld, pair: ClusterPair | None = None, **request: object) -> Diagnosis:
    defaults = {"pair": pair or world.pair, "has_archive": True}
    return diagnose(DoctorRequest(**{**defaults, **request}))  # type: ignore[arg-type] # as given


def findings(diagnosis: Diagnosis) -> list[str]:
    return [f"{each.check}: {each.value}" for each in diagnosis.findings]


def test_a_sound_pair_has_no_finding(world: ReadyWorld) -> None:
    """The running connector's settings, both logins and both clusters were examined."""
    before = repr(world.simulation.source.topics), repr(world.simulation.target.topics)
    diagnosis = examine(world)
    assert findings(diagnosis) == []
    assert diagnosis.examined == (
        "settings of mirror",
        "login of the source",
        "login of the target",
        "topics of both clusters",
    )
    assert diagnosis.skipped == ()
    assert (repr(world.simulation.source.topics), repr(world.simulation.target.topics)) == before


def test_a_syncs_topic_that_deletes_or_has_one_replica_is_found(world: ReadyWorld) -> None:
    """Both are Kafka's own settings of the topic, whatever the connector says."""
    topic = world.simulation.source.topics[SYNCS]
    topic.settings |= {"cleanup.policy": "compact,delete", "retention.ms": "604800000"}
    topic.replicas = 1
    deleted, replicas = findings(examine(world))
    assert deleted == (
        f"syncs_deleted: topic {SYNCS} on the source has cleanup.policy=compact,delete and "
        "retention.ms=604800000"
    )
    assert replicas == f"syncs_topic_replicas: topic {SYNCS} on the source has 1 replica"


def test_a_shorter_retention_is_found_on_either_side(world: ReadyWorld) -> None:
    """On the target a lagging job loses its place; on the source proof and copies are lost."""
    world.simulation.target.topics["orders"].settings["retention.ms"] = "1000"
    (finding,) = examine(world).findings
    assert (finding.severity, finding.check) == (Severity.WARNING, "retention_shorter_on_target")
    assert finding.value == "retention.ms is 1000 for orders on the target, and -1 on the source"
    assert "--entity-name orders --add-config retention.ms=-1 on the target" in finding.remedy
    world.simulation.target.topics["orders"].settings["retention.ms"] = "3000"
    world.simulation.source.topics["orders"].settings["retention.ms"] = "2000"
    (finding,) = examine(world).findings
    assert (finding.severity, finding.check) == (Severity.NOTE, "retention_shorter_on_source")


def test_a_compacted_topic_has_no_retention() -> None:
    """``retention.ms`` counts only where ``cleanup.policy`` has ``delete``."""
    short, long = {"retention.ms": "5"}, {"retention.ms": "9"}
    assert shorter_retention(short, long) == {"retention.ms": ("5", "9")}
    assert shorter_retention(long, short) == {}
    assert shorter_retention(short | {"cleanup.policy": "compact"}, long) == {}
    assert shorter_retention(short, long | {"cleanup.policy": "compact"}) == {
        "retention.ms": ("5", "-1")
    }
    assert shorter_retention({}, {}) == {}


def test_stamped_copies_are_listed_and_counted(world: ReadyWorld) -> None:
    """Ten topics are named, the others counted."""
    for number in range(12):
        for cluster in (world.simulation.source, world.simulation.target):
            cluster.create_topic(f"t{number:02}")
        world.simulation.target.topics[f"t{number:02}"].log_append_time = True
    found = findings(examine(world, topics=[f"t{number:02}" for number in range(12)]))
    assert len(found) == 11
    assert found[0] == (
        "log_append_time: topic t00 on the target has message.timestamp.type=LogAppendTime"
    )
    assert found[-1] == "log_append_time: the same of 2 more topics"


def test_missing_heartbeats_are_found_once(world: ReadyWorld) -> None:
    """Where the settings say why, the missing topic is not told again."""
    world.simulation.target.delete_topic(HEARTBEATS)
    assert findings(examine(world)) == [f"heartbeats_missing: the target has no topic {HEARTBEATS}"]
    connect = world.simulation.connect
    connect.config = {**connect.config, "heartbeats.replication.enabled": "false"}
    (found,) = findings(examine(world))
    assert found == "no_heartbeats: heartbeats.replication.enabled = false in mirror"


@pytest.mark.parametrize(
    ("version", "is_old"),
    [("3.4.1", True), ("3.6.2", True), ("3.7.0", False), ("3.10.0", False), ("4.3.1", False)],
)
def test_an_old_mirrormaker_is_found(
    world: ReadyWorld, monkeypatch: pytest.MonkeyPatch, version: str, *, is_old: bool
) -> None:
    """Measured: before 3.7 an idle topic's last sync stays where it was (KAFKA-15906)."""
    client = type(world.simulation.connect.client())
    monkeypatch.setattr(client, "check", lambda _: version)
    found = findings(examine(world))
    assert found == ([f"mirrormaker_old: Kafka Connect is {version}"] if is_old else [])


def test_a_part_that_fails_is_an_error(world: ReadyWorld) -> None:
    """One cluster twice is found by the walk of check-connection, by their ids."""
    pair = world.pair
    diagnosis = examine(world, replace(pair, target=replace(pair.source, name="target")))
    assert diagnosis.has_errors
    assert "connection: source and target: source and target are the same cluster" in "\n".join(
        findings(diagnosis)
    )


def test_a_silent_cluster_is_asked_once(world: ReadyWorld) -> None:
    """What depends on it is skipped, and said to be; settings are examined all the same."""
    world.simulation.source.is_running = False
    connect = world.simulation.connect
    connect.config = {**connect.config, "replication.factor": "1"}
    diagnosis = examine(world)
    assert diagnosis.has_errors
    assert diagnosis.findings[-1].check == "replication_factor"
    assert diagnosis.skipped == ("topics of the clusters: a cluster does not answer",)


def test_a_connect_that_does_not_answer_leaves_the_settings_out(world: ReadyWorld) -> None:
    """It is an error of the connection, and the reason is told."""
    world.simulation.connect.is_running = False
    diagnosis = examine(world)
    assert {each.check for each in diagnosis.findings} == {"connection"}
    assert any(
        each.startswith("the connector's settings: Connect at") for each in diagnosis.skipped
    )


def test_offline_asks_nobody(world: ReadyWorld) -> None:
    """Neither clusters nor Connect; the settings of a file and the logins are left."""
    for part in (world.simulation.source, world.simulation.target, world.simulation.connect):
        part.is_running = False
    diagnosis = examine(world, offline=True)
    assert diagnosis.findings == ()
    assert diagnosis.skipped == (
        "the connector's settings: Connect was not asked, and no file has them",
    )
    connector = MirrorConnector(name="eu->us", config={**SOUND, "errors.tolerance": "all"})
    (found,) = findings(examine(world, offline=True, connectors=[connector]))
    assert found == "errors_tolerated: errors.tolerance = all in eu->us"


def test_the_worst_comes_first_in_text_and_json(world: ReadyWorld) -> None:
    """Severity, rule, value, why and remedy; then what was examined."""
    connect = world.simulation.connect
    connect.config = {**connect.config, "tasks.max": "1", "errors.tolerance": "all"}
    diagnosis = examine(world)
    text, data = diagnosis.to_text(), diagnosis.to_json()
    assert text.startswith("error    errors_tolerated: errors.tolerance = all in mirror\n")
    assert "\n         Do: errors.tolerance = none\n\nnote     one_task: " in text
    assert text.splitlines()[-1].startswith("errors: 1, warnings: 0, notes: 1. Examined: settings")
    assert data["totals"] == {"error": 1, "warning": 0, "note": 1}
    assert [each["check"] for each in data["findings"]] == ["errors_tolerated", "one_task"]
    assert set(data["findings"][0]) == {"severity", "check", "value", "why", "remedy"}
