"""``check``: the report on a terminal, and its exit codes."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.planning.options import PLAN_OPTIONS
from airflow_mm2_offsets.readiness import ReadinessRequest
from tests.unit.cli.conftest import CommandLine, settings_text
from tests.unit.readiness.ready_world import ReadyWorld


@pytest.fixture
def ready(tmp_path: Path) -> tuple[CommandLine, ReadyWorld]:
    """A command line beside a world in which all is well."""
    world = ReadyWorld(folder=tmp_path)
    simulation = world.simulation
    servers = (simulation.source.bootstrap_servers, simulation.target.bootstrap_servers)
    text = settings_text(*servers).replace('"a"', '"eu"').replace('"b"', '"us"')
    text = text.replace('location = "target"', 'location = "source"')
    config = tmp_path / "mm2.toml"
    config.write_text(f'{text}connect.url = "{simulation.connect.url}"\n')
    return CommandLine(pair=None, config=config), world  # type: ignore[arg-type] # not asked for


def test_a_ready_pair_ends_with_0(ready: tuple[CommandLine, ReadyWorld]) -> None:
    """Its records lie in the future here, which only warns; --strict ends with 6 for that."""
    line, world = ready
    options = ("--checkpoint", str(world.folder / "source" / "checkpoint"))
    before = world.files()
    data = line.data("check", *options)
    assert data["verdict"] == "ready_with_warnings"
    assert [each["name"] for each in data["checks"] if each["status"] == "warning"] == ["clocks"]
    result = line.run("check", *options, "--strict")
    assert result.exit_code == ExitCode.WARNINGS
    assert result.stdout.startswith("READY WITH WARNINGS for planned, as of ")
    assert world.files() == before


def test_a_pair_that_is_not_ready_ends_with_5(ready: tuple[CommandLine, ReadyWorld]) -> None:
    """What has failed is on stdout with what to do; --json has it by its name."""
    line, world = ready
    world.simulation.connect.state = "PAUSED"
    result = line.run("check")
    assert result.exit_code == ExitCode.NOT_READY
    assert "connector_running: resume it (PUT /connectors/mirror/resume)" in result.stdout
    data = line.data("check", "--strict", code=ExitCode.NOT_READY)
    failed = [each["name"] for each in data["checks"] if each["status"] == "failed"]
    assert failed == ["connector_running"]


def test_thresholds_and_mode_are_options(ready: tuple[CommandLine, ReadyWorld]) -> None:
    """A lag of more records than allowed is a failure, and in a disaster a warning."""
    line, world = ready
    world.simulation.source.produce("orders", 0, [b"more"] * 7)
    data = line.data("check", "--max-lag-records", "5", code=ExitCode.NOT_READY)
    (lag,) = [each for each in data["checks"] if each["name"] == "replication_lag"]
    assert (lag["threshold"], lag["subject"]) == ("<= 5", "orders[0]")
    assert line.data("check", "--max-lag-records", "5", "--mode", "disaster")["mode"] == "disaster"
    assert line.run("check", "--max-lag-records", "-1").exit_code == ExitCode.USAGE


def test_a_list_of_topics_is_compared_with_the_longest_argument(
    ready: tuple[CommandLine, ReadyWorld],
) -> None:
    """A terminal has not Airflow's configuration: the size is an option."""
    line, world = ready
    job = ("check", "--checkpoint", str(world.folder / "source" / "checkpoint"))
    found = _check(line.data(*job), "topic_list")
    assert (found["status"], found["value"]) == ("not_asked", "no argument_max_bytes is given")
    assert _check(line.data(*job, "--argument-max-bytes", "9"), "topic_list")["status"] == "ok"
    data = line.data(*job, "--argument-max-bytes", "5", code=ExitCode.NOT_READY)
    assert "the list of the 1 topics on the target has" in _check(data, "topic_list")["value"]


def test_what_the_check_looks_at_is_an_option(ready: tuple[CommandLine, ReadyWorld]) -> None:
    """Each field of a request but those of a run can be given on a terminal."""
    line, _ = ready
    # The plan's file is --kept-plan, and the drill's folders are ``more``.
    of_a_run = {"find_pair", "open", "thresholds", "request_id", "note_ids", "now"}
    names = (
        {each.name for each in fields(ReadinessRequest)}
        - of_a_run
        - {"plan_path", "more", "plan_options"}
    )
    shown = line.run("check", "--help", COLUMNS="300").stdout
    names |= set(PLAN_OPTIONS)
    expected = {f"--{name.replace('_', '-')}" for name in names}
    others = {"--kept-plan", "--drill-folder", "--drill-sinks", "--reports", "--exchanged"}
    assert not [each for each in expected | others if each not in shown]


def _check(data: Any, name: str) -> Any:  # noqa: ANN401 - JSON
    (found,) = [each for each in data["checks"] if each["name"] == name]
    return found


def test_a_drill_folder_is_looked_at(ready: tuple[CommandLine, ReadyWorld]) -> None:
    """One in the job's folder would be removed with it; without one nothing is asked."""
    line, world = ready
    source = world.folder / "source"
    options = ("--mode", "drill", "--checkpoint", str(source / "checkpoint"))
    assert _check(line.data("check", *options), "drill_folders")["status"] == "not_asked"
    apart = ("--drill-folder", str(world.folder / "drill"))
    assert _check(line.data("check", *options, *apart), "drill_folders")["status"] == "ok"
    within = ("--drill-folder", str(source / "drill"))
    data = line.data("check", *options, *within, code=ExitCode.NOT_READY)
    assert "holds the source folder" in _check(data, "drill_folders")["value"]
    sinks = ("--drill-sinks", "a-topic")
    data = line.data("check", *options, *apart, *sinks, code=ExitCode.NOT_READY)
    assert "the job writes to a-topic" in _check(data, "drill_folders")["value"]
    honoured = (*options, *apart, *sinks, "--honours-drill")
    assert _check(line.data("check", *honoured), "drill_folders")["status"] == "ok"


def test_what_stands_in_for_a_checkpoint_is_looked_at(
    ready: tuple[CommandLine, ReadyWorld],
) -> None:
    """Positions as JSON, in a disaster; folders without saved positions are refused."""
    line, world = ready
    lost = ("--mode", "disaster", "--checkpoint", str(world.folder / "lost"))
    positions = ("--positions", '{"orders": {"0": 4, "1": 6}}')
    data = line.data("check", *lost, *positions)
    assert _check(data, "checkpoint_readable")["status"] == "warning"
    saved = ("--saved-positions", str(world.folder / "saved"))
    data = line.data("check", *lost, *saved, code=ExitCode.NOT_READY)
    assert "no saved positions" in _check(data, "checkpoint_readable")["value"]
    assert "must be JSON" in line.error("check", *lost, "--positions", "{", code=ExitCode.USAGE)


def test_positions_count_where_no_checkpoint_is_given(
    ready: tuple[CommandLine, ReadyWorld],
) -> None:
    """They are translated; a wrong one is no less wrong. Beside a checkpoint they are refused."""
    line, world = ready
    positions = ("--positions", '{"orders": {"0": 4, "1": 6}}')
    data = line.data("check", *positions)
    assert _check(data, "translation")["status"] == "ok"
    beyond = ("--positions", '{"orders": {"0": 4, "1": 7000}}')
    data = line.data("check", *beyond, code=ExitCode.NOT_READY)
    assert _check(data, "translation")["status"] == "failed"
    checkpoint = ("--checkpoint", str(world.folder / "source" / "checkpoint"))
    error = line.error("check", *positions, *checkpoint, code=ExitCode.USAGE)
    assert "--positions" in error
    assert "leave them or --checkpoint out" in error


def test_what_could_not_be_asked_is_no_problem_of_its_own(
    ready: tuple[CommandLine, ReadyWorld],
) -> None:
    """The step is about what kept it from being asked, and not about what it might have found."""
    line, _ = ready
    data = line.data("check")
    assert _check(data, "kept_plan")["status"] == "not_asked"
    retention = _check(data, "target_retention")
    assert retention["status"] == "unknown"
    assert retention["remedy"] == "give a checkpoint that can be read, or the positions themselves"
