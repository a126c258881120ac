"""The command line beside two clusters in the test's own process."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from airflow_mm2_offsets.cli.app import app
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from tests.support.pairs import Pair


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """Runs commands with the settings of a pair."""

    pair: Pair
    config: Path

    def run(self, *arguments: str, text: str | None = None, **environ: str | None) -> Result:
        """Run one, with ``text`` on stdin."""
        variables = {"MM2_OFFSETS_CONFIG": str(self.config)} | environ
        return CliRunner().invoke(app, arguments, input=text, env=variables)

    def data(self, *arguments: str, code: ExitCode = ExitCode.OK) -> Any:  # noqa: ANN401 - JSON
        """Return what one answers with --json; nothing else may be on stdout."""
        result = self.run(*arguments, "--json")
        assert result.exit_code == code, result.stderr
        return json.loads(result.stdout)

    def error(self, *arguments: str, code: ExitCode, **environ: str | None) -> str:
        """Return what one that fails says: it stands on stderr alone."""
        result = self.run(*arguments, **environ)
        assert result.exit_code == code
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        return result.stderr


def settings_text(source: str, target: str) -> str:
    """Return the settings of ``Pair`` for clusters at these addresses."""
    return f"""\
source.alias = "a"
target.alias = "b"
replication.policy = "identity"
offset-syncs.topic.location = "target"
source.bootstrap.servers = "{source}"
target.bootstrap.servers = "{target}"
"""


@pytest.fixture
def line(tmp_path: Path) -> CommandLine:
    """Return a command line; every third record of orders[0] was dropped on the way."""
    pair = Pair()
    pair.write("orders", range(100))
    pair.copy("orders", [number for number in range(100) if number % 3])
    pair.sync("orders", (1, 0), (40, 26), (70, 46), (98, 65))
    pair.filter()
    config = tmp_path / "mm2.toml"
    text = settings_text(pair.source.bootstrap_servers, pair.target.bootstrap_servers)
    config.write_text(f'{text}connect.url = "{pair.simulation.connect.url}"\n')
    return CommandLine(pair=pair, config=config)
