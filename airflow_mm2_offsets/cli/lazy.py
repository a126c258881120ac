"""Commands that are imported when they run: the help of a group shows what its table says.

``app`` holds the tables.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from airflow_mm2_offsets.cli.params import ExplainedArgument, parameter_of
from airflow_mm2_offsets.errors import did_you_mean

HELP_NAMES = {"help_option_names": ["-h", "--help"]}


class Command(click.Command):
    """A command whose help explains its arguments, too."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments before the options."""
        rows = [
            (each.shown_name, each.explanation)
            for each in self.params
            if isinstance(each, ExplainedArgument)
        ]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        super().format_options(ctx, formatter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Where a command is, and what the help of its group says of it."""

    module: str
    """In this package."""
    function: str
    help: str
    """The first sentence of the function's docstring."""
    example: str = "EXAMPLE"
    """What the module calls the text that ends the command's help."""

    def load(self, name: str) -> Command:
        """Import the command."""
        module = import_module(f"{__package__}.{self.module}")
        function = getattr(module, self.function)
        return Command(
            name,
            params=[*map(parameter_of, inspect.signature(function).parameters.values())],
            callback=function,
            help=inspect.cleandoc(function.__doc__),
            epilog=getattr(module, self.example),
        )


class LazyGroup(click.Group):
    """A group that imports a command when it is asked for."""

    def __init__(self, name: str, entries: Mapping[str, "Entry | LazyGroup"], **more: Any) -> None:
        """Keep the table; nothing is imported."""
        super().__init__(name, no_args_is_help=True, context_settings=HELP_NAMES, **more)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - Click's
        """Return the names, in the table's order."""
        return [*self.entries]

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - Click's
        cmd_name: str,
    ) -> click.Command | None:
        """Return a command, imported now; None if there is no such command."""
        entry = self.entries.get(cmd_name)
        if isinstance(entry, Entry):
            return entry.load(cmd_name)
        return entry

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - Click's
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the table."""
        rows = [(name, entry.help or "") for name, entry in self.entries.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first of ``args`` names."""
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None and not ctx.resilient_parsing:
            otherwise = f"`{ctx.command_path} -h` lists them"
            step = did_you_mean(name, self.list_commands(ctx), otherwise=otherwise)
            ctx.fail(f"No such command {name!r}; {step}")
        return name, command, args[1:]
