"""``help`` and ``completion``: what the program says of itself."""

from enum import StrEnum
from typing import Annotated

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from airflow_mm2_offsets.cli.params import Argument

EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets help archive run"""

COMPLETION_EXAMPLE = """\
\b
Examples:
  eval "$(airflow-mm2-offsets completion bash)"    # in ~/.bashrc
  eval "$(airflow-mm2-offsets completion zsh)"     # in ~/.zshrc
  airflow-mm2-offsets completion fish | source     # in ~/.config/fish/config.fish"""


class Shell(StrEnum):
    """The shells that Click completes for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_CLASSES: dict[Shell, type[ShellComplete]] = {
    Shell.BASH: BashComplete,
    Shell.ZSH: ZshComplete,
    Shell.FISH: FishComplete,
}


def help_(
    *,
    command: Annotated[
        list[str] | None, Argument(metavar="COMMAND", help="Its words; none: all commands.")
    ] = None,
) -> None:
    """Show the help of a command.

    It is what the option --help of that command shows.
    """
    context = click.get_current_context().find_root()
    for word in command or ():
        group = context.command
        if not isinstance(group, click.Group):
            context.fail(f"{context.command_path} has no commands: {word!r} is none of them")
        name, found, _ = group.resolve_command(context, [word])
        if found is not None:
            context = click.Context(found, info_name=name, parent=context)
    click.echo(context.get_help())


def completion(
    *, shell: Annotated[Shell, Argument(metavar="SHELL", help="One of bash, zsh, fish.")]
) -> None:
    """Print what makes a shell complete commands and options.

    Read it in when the shell starts, as the examples do.
    """
    root = click.get_current_context().find_root()
    program = root.info_name or ""
    variable = f"_{program.replace('-', '_')}_COMPLETE".upper()  # as Click calls it
    complete = _CLASSES[shell](root.command, {}, program, variable)
    # The class of bash starts one to ask for its version.
    click.echo(ShellComplete.source(complete))
