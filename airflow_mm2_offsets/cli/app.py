"""Registers the commands, and holds the help of the whole program."""

from typing import Annotated

from typer import Exit, Option, Typer, echo

from airflow_mm2_offsets import __version__
from airflow_mm2_offsets.cli import acls, doctor, forecast, groups, inspect, plan, readiness, serve
from airflow_mm2_offsets.cli.archives import archive
from airflow_mm2_offsets.cli.checkpoints import checkpoint
from airflow_mm2_offsets.cli.exit_codes import EXIT_CODES
from airflow_mm2_offsets.cli.fences import fence
from airflow_mm2_offsets.cli.locks import lock

app = Typer(
    no_args_is_help=True,
    # Plain text: the same on a terminal, in a pipe and in a log.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"\b\n{EXIT_CODES}",
)
app.command(epilog=plan.TRANSLATE_EXAMPLE)(plan.translate)
app.command(epilog=plan.PLAN_EXAMPLE)(plan.plan)
app.command(epilog=forecast.EXAMPLE)(forecast.forecast)
app.command(epilog=groups.EXAMPLE)(groups.groups)
app.command(epilog=readiness.EXAMPLE)(readiness.check)
app.command(epilog=inspect.SYNCS_EXAMPLE)(inspect.syncs)
app.add_typer(checkpoint, name="checkpoint")
app.add_typer(archive, name="archive")
app.add_typer(fence, name="fence")
app.add_typer(lock, name="lock")
app.command("check-connection", epilog=inspect.CHECK_EXAMPLE)(inspect.check_connection)
app.command(epilog=acls.EXAMPLE)(acls.acls)
app.command(epilog=doctor.EXAMPLE)(doctor.doctor)
app.command(epilog=serve.EXAMPLE)(serve.serve)


def _version(*, show: bool) -> None:
    if show:
        echo(f"airflow-mm2-offsets {__version__}")
        raise Exit


@app.callback()
def _all(
    *,
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Translate Kafka positions between clusters kept by MirrorMaker 2, with proof.

    A position is the NEXT offset to read. The clusters come from a settings file (--config), from
    variables MM2_OFFSETS_*, or from an Airflow connection (--conn-id).
    """
