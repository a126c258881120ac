"""Puts what the rooms below advise into the words of the command line.

They name options as Python does: ``set on_unmapped``, ``read_source=False``. The options of the
command that runs say how a user writes them there: ``--on-unmapped``, ``--no-read-source``.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial

import click

_OTHER_NAMES = {"include": "match"}
"""Names below the command line that differ from the parameter of its command."""
_BEFORE = r"(?<![\w/.:'\"=-])"
"""Not within a path, a quoted name or a setting of MirrorMaker 2: that is the user's own text."""
_AFTER = r"(?![\w/'\"\[-]|\.\w)"


def in_words_of_the_command_line(text: str, command: click.Command) -> str:
    """Return a message with the options of ``command`` as a user writes them.

    A name of one word, such as ``archive``, is a word of sentences as well: it is replaced where a
    value follows, and where it begins the message.
    """
    flags = dict(_flags(command))
    for name, option in flags.items():
        text = re.sub(rf"{_BEFORE}{name}=(\w+)", partial(_with, option), text)
        text = re.sub(rf"^((?:Error: )?){name}(?=: )", rf"\1{option.opts[0]}", text)
        if "_" in name:
            text = re.sub(f"{_BEFORE}{name}{_AFTER}", option.opts[0], text)
    return text


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
    if value == "True":
        return option.opts[0]
    return option.secondary_opts[0] if option.secondary_opts else f"no {option.opts[0]}"
