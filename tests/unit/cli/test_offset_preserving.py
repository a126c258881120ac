"""The command line with ``mapping = identity``: no command asks for Connect or a syncs topic."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.testing import in_memory_clients
from tests.support.copies import Copies, entries_of, numbered
from tests.unit.cli.conftest import CommandLine, settings_text

RECORDS = entries_of([numbered(number) for number in range(20)])
POSITIONS = ("--positions", '{"orders": {"0": 7}}')


@pytest.fixture
def kept(line: CommandLine, tmp_path: Path) -> Iterator[CommandLine]:
    """Return a command line whose pair is an identical copy."""
    with in_memory_clients():
        copies = Copies().fill(RECORDS, RECORDS)
        config = tmp_path / "identity.toml"
        servers = (copies.source.bootstrap_servers, copies.target.bootstrap_servers)
        config.write_text(f'mapping = "identity"\n{settings_text(*servers)}')
        yield replace(line, config=config)


def test_positions_are_translated(kept: CommandLine) -> None:
    """By translate and plan, and the forecast goes on from it."""
    assert kept.data("translate", "orders:0:7")["partitions"][0]["status"] == "exact"
    assert kept.data("plan", *POSITIONS)["mapping"] == "identity"
    forecast = kept.data("forecast", *POSITIONS, "--policy", "planned")
    assert forecast["totals"]["at_risk"] == {"at_least": 0, "at_most": 0}
    assert "The copies keep offsets and order" in " ".join(forecast["assumptions"])


def test_nothing_asks_for_mirror_maker(kept: CommandLine) -> None:
    """Neither the way to the clusters, nor doctor, nor the check."""
    parts = {each["part"].split(":")[0] for each in kept.data("check-connection")["parts"]}
    assert parts == {"source", "target"}
    findings = kept.data("doctor")["findings"]
    assert findings == []
    checks = kept.data("check", *POSITIONS, code=ExitCode.OK)["checks"]
    failed = [each for each in checks if each["status"] in {"failed", "unknown"}]
    assert {each["name"] for each in failed} <= {"checkpoint", "lag_seconds", "clocks"}


def test_what_is_about_syncs_is_refused(kept: CommandLine, tmp_path: Path) -> None:
    """With the setting that says why."""
    for command in (("syncs",), ("archive", "run", str(tmp_path / "syncs"))):
        error = kept.error(*command, code=ExitCode.USAGE)
        assert "there is no offset-syncs topic" in error
    error = kept.error("plan", *POSITIONS, "--archive", str(tmp_path), code=ExitCode.USAGE)
    assert "archive" in error
    assert "the copy keeps offsets" in error
