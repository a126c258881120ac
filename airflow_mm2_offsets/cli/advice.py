"""Puts what the rooms below advise into the words of the command line.

They name options as Python does: ``set on_unmapped``, ``read_source=False``. The options of the
command that runs say how a user writes them there: ``--on-unmapped``, ``--no-read-source``.
"""

import re
from collections.abc import Container, Iterator, Mapping
from functools import partial

import click

_OTHER_NAMES = {"include": "match"}
"""Names below the command line that differ from the parameter of its command."""
_BEFORE = r"(?<![\w/.:,'\"=-])"
"""Not within a path, a quoted name or a setting of MirrorMaker 2: that is the user's own text."""
_AFTER = r"(?![\w/'\"\[-]|\.\w|  )"
"""Nor in a table, whose cells two spaces end: a check may be called as an option."""


def in_words_of_the_command_line(
    text: str,
    command: click.Command,
    *,
    setting: str | None = None,
    users_words: Container[str] = frozenset(),
) -> str:
    """Return a message with the options of ``command`` as a user writes them.

    Args:
        text: A message of the rooms below.
        command: The command that runs.
        setting: What an error is about. Its message begins with that name.
        users_words: The words of the user's own arguments. They may name a topic or a file, so that
            they stay as they are.
    """
    for name, option in _flags(command):
        if name in users_words:
            continue
        text = re.sub(rf"{_BEFORE}{name}=(\w+)", partial(_with, option), text)
        if name == setting:
            text = re.sub(rf"^((?:Error: )?){name}(?=: )", rf"\1{option.opts[0]}", text)
        # A name of one word, such as archive, is a word of sentences as well.
        if "_" in name:
            text = re.sub(f"{_BEFORE}{name}{_AFTER}", option.opts[0], text)
    return text


def words_of(arguments: Mapping[str, object]) -> frozenset[str]:
    """Return the words of a command's arguments, as ``users_words`` takes them."""
    return frozenset(re.findall(r"\w+", " ".join(map(str, arguments.values()))))


def _flags(command: click.Command) -> Iterator[tuple[str, click.Option]]:
    """Yield the options by what the rooms below call them."""
    options = {
        each.name: each
        for each in command.params
        if isinstance(each, click.Option) and each.name is not None
    }
    yield from options.items()
    for other, name in _OTHER_NAMES.items():
        if name in options:
            yield other, options[name]


def spelled(fields: Mapping[str, object], command: click.Command) -> dict[str, object]:
    """Return an error's fields with its setting as a user writes it."""
    names = {name: option.opts[0] for name, option in _flags(command)}
    setting = fields.get("setting")
    return {**fields, "setting": names.get(str(setting), setting)} if setting else {**fields}


def _with(option: click.Option, found: re.Match[str]) -> str:
    """Return an option with the value that was found, as a user writes both."""
    value = found[1]
    if not option.is_flag:
        return f"{option.opts[0]} {value}"
    if value.lower() == "true":
        return option.opts[0]
    return option.secondary_opts[0] if option.secondary_opts else f"no {option.opts[0]}"
