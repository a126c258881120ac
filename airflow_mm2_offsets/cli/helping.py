"""``help`` and ``completion``: what the program says of itself."""

from typing import Annotated

import click
from click.shell_completion import ShellComplete, get_completion_class

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

SHELLS = ("bash", "zsh", "fish")


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
    *, shell: Annotated[str, Argument(metavar="SHELL", help="One of bash, zsh, fish.")]
) -> None:
    """Print what makes a shell complete commands and options.

    Read it in when the shell starts, as the examples do.
    """
    context = click.get_current_context()
    kind = get_completion_class(shell) if shell in SHELLS else None
    if kind is None:
        context.fail(f"{shell!r} is not one of {', '.join(SHELLS)}")
    root = context.find_root()
    program = root.info_name or ""
    complete = kind(root.command, {}, program, variable_of(program))
    # The class of bash starts one to ask for its version.
    click.echo(ShellComplete.source(complete))


def variable_of(program: str) -> str:
    """Return the variable by which a shell asks the program for completions, as Click names it."""
    return f"_{program.replace('-', '_')}_COMPLETE".upper()
