"""Writes the manual pages, from the commands that the help is made of.

``python -m airflow_mm2_offsets.cli.man FOLDER``, or ``make man``; see man(7) for the macros.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from airflow_mm2_offsets import __version__
from airflow_mm2_offsets.cli.app import PROGRAM, app
from airflow_mm2_offsets.cli.exit_codes import EXIT_CODES
from airflow_mm2_offsets.cli.params import ExplainedArgument


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page: of the program, and of each command."""
    for context in contexts(click.Context(app, info_name=PROGRAM, **app.context_settings)):
        yield f"{_page_name(context)}.1", _page(context)


def contexts(context: click.Context) -> Iterator[click.Context]:
    """Yield the context of a command, and those of the commands below it."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if command is not None:
                yield from contexts(click.Context(command, info_name=name, parent=context))


def _page_name(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _page(context: click.Context) -> str:
    name = _page_name(context)
    command = context.command
    first, _, more = inspect.cleandoc(command.help or "").partition("\n\n")
    lines = [
        f'.TH "{_text(name.upper())}" "1" "" "{PROGRAM} {__version__}"',
        *_section("NAME", f"{_text(name)} \\- {_text(first)}"),
        *_section("SYNOPSIS", f".B {_text(context.command_path)}", _usage(context)),
        *_section("DESCRIPTION", _text(first), *_paragraphs(more)),
        *_section("ARGUMENTS", *_arguments(command)),
        *_section("OPTIONS", *_options(context)),
        *_section("COMMANDS", *_commands(context)),
    ]
    title, examples = _epilog(command)
    lines += _section(title.upper(), *examples)
    if command is not app:
        lines += _section("EXIT STATUS", f"As \\fB{_text(PROGRAM)}\\fR(1) lists them.")
    return "\n".join(lines) + "\n"


def _section(title: str, *lines: str) -> list[str]:
    """Return a section; nothing where it would be empty."""
    return [f".SH {title}", *lines] if lines else []


def _usage(context: click.Context) -> str:
    return _text(" ".join(context.command.collect_usage_pieces(context)))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in filter(None, text.split("\n\n")):
        yield ".PP"
        yield _text(paragraph)


def _arguments(command: click.Command) -> Iterator[str]:
    for each in command.params:
        if isinstance(each, ExplainedArgument):
            yield from _entry(each.shown_name, each.explanation)


def _options(context: click.Context) -> Iterator[str]:
    for each in context.command.get_params(context):
        record = each.get_help_record(context)
        if isinstance(each, click.Option) and record is not None:
            yield from _entry(*record)


def _commands(context: click.Context) -> Iterator[str]:
    if isinstance(context.command, click.Group):
        for below in contexts(context):
            if below.parent is context:
                short = inspect.cleandoc(below.command.help or "").partition("\n\n")[0]
                yield from _entry(f"{_page_name(below)}(1)", short)


def _entry(name: str, explanation: str) -> Iterator[str]:
    yield ".TP"
    yield f".B {_text(name)}"
    yield _text(explanation)


def _epilog(command: click.Command) -> tuple[str, list[str]]:
    """Return the title and the lines of the examples, or of the exit codes."""
    title, _, lines = (command.epilog or "").removeprefix("\b\n").partition(":\n")
    shown = inspect.cleandoc(lines).splitlines()
    return ("Exit status" if lines and lines in EXIT_CODES else title), (
        [".nf", *map(_text, shown), ".fi"] if shown else []
    )


def _text(text: str) -> str:
    """Return a text of which troff takes nothing for a request or a special character."""
    text = re.sub(r"\s+", " ", text) if "\n" in text else text
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace('"', "\\(dq")
    return re.sub(r"^\.", "\\&.", text)


def main(folder: Path) -> None:
    """Write all pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
