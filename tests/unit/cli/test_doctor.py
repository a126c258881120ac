"""``doctor``: the answer on a terminal, its exit codes, and which settings it reads."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.cli.exit_codes import ExitCode
from tests.unit.cli.conftest import CommandLine, settings_text
from tests.unit.doctor.test_live_rules import SOUND, SYNCS
from tests.unit.readiness.ready_world import ReadyWorld


@pytest.fixture
def sound(tmp_path: Path) -> tuple[CommandLine, ReadyWorld]:
    """A command line beside a world in which all is well, and an archive is named."""
    world = ReadyWorld(folder=tmp_path)
    connect = world.simulation.connect
    connect.config = {**connect.config, **SOUND}
    world.simulation.source.topics[SYNCS].settings["cleanup.policy"] = "compact"
    servers = world.simulation.source.bootstrap_servers, world.simulation.target.bootstrap_servers
    text = settings_text(*servers).replace('"a"', '"eu"').replace('"b"', '"us"')
    text = text.replace('location = "target"', 'location = "source"')
    config = tmp_path / "mm2.toml"
    config.write_text(f'{text}connect.url = "{connect.url}"\narchive = "{tmp_path}/archive"\n')
    return CommandLine(pair=None, config=config), world  # type: ignore[arg-type] # not asked for


def flow(world: ReadyWorld, *lines: str) -> str:
    """Return an mm2.properties of the world."""
    source, target = world.simulation.source, world.simulation.target
    return "\n".join(
        [
            "clusters = eu, us",
            f"eu.bootstrap.servers = {source.bootstrap_servers}",
            f"us.bootstrap.servers = {target.bootstrap_servers}",
            "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
            *lines,
        ]
    )


def test_a_sound_set_up_ends_with_0(sound: tuple[CommandLine, ReadyWorld]) -> None:
    """The connector that Connect runs is examined; nothing is written."""
    line, world = sound
    before = world.files()
    result = line.run("doctor")
    assert result.exit_code == ExitCode.OK
    assert result.stdout.startswith(
        "errors: 0, warnings: 0, notes: 0. Examined: settings of mirror"
    )
    assert world.files() == before


def test_an_error_ends_with_7_and_a_warning_with_0(sound: tuple[CommandLine, ReadyWorld]) -> None:
    """The finding stands on stdout with what to do."""
    line, world = sound
    connect = world.simulation.connect
    connect.config = {**connect.config, "replication.factor": "1"}
    assert line.data("doctor")["totals"] == {"error": 0, "warning": 1, "note": 0}
    world.simulation.source.topics[SYNCS].settings["cleanup.policy"] = "delete"
    result = line.run("doctor")
    assert result.exit_code == ExitCode.UNSOUND
    assert f"--entity-name {SYNCS} --add-config cleanup.policy=compact" in result.stdout


def test_a_file_of_mirrormaker_is_examined_with_its_clusters(
    sound: tuple[CommandLine, ReadyWorld],
) -> None:
    """The file's flow is judged, and the clusters that it names are asked."""
    line, world = sound
    file = world.folder / "mm2.properties"
    file.write_text(flow(world, "eu->us.enabled = true", "eu->us.errors.tolerance = all"))
    data = line.data("doctor", "--config", str(file), "--archive", "x", code=ExitCode.UNSOUND)
    found = {each["check"]: each["value"] for each in data["findings"]}
    assert found["errors_tolerated"] == "errors.tolerance = all in eu->us"
    assert "connection" not in found
    assert data["examined"] == [
        "settings of eu->us",
        "login of the source",
        "login of the target",
        "topics of both clusters",
    ]


def test_two_ways_without_a_choice_are_examined_and_told(
    sound: tuple[CommandLine, ReadyWorld],
) -> None:
    """Without a choice no cluster can be asked: an error, but for --offline."""
    line, world = sound
    file = world.folder / "mm2.properties"
    file.write_text(flow(world, "eu->us.enabled = true", "us->eu.enabled = true"))
    options = ("doctor", "--config", str(file), "--archive", "x")
    data = line.data(*options, code=ExitCode.UNSOUND)
    errors = {
        each["check"]: each["value"] for each in data["findings"] if each["severity"] == "error"
    }
    assert "eu->us, us->eu" in errors["settings_unusable"]
    assert errors["loop"].endswith("both copy topics = .* under their own names")
    data = line.data(*options, "--offline", code=ExitCode.UNSOUND)
    assert "settings_unusable" not in {each["check"] for each in data["findings"]}
    assert "eu->us, us->eu" in data["skipped"][0]


def test_a_policy_that_a_variable_explains_is_no_error(
    sound: tuple[CommandLine, ReadyWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``MM2_OFFSETS_REPLICATION_POLICY`` tells what a class of one's own names topics like."""
    line, world = sound
    file = world.folder / "mm2.properties"
    policy = "replication.policy.class = com.example.KeepNames"
    file.write_text(flow(world, "eu->us.enabled = true", policy))
    options = ("doctor", "--config", str(file), "--archive", "x", "--offline")
    data = line.data(*options, code=ExitCode.UNSOUND)
    assert data["findings"][0]["check"] == "policy_unknown"
    monkeypatch.setenv("MM2_OFFSETS_REPLICATION_POLICY", "identity")
    assert "policy_unknown" not in {each["check"] for each in line.data(*options)["findings"]}


def test_a_file_without_anything_to_examine_is_refused(
    sound: tuple[CommandLine, ReadyWorld],
) -> None:
    """An empty diagnosis would read as a clean bill of health."""
    line, world = sound
    file = world.folder / "mm2.properties"
    file.write_text(flow(world))
    message = line.error("doctor", "--config", str(file), "--offline", code=ExitCode.USAGE)
    assert "not exactly one is enabled" in message
    wrong = world.folder / "wrong.toml"
    wrong.write_text('source.alias = "eu"')
    message = line.error("doctor", "--config", str(wrong), code=ExitCode.USAGE)
    assert "source.bootstrap.servers" in message


def test_no_secret_of_the_file_is_shown(sound: tuple[CommandLine, ReadyWorld]) -> None:
    """Not in text, not in JSON, and not by --debug."""
    line, world = sound
    file = world.folder / "mm2.properties"
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    file.write_text(
        flow(
            world,
            "eu->us.enabled = true",
            "security.protocol = SASL_PLAINTEXT",
            "sasl.mechanism = PLAIN",
            f'sasl.jaas.config = {plain} username="me" password="s3cr3t-canary";',
            "eu->us.transforms = t",
            "eu->us.transforms.t.type = com.example.Sign$Value",
            "eu->us.transforms.t.key = s3cr3t-canary",
        )
    )
    for options in ((), ("--json",), ("--debug",)):
        result = line.run("doctor", "--config", str(file), "--offline", *options)
        assert result.exit_code == ExitCode.UNSOUND
        assert "plaintext_login" in result.stdout
        assert "records_changed" in result.stdout
        assert "s3cr3t-canary" not in result.stdout + result.stderr
