"""``translate`` and ``plan``: the target positions of a job, with their reasons."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from airflow_mm2_offsets.cli.clusters import ClusterOptions, Clusters, find_clusters
from airflow_mm2_offsets.cli.command import answering, grouped
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.cli.options import ArchiveOptions, JobOptions
from airflow_mm2_offsets.cli.output import Answer
from airflow_mm2_offsets.cli.params import Argument, Option
from airflow_mm2_offsets.cli.terminal import waiting
from airflow_mm2_offsets.errors import ConfigurationError, PositionError
from airflow_mm2_offsets.planning.options import PlanOptions

if TYPE_CHECKING:
    from upath import UPath

    from airflow_mm2_offsets.core import FailoverPlan, Positions

TRANSLATE_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets translate orders:0:7381 orders:1:7381 --config mm2.toml"""

PLAN_EXAMPLE = """\
\b
Examples:
  airflow-mm2-offsets plan --checkpoint s3://bucket/checkpoints/orders --out plan.json
  airflow-mm2-offsets plan --positions '{"orders": {"0": 7381, "1": 7381}}' --json"""


@grouped
@answering
def translate(
    *,
    positions: Annotated[
        list[str],
        Argument(
            metavar="TOPIC:PARTITION:POSITION",
            help="The next offset to read on the source, of each partition.",
        ),
    ],
    options: PlanOptions,
    archive: ArchiveOptions,
    pair_options: ClusterOptions,
) -> Answer:
    """Translate source positions to the target.

    A position is the NEXT offset to read: give several, one of each partition.
    """
    parsed = parse_positions(positions)
    clusters = find_clusters(pair_options)
    options = replace(options, archive=archive.open(clusters))
    return _answer(_plan(clusters, parsed, None, options))


@grouped
@answering
def plan(
    *,
    job: JobOptions,
    out: Annotated[
        str | None,
        Option(
            "--out", metavar="FILE", help="Write the plan there; an existing file is not changed."
        ),
    ] = None,
    options: PlanOptions,
    archive: ArchiveOptions,
    pair_options: ClusterOptions,
) -> Answer:
    """Plan where a Spark job continues on the target.

    The plan has every partition's answer, its reason, and the startingOffsets for Spark.
    """
    from airflow_mm2_offsets.core import Verdict
    from airflow_mm2_offsets.planning.plan_file import save_plan

    clusters = find_clusters(pair_options)
    path = _new_file(clusters, out) if out else None
    positions, pending = job.read(clusters, ask_source=options.read_source)
    options = replace(options, archive=archive.open(clusters))
    failover_plan = _plan(clusters, positions, pending, options)
    if path is not None and failover_plan.verdict is Verdict.READY:
        save_plan(path, failover_plan)
    return _answer(failover_plan, note=_note(failover_plan, path))


def parse_positions(texts: list[str]) -> "Positions":
    """Parse texts of the form ``TOPIC:PARTITION:POSITION``.

    Raises:
        PositionError: A text has another form, or a partition is given twice.
    """
    from airflow_mm2_offsets.core import check_positions

    parsed: dict[str, dict[str, str]] = {}
    for text in texts:
        topic, *numbers = text.split(":")
        if len(numbers) != 2:  # noqa: PLR2004 - the form that the message names
            hint = f"; did you mean {':'.join(texts)}?" if len(texts) == 3 else ""  # noqa: PLR2004
            raise PositionError(f"{text!r} is not TOPIC:PARTITION:POSITION, as orders:0:42{hint}")
        partition, position = numbers
        if partition in parsed.setdefault(topic, {}):
            raise PositionError(f"partition {partition} is given twice; give it once", topic=topic)
        parsed[topic][partition] = position
    return check_positions(parsed)


def _plan(
    clusters: Clusters, positions: "Positions", pending: "Positions | None", options: PlanOptions
) -> "FailoverPlan":
    from airflow_mm2_offsets.planning.plan import plan_failover

    with waiting("Reading offset syncs and evidence"):
        return plan_failover(clusters.pair, positions, pending=pending, options=options)


def _answer(failover_plan: "FailoverPlan", note: str = "") -> Answer:
    from airflow_mm2_offsets.core import Verdict, summarize
    from airflow_mm2_offsets.spark.offsets import format_offsets

    is_ready = failover_plan.verdict is Verdict.READY
    starting = format_offsets(failover_plan.target_positions()) if is_ready else None
    spark = f"\n\nSpark's startingOffsets:\n{starting}" if starting else ""
    return Answer(
        text=f"{summarize(failover_plan)}{spark}{note}",
        data=failover_plan.to_json() | {"starting_offsets": starting},
        exit_code=ExitCode.OK if is_ready else ExitCode.REFUSED,
    )


def _note(failover_plan: "FailoverPlan", path: "UPath | None") -> str:
    from airflow_mm2_offsets.core import Verdict

    if path is None:
        return ""
    if failover_plan.verdict is not Verdict.READY:
        return f"\n\n{path} was not written: a job can start from a plan that is ready alone"
    return f"\n\nThe plan is in {path}"


def _new_file(clusters: Clusters, location: str) -> "UPath":
    path = clusters.open(location)
    if path.exists():
        raise ConfigurationError(
            "the file exists, and plans are never overwritten: give another file", file=str(path)
        )
    return path
