"""What every command has around it."""

import json
import re
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from airflow_mm2_offsets import __version__, connection_check
from airflow_mm2_offsets.cli.app import app
from airflow_mm2_offsets.cli.exit_codes import EXIT_CODES, ExitCode, exit_code
from airflow_mm2_offsets.errors import Mm2OffsetsError
from tests.support.pairs import STOPPED
from tests.unit.cli.conftest import CommandLine
from tests.unit.operators.clusters import Clusters

COMMANDS = (
    "translate",
    "plan",
    "syncs",
    "check-connection",
    "checkpoint show",
    "archive run",
    "archive show",
    "serve",
)


def _kinds(kind: type[Mm2OffsetsError]) -> Iterator[type[Mm2OffsetsError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)


def test_the_help_lists_every_exit_code() -> None:
    """And no other; each error has one of them."""
    listed = {int(code) for code in re.findall(r"(?:^|; ) *(\d+)\b", EXIT_CODES, re.MULTILINE)}
    assert listed == set(ExitCode)
    shown = CliRunner().invoke(app, "-h").stdout
    assert EXIT_CODES in re.sub(r"^  ", "", shown, flags=re.MULTILINE)
    for kind in _kinds(Mm2OffsetsError):
        assert exit_code(kind.__new__(kind)) in {1, 2, 3, 4}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    """The example is a call of that command."""
    shown = CliRunner().invoke(app, [*command.split(), "--help"])
    assert shown.exit_code == ExitCode.OK
    assert f"\n    airflow-mm2-offsets {command} " in shown.stdout
    assert "--debug" in shown.stdout


def test_the_version_is_told() -> None:
    """As ``--version`` everywhere."""
    shown = CliRunner().invoke(app, "--version")
    assert shown.stdout == f"airflow-mm2-offsets {__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_the_commands(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a shell's completion asks for is answered with the commands."""
    monkeypatch.setenv("COMP_WORDS", "airflow-mm2-offsets tr")
    monkeypatch.setenv("COMP_CWORD", "tr" if shell == "fish" else "1")
    monkeypatch.setenv("_AIRFLOW_MM2_OFFSETS_COMPLETE", f"{shell}_complete")
    shown = CliRunner().invoke(app, prog_name="airflow-mm2-offsets")
    assert "translate" in shown.stdout
    assert "syncs" not in shown.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_what_a_shell_reads_in(shell: str) -> None:
    """It names the variable by which the shell then asks; another shell is refused."""
    shown = CliRunner().invoke(app, ["completion", shell], prog_name="airflow-mm2-offsets")
    assert shown.exit_code == ExitCode.OK
    assert f"_AIRFLOW_MM2_OFFSETS_COMPLETE={shell}_complete" in shown.stdout
    other = CliRunner().invoke(app, ["completion", f"{shell}2"])
    assert other.exit_code == ExitCode.USAGE
    assert "is not one of 'bash', 'zsh', 'fish'" in other.stderr


def test_a_cluster_that_is_down_is_code_3(line: CommandLine) -> None:
    """The message names the address; nothing is on stdout."""
    address = STOPPED.bootstrap_servers
    down = {"MM2_OFFSETS_TARGET_BOOTSTRAP_SERVERS": address}
    error = line.error("syncs", "--timeout", "0.5", code=ExitCode.UNREACHABLE, **down)
    assert error.startswith(f"Error: target (bootstrap.servers={address}): did not answer")


@pytest.mark.parametrize(
    ("environ", "hint"),
    [
        ({"MM2_OFFSETS_CONFIG": None}, "Name the settings file by --config FILE"),
        ({"MM2_OFFSETS_CONFIG": "nowhere.toml"}, "nowhere.toml: can't be read"),
        ({"MM2_OFFSETS_REPLICATION_POLICY": "same"}, "MM2_OFFSETS_REPLICATION_POLICY: is 'same'"),
    ],
)
def test_wrong_settings_are_code_2(
    line: CommandLine, environ: dict[str, str | None], hint: str
) -> None:
    """The setting is named, and where it stands."""
    assert hint in line.error("syncs", code=ExitCode.USAGE, **environ)


def test_an_error_is_json_too(line: CommandLine) -> None:
    """With --json, stdout has the error with its fields; stderr and the code are the same."""
    given = ("plan", "--positions", "nowhere.json")
    message = line.error(*given, code=ExitCode.USAGE)
    shown = line.run(*given, "--json")
    assert (shown.exit_code, shown.stderr) == (ExitCode.USAGE, message)
    assert json.loads(shown.stdout) == {
        "error": {
            "kind": "ConfigurationError",
            "message": message.removeprefix("Error: ").strip(),
            "setting": "--positions",
        }
    }


def test_a_defect_is_told_as_one(line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code 70 and one line; --debug shows the traceback."""

    def fail(*_args: object) -> None:
        raise KeyError("orders")

    monkeypatch.setattr(connection_check, "check_connection", fail)
    error = line.error("check-connection", code=ExitCode.DEFECT)
    assert error == "Error: KeyError: 'orders'; this is a defect: report what --debug shows\n"
    shown = line.run("check-connection", "--debug")
    assert "Traceback" in shown.stderr
    assert shown.stderr.endswith(error)


@pytest.mark.parametrize(("environ", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_is_for_terminals_that_want_it(
    line: CommandLine, environ: dict[str, str], *, coloured: bool
) -> None:
    """Where a terminal is claimed, words that decide have colour, but for NO_COLOR."""
    shown = line.run("translate", "orders:0:50", FORCE_COLOR="1", **environ)
    assert ("\x1b[32mexact\x1b[0m" in shown.stdout) is coloured
    assert ("\x1b" in shown.stdout) is coloured


def test_clusters_come_from_an_airflow_connection(clusters: Clusters) -> None:
    """With --conn-id, a connection of type mm2 says where they are."""
    assert clusters
    shown = CliRunner().invoke(app, ["translate", "orders:0:4", "--conn-id", "mm2_default"])
    assert shown.exit_code == ExitCode.OK, shown.stderr
    assert '{"orders":{"0":9}}' in shown.stdout


def test_a_connection_that_does_not_exist_is_told(line: CommandLine) -> None:
    """So is one that is given beside a settings file."""
    error = line.error("syncs", "--conn-id", "mm2_other", code=ExitCode.USAGE)
    assert "connection mm2_other does not exist" in error
    both = ("--conn-id", "mm2_default", "--config", str(line.config))
    assert "both given" in line.error("syncs", *both, code=ExitCode.USAGE)
