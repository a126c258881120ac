"""The table of commands: it says what the commands say of themselves."""

import inspect

import click
import pytest
from click.testing import CliRunner

from airflow_mm2_offsets import __version__
from airflow_mm2_offsets.cli.app import PROGRAM, app
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.cli.lazy import Entry, LazyGroup
from airflow_mm2_offsets.cli.man import contexts

CONTEXTS = [*contexts(click.Context(app, info_name=PROGRAM, **app.context_settings))]
COMMANDS = [each.command_path.partition(" ")[2] for each in CONTEXTS[1:]]


def _entry(path: str) -> Entry | LazyGroup:
    entry: Entry | LazyGroup = app
    for name in path.split():
        assert isinstance(entry, LazyGroup)
        entry = entry.entries[name]
    return entry


@pytest.mark.parametrize("path", COMMANDS)
def test_the_table_says_what_the_command_says(path: str) -> None:
    """The help of a group has the first sentence of each command's own help."""
    context = next(each for each in CONTEXTS if each.command_path == f"{PROGRAM} {path}")
    first = inspect.cleandoc(context.command.help or "").partition("\n\n")[0]
    assert _entry(path).help == first.replace("\n", " ")


@pytest.mark.parametrize("path", COMMANDS)
def test_help_shows_what_the_option_shows(path: str) -> None:
    """``help COMMAND`` prints what ``COMMAND --help`` and ``COMMAND -h`` print."""
    words = path.split()
    shown = [
        CliRunner().invoke(app, arguments, prog_name=PROGRAM).stdout
        for arguments in (["help", *words], [*words, "--help"], [*words, "-h"])
    ]
    assert shown[0].startswith(f"Usage: {PROGRAM} {path} ")
    assert shown == [shown[0]] * 3


def test_help_alone_lists_the_commands() -> None:
    """``help`` without a command is the help of the program."""
    shown = CliRunner().invoke(app, ["help"], prog_name=PROGRAM)
    assert shown.exit_code == ExitCode.OK
    assert shown.stdout == CliRunner().invoke(app, ["--help"], prog_name=PROGRAM).stdout


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version_is_told(flag: str) -> None:
    """As everywhere."""
    assert CliRunner().invoke(app, [flag]).stdout == f"{PROGRAM} {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "step"),
    [
        (["tranlsate"], "did you mean translate?"),
        (["help", "tranlsate"], "did you mean translate?"),
        (["archive", "rum"], "did you mean run?"),
        (["help", "archive", "rum"], "did you mean run?"),
        (["quux"], f"`{PROGRAM} -h` lists them"),
    ],
)
def test_an_unknown_command_names_the_nearest(arguments: list[str], step: str) -> None:
    """Code 2, the word at fault and the next step."""
    shown = CliRunner().invoke(app, arguments, prog_name=PROGRAM)
    assert shown.exit_code == ExitCode.USAGE
    assert shown.stdout == ""
    assert shown.stderr.endswith(f"Error: No such command {arguments[-1]!r}; {step}\n")


def test_help_of_a_command_below_a_command_is_refused() -> None:
    """A command that is not a group has no commands."""
    shown = CliRunner().invoke(app, ["help", "plan", "run"], prog_name=PROGRAM)
    assert shown.exit_code == ExitCode.USAGE
    assert "plan has no commands: 'run' is none of them" in shown.stderr
