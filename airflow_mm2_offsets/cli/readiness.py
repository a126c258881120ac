"""``check``: whether a failover can begin, without Airflow."""

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated

from airflow_mm2_offsets.cli.clusters import ClusterOptions, Clusters, find_clusters
from airflow_mm2_offsets.cli.command import answering, grouped
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.cli.numbers import Number
from airflow_mm2_offsets.cli.options import (
    ArchiveOptions,
    MovedJob,
    PolicyName,
    pair_of,
    read_text_option,
)
from airflow_mm2_offsets.cli.output import Answer
from airflow_mm2_offsets.cli.params import Option
from airflow_mm2_offsets.cli.terminal import waiting
from airflow_mm2_offsets.core.policy import PLANNED, POLICIES, Policy
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.readiness.thresholds import DEFAULT_THRESHOLDS

if TYPE_CHECKING:
    from airflow_mm2_offsets.core import FailoverPlan
    from airflow_mm2_offsets.core.readiness import ReadinessVerdict
    from airflow_mm2_offsets.moves.move import Mover
    from airflow_mm2_offsets.readiness import ReadinessRequest

EXAMPLE = """\
\b
Examples:
  airflow-mm2-offsets check --job orders --jobs s3://bucket/jobs.yaml
  airflow-mm2-offsets check --policy disaster --archive s3://us/syncs --json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdOptions:
    """Beyond them a check fails, or warns."""

    max_lag_records: Annotated[
        float,
        Option(
            "--max-lag-records",
            metavar="COUNT",
            type=Number(float),
            help="Records of a topic-partition to copy.",
        ),
    ] = DEFAULT_THRESHOLDS.max_lag_records
    max_lag_seconds: Annotated[
        float,
        Option(
            "--max-lag-seconds",
            metavar="SECONDS",
            type=Number(float),
            help="Age of the newest heartbeat.",
        ),
    ] = DEFAULT_THRESHOLDS.max_lag_seconds
    max_sync_age: Annotated[
        float,
        Option(
            "--max-sync-age",
            metavar="SECONDS",
            type=Number(float),
            help="Age of the newest offset sync.",
        ),
    ] = DEFAULT_THRESHOLDS.max_sync_age
    max_archive_age: Annotated[
        float,
        Option(
            "--max-archive-age",
            metavar="SECONDS",
            type=Number(float),
            help="Since the archive's last run.",
        ),
    ] = DEFAULT_THRESHOLDS.max_archive_age


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """What the user says of the job."""

    positions: Annotated[
        str | None,
        Option(
            "--positions",
            metavar="FILE|JSON|-",
            help="Where the job stands, if no job is named, or in a disaster if it is lost.",
        ),
    ] = None
    source_is_gone: Annotated[
        bool,
        Option("--source-is-gone", help="In a disaster: your word that no driver of it runs."),
    ] = False
    probe_folder: Annotated[
        str | None,
        Option(
            "--probe-folder",
            metavar="URL",
            help="Write a file here, and remove it: only that shows what an object store allows.",
        ),
    ] = None


@grouped
@answering
def check(
    *,
    moved: MovedJob,
    policy: PolicyName = PLANNED.name,
    facts: JobFacts,
    archive: ArchiveOptions,
    options: PlanOptions,
    thresholds: ThresholdOptions,
    strict: Annotated[
        bool, Option("--strict", help="Exit with code 6 if a check warns or is unknown.")
    ] = False,
    pair_options: ClusterOptions,
) -> Answer:
    """Report whether a failover can begin; nothing is changed.

    Each check has a value, a threshold and what to do.
    """
    from airflow_mm2_offsets.readiness import ReadinessRequest, Thresholds, check_readiness
    from airflow_mm2_offsets.spark.offsets import parse_offsets

    clusters = find_clusters(pair_options)
    mover = moved.mover(policy, clusters.open)
    _check_positions(facts, has_job=mover is not None, policy=POLICIES[policy])
    text = None if facts.positions is None else read_text_option("--positions", facts.positions)
    request = ReadinessRequest(
        find_pair=lambda: clusters.pair,
        open=clusters.open,
        policy=POLICIES[policy],
        thresholds=Thresholds.parse(asdict(thresholds)),
        plan_options=options,
        archive=archive.archive or clusters.archive_location,
        skip_damaged=archive.skip_damaged,
        **{**asdict(facts), "positions": None if text is None else parse_offsets(text)},
    )
    if mover is not None:
        request = _with_job(request, mover, clusters)
    with waiting("Checking"):
        report = check_readiness(request)
    return Answer(
        text=report.summary(), data=report.to_json(), exit_code=_exit_code(report.verdict, strict)
    )


def _with_job(
    request: "ReadinessRequest", mover: "Mover", clusters: Clusters
) -> "ReadinessRequest":
    """Return what is asked of a job's next move."""
    from airflow_mm2_offsets.moves.handover import handed_over_to
    from airflow_mm2_offsets.planning.plan_file import read_plan
    from airflow_mm2_offsets.readiness.request import fields_of_move

    move = mover.find()

    def came_by() -> "FailoverPlan | None":
        handed = handed_over_to(move)
        return read_plan(clusters.open(handed["plan"])) if handed and handed.get("plan") else None

    return replace(
        request,
        find_pair=lambda: pair_of(move, clusters.pair),
        archive=request.archive or move.job.archive,
        came_by=came_by,
        **fields_of_move(mover, move),
    )


def _check_positions(facts: JobFacts, *, has_job: bool, policy: Policy) -> None:
    if has_job and facts.positions and not policy.source_may_be_lost:
        raise ConfigurationError(
            "they stand in for a checkpoint that is lost, with --policy disaster, or for none; "
            "leave them or --job out",
            setting="--positions",
        )


def _exit_code(verdict: "ReadinessVerdict", strict: bool) -> ExitCode:  # noqa: FBT001 - private
    from airflow_mm2_offsets.core.readiness import ReadinessVerdict

    if verdict is ReadinessVerdict.NOT_READY:
        return ExitCode.NOT_READY
    if strict and verdict is ReadinessVerdict.READY_WITH_WARNINGS:
        return ExitCode.WARNINGS
    return ExitCode.OK
