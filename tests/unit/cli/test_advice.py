"""Advice of the rooms below, in the words of the command line."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import airflow_mm2_offsets
from airflow_mm2_offsets.cli.advice import in_words_of_the_command_line, spelled, words_of
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from tests.unit.cli.conftest import CommandLine
from tests.unit.cli.test_lazy import CONTEXTS

ROOMS = Path(airflow_mm2_offsets.__file__).parent
OTHER_HOMES = frozenset(
    {"api", "cli", "hooks", "observability", "operators", "plugins", "sensors", "task_groups"}
    | {"testing", "triggers"}
)
"""Rooms whose messages no command shows."""
COMMANDS = {each.command_path.partition(" ")[2]: each.command for each in CONTEXTS[1:]}
NAMES = {
    option.name: command
    for command in COMMANDS.values()
    for option in command.params
    if isinstance(option, click.Option) and option.name and "_" in option.name
}
"""Options whose Python names no sentence has, with a command that has them."""


def _texts() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of every literal below that is a sentence."""
    for file in sorted(ROOMS.rglob("*.py")):
        if file.relative_to(ROOMS).parts[0] in OTHER_HOMES:
            continue
        tree = ast.parse(file.read_text())
        docstrings = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in docstrings:
                text = node.value
                if isinstance(text, str) and " " in text:
                    yield f"{file.relative_to(ROOMS)}:{node.lineno}", text


TEXTS = [
    (place, name, text)
    for place, text in _texts()
    for name in NAMES
    if re.search(rf"\b{name}\b", text)
]


def test_the_rooms_below_give_such_advice() -> None:
    """Else the next test would look at nothing."""
    assert len(TEXTS) > 30
    assert {"on_unmapped", "sole_writer", "max_rate", "probe_folder"} <= {
        name for _, name, _ in TEXTS
    }


@pytest.mark.parametrize(("place", "name", "text"), TEXTS)
def test_no_message_names_an_argument_of_python(place: str, name: str, text: str) -> None:
    """Each literal of a room below names options as a user writes them, once a command shows it."""
    command = NAMES[name]
    shown = in_words_of_the_command_line(text, command)
    assert not re.search(rf"\b{name}\b", shown), place
    option = next(each for each in command.params if each.name == name)
    assert any(flag in shown for flag in (*option.opts, *option.secondary_opts)), place


@pytest.mark.parametrize(
    ("command", "text", "shown"),
    [
        ("plan", "set read_source=False: then", "set --no-read-source: then"),
        ("plan", "set read_source=True", "set --read-source"),
        ("plan", "give sole_writer=True or", "give --sole-writer or"),
        ("plan", "start with on_unmapped=earliest, or", "start with --on-unmapped earliest, or"),
        ("groups", "take offsets_from=checkpoints", "take --offsets-from checkpoints"),
        # The user's own names, and those of other options, stay.
        ("plan", "s3://lake/on_unmapped=latest/x is", "s3://lake/on_unmapped=latest/x is"),
        ("plan", "on_unmapped[0] at 5", "on_unmapped[0] at 5"),
        ("plan", "'on_unmapped' is not", "'on_unmapped' is not"),
        ("plan", "on_unmapped.events: no", "on_unmapped.events: no"),
        ("plan", "the archive is empty", "the archive is empty"),
        ("plan", "archive: partition 0 is given twice", "archive: partition 0 is given twice"),
        ("check", "subscribe_pattern    not_asked", "subscribe_pattern    not_asked"),
        ("plan", "CN=a,timeout=30 may not", "CN=a,timeout=30 may not"),
        ("syncs", "choose on_unmapped", "choose on_unmapped"),
    ],
)
def test_names_become_options(command: str, text: str, shown: str) -> None:
    """Names and values become flags; other text that looks like them does not."""
    assert in_words_of_the_command_line(text, COMMANDS[command]) == shown


@pytest.mark.parametrize(
    ("command", "setting", "text", "shown"),
    [
        ("plan", "archive", "archive: a login", "--archive: a login"),
        ("groups", "include", "Error: include: no group", "Error: --match: no group"),
        ("plan", "timeout", "archive: a login", "archive: a login"),
    ],
)
def test_an_error_begins_with_its_option(command: str, setting: str, text: str, shown: str) -> None:
    """Where the error is about that setting: else the word is a topic or a file."""
    assert in_words_of_the_command_line(text, COMMANDS[command], setting=setting) == shown


def test_the_users_own_words_stay() -> None:
    """A topic or a folder may be called as an option is."""
    words = words_of({"checkpoint": "/data/on_unmapped/x", "positions": None})
    text = "on_unmapped is no checkpoint; set max_rate"
    for command, shown in (("plan", text), ("forecast", text.replace("max_rate", "--max-rate"))):
        assert in_words_of_the_command_line(text, COMMANDS[command], users_words=words) == shown


def test_a_value_of_another_spelling_keeps_its_meaning() -> None:
    """Connect and JSON write true in small letters."""
    text = "set read_source=true or read_source=false"
    shown = in_words_of_the_command_line(text, COMMANDS["plan"])
    assert shown == "set --read-source or --no-read-source"


def test_the_command_for_an_administrator_is_not_rewritten(line: CommandLine) -> None:
    """A topic that is called as an option stays in what is to be run."""
    arguments = ("acls", "--principal", "User:me", "--operator", "translate", "--topic", "conn_id")
    shown = line.run(*arguments).stdout
    assert "--topic conn_id" in shown
    assert "--conn-id" not in shown


def test_a_setting_is_spelled_as_an_option() -> None:
    """The field ``setting`` of an error in JSON names the option; other settings stay."""
    plan = COMMANDS["plan"]
    assert spelled({"setting": "unmapped_time", "topic": "a"}, plan) == {
        "setting": "--unmapped-time",
        "topic": "a",
    }
    assert spelled({"setting": "source.alias"}, plan) == {"setting": "source.alias"}
    assert spelled({"topic": "unmapped_time"}, plan) == {"topic": "unmapped_time"}


def test_an_error_of_a_command_speaks_so(line: CommandLine) -> None:
    """On stderr, and in JSON on stdout."""
    arguments = ("groups", "--match", "")
    message = line.error(*arguments, code=ExitCode.USAGE)
    assert message.startswith("Error: --match: no group is named")
    error = json.loads(line.run(*arguments, "--json").stdout)["error"]
    assert error["message"] == message.removeprefix("Error: ").strip()
    assert error["setting"] == "--match"
