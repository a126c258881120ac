"""docs/start.md and README.md: what a first reader copies works."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from airflow_mm2_offsets.cli.app import app
from airflow_mm2_offsets.config import load_settings
from docsite.pages import ROOT

START = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ airflow-mm2-offsets (.+)$", START + README, re.MULTILINE)


def test_the_settings_file_names_both_clusters(tmp_path: Path) -> None:
    """The TOML of step 2 is read without a variable, and the syncs topic is MirrorMaker 2's."""
    file = tmp_path / "mm2.toml"
    file.write_text(re.findall(r"```toml\n(.*?)```", START, re.DOTALL)[0])
    settings = load_settings(file, {})
    assert settings.source["bootstrap.servers"] == "east-1:9092"
    assert settings.target["bootstrap.servers"] == "west-1:9092"
    assert settings.pair().syncs_topic == "mm2-offset-syncs.west.internal"


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_and_their_options_exist(command: str) -> None:
    """Each command of the pages exists, with each option that they give it."""
    name, *arguments = shlex.split(command)
    helped = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"})
    assert helped.exit_code == 0, helped.output
    for option in (each for each in arguments if each.startswith("--")):
        assert re.search(rf"{option}\b", helped.stdout), option
