"""``check``: the report on a terminal, and its exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.moves.journal import Event, Journal, Step
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


def _of_job(world: ReadyWorld, **fields: object) -> tuple[str, ...]:
    """Return the options that name a job at eu, in a file of jobs."""
    homes = {"eu": str(world.folder / "source"), "us": str(world.folder / "target")}
    job = {"name": "orders", "homes": homes, "dag": "stream", "is_controlled": False, **fields}
    file = world.folder / "jobs.json"
    file.write_text(json.dumps({"jobs": [job]}))
    return ("--job", "orders", "--jobs", str(file))


def test_a_ready_pair_ends_with_0(ready: tuple[CommandLine, ReadyWorld]) -> None:
    """Its records lie in the future here, which only warns; --strict ends with 6 for that."""
    line, world = ready
    options = _of_job(world)
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


def test_thresholds_and_policy_are_options(ready: tuple[CommandLine, ReadyWorld]) -> None:
    """A lag of more records than allowed is a failure, and in a disaster a warning."""
    line, world = ready
    world.simulation.source.produce("orders", 0, [b"more"] * 7)
    data = line.data("check", "--max-lag-records", "5", code=ExitCode.NOT_READY)
    (lag,) = [each for each in data["checks"] if each["name"] == "replication_lag"]
    assert (lag["threshold"], lag["subject"]) == ("<= 5", "orders[0]")
    assert (
        line.data("check", "--max-lag-records", "5", "--policy", "disaster")["policy"] == "disaster"
    )
    assert line.run("check", "--max-lag-records", "-1").exit_code == ExitCode.USAGE


def test_the_job_says_where_it_goes(ready: tuple[CommandLine, ReadyWorld]) -> None:
    """Folders, archive and direction are those of the job's next move, by its journal."""
    line, world = ready
    (world.folder / "target").mkdir()
    world.archive()
    named = _of_job(world, archive=str(world.folder / "archive"))
    data = line.data("check", *named)
    assert _check(data, "target_folders")["value"] == f"{world.folder}/target/checkpoint is free"
    assert _check(data, "archive_readable")["status"] == "ok"
    assert _check(data, "fence")["status"] == "ok"
    journal = Journal(UPath(world.folder / "source" / "journals" / "orders"))
    journal.record(Step(event=Event.ASK, run="dag:run", home=str(world.folder / "source")))
    moving = line.data("check", *named, code=ExitCode.NOT_READY)
    values = [each["value"] for each in moving["checks"] if each["name"] == "fence"]
    assert any("'dag:run' stops the job at" in value for value in values)


def test_a_job_of_other_clusters_is_refused(ready: tuple[CommandLine, ReadyWorld]) -> None:
    """The settings are not of its clusters; a job without its file is a wrong argument."""
    line, world = ready
    homes = {"eu": str(world.folder / "source"), "asia": str(world.folder / "target")}
    named = ("check", *_of_job(world, homes=homes))
    value = _check(line.data(*named, code=ExitCode.NOT_READY), "connection")["value"]
    assert "goes from 'eu' to 'asia', and the settings have the aliases 'eu' and 'us'" in value
    assert "give --job with --jobs FILE" in line.error(*named[:3], code=ExitCode.USAGE)


def _check(data: Any, name: str) -> Any:  # noqa: ANN401 - JSON
    (found,) = [each for each in data["checks"] if each["name"] == name]
    return found


def test_what_stands_in_for_a_checkpoint_is_looked_at(
    ready: tuple[CommandLine, ReadyWorld],
) -> None:
    """Positions as JSON, in a disaster; folders without saved positions are refused."""
    line, world = ready
    (world.folder / "source").rename(world.folder / "lost")
    lost = ("--policy", "disaster", *_of_job(world))
    positions = ("--positions", '{"orders": {"0": 4, "1": 6}}')
    data = line.data("check", *lost, *positions)
    assert _check(data, "checkpoint_readable")["status"] == "warning"
    saved = _of_job(world, saved_positions=str(world.folder / "saved"))
    data = line.data("check", *lost, *saved, code=ExitCode.NOT_READY)
    assert "no saved positions" in _check(data, "checkpoint_readable")["value"]
    assert "must be JSON" in line.error("check", *lost, "--positions", "{", code=ExitCode.USAGE)


def test_positions_count_where_no_job_is_named(
    ready: tuple[CommandLine, ReadyWorld],
) -> None:
    """They are translated; a wrong one is no less wrong. Beside a job they are refused."""
    line, world = ready
    positions = ("--positions", '{"orders": {"0": 4, "1": 6}}')
    data = line.data("check", *positions)
    assert _check(data, "translation")["status"] == "ok"
    beyond = ("--positions", '{"orders": {"0": 4, "1": 7000}}')
    data = line.data("check", *beyond, code=ExitCode.NOT_READY)
    assert _check(data, "translation")["status"] == "failed"
    error = line.error("check", *positions, *_of_job(world), code=ExitCode.USAGE)
    assert "--positions" in error
    assert "leave them or --job out" in error


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
