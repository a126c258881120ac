"""The table of commands, and the help of the whole program."""

import click

from airflow_mm2_offsets import __version__
from airflow_mm2_offsets.cli.exit_codes import EXIT_CODES
from airflow_mm2_offsets.cli.lazy import Entry, LazyGroup

PROGRAM = "airflow-mm2-offsets"


_CHECKPOINT = LazyGroup(
    "checkpoint",
    {
        "show": Entry(
            module="checkpoints",
            function="show",
            help="Show the next offset to read of each partition.",
        )
    },
    help="Read a Spark job's checkpoint.",
)
_ARCHIVE = LazyGroup(
    "archive",
    {
        "run": Entry(
            module="archives",
            function="run",
            help="Add the topic's newer syncs to an archive.",
            example="RUN_EXAMPLE",
        ),
        "show": Entry(
            module="archives",
            function="show",
            help="Show the content of an archive, without reading a cluster.",
            example="SHOW_EXAMPLE",
        ),
    },
    help="Keep offset syncs when their topic is gone.",
)
_JOBS = LazyGroup(
    "jobs",
    {
        "list": Entry(
            module="jobs",
            function="list_",
            help="Show where each job runs, and since when; a journal that can't be read hides no "
            "other.",
            example="LIST_EXAMPLE",
        ),
        "show": Entry(
            module="jobs",
            function="show",
            help="Show where a job runs, and what became of its last move.",
            example="SHOW_EXAMPLE",
        ),
        "history": Entry(
            module="jobs",
            function="history",
            help="Show each entry of a job's journal: who did what, when and where.",
            example="HISTORY_EXAMPLE",
        ),
        "settle": Entry(
            module="jobs",
            function="settle",
            help="Say where a job runs: drivers may run there from now on, and nowhere else.",
            example="SETTLE_EXAMPLE",
        ),
        "fence": Entry(
            module="jobs",
            function="fence",
            help="Write each fence that follows from a job's journal, such as of a storage that "
            "has come back.",
            example="FENCE_EXAMPLE",
        ),
    },
    help="See where jobs run, and say so.",
)


def _version(ctx: click.Context, _param: click.Parameter, show: bool) -> None:  # noqa: FBT001 - Click's
    if show:
        click.echo(f"{PROGRAM} {__version__}")
        ctx.exit()


app = LazyGroup(
    PROGRAM,
    {
        "translate": Entry(
            module="plan",
            function="translate",
            help="Translate source positions to the target.",
            example="TRANSLATE_EXAMPLE",
        ),
        "plan": Entry(
            module="plan",
            function="plan",
            help="Plan where a Spark job continues on the target.",
            example="PLAN_EXAMPLE",
        ),
        "forecast": Entry(
            module="forecast",
            function="forecast",
            help="Tell what a failover loses and reads again.",
        ),
        "groups": Entry(
            module="groups",
            function="groups",
            help="Commit the groups' translated offsets on the target.",
        ),
        "check": Entry(
            module="readiness",
            function="check",
            help="Report whether a failover can begin; nothing is changed.",
        ),
        "syncs": Entry(
            module="inspect", function="syncs", help="List offset syncs.", example="SYNCS_EXAMPLE"
        ),
        "check-connection": Entry(
            module="inspect",
            function="check_connection",
            help="Tell which parts answer, and why others don't.",
            example="CHECK_EXAMPLE",
        ),
        "acls": Entry(
            module="acls",
            function="acls",
            help="Print the kafka-acls commands for what a task needs.",
        ),
        "doctor": Entry(
            module="doctor",
            function="doctor",
            help="Tell what is wrong or dangerous; nothing is changed.",
        ),
        "serve": Entry(module="serve", function="serve", help="Serve the REST API until Ctrl-C."),
        "checkpoint": _CHECKPOINT,
        "archive": _ARCHIVE,
        "jobs": _JOBS,
        "stop": Entry(
            module="jobs",
            function="stop",
            help="Stop a job where it runs, with proof; no driver starts there afterwards.",
            example="STOP_EXAMPLE",
        ),
        "help": Entry(module="helping", function="help_", help="Show the help of a command."),
        "completion": Entry(
            module="helping",
            function="completion",
            help="Print what makes a shell complete commands and options.",
            example="COMPLETION_EXAMPLE",
        ),
    },
    help="""\
Translate Kafka positions between clusters kept by MirrorMaker 2, with proof.

A position is the NEXT offset to read. The clusters come from a settings file (--config), from
variables MM2_OFFSETS_*, or from an Airflow connection (--conn-id).""",
    epilog=f"\b\n{EXIT_CODES}",
    params=[
        click.Option(
            ["-V", "--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Show the version.",
        )
    ],
)
