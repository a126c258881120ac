"""``check``: whether a failover can begin, without Airflow."""

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated

from airflow_mm2_offsets.cli.clusters import ClusterOptions, find_clusters
from airflow_mm2_offsets.cli.command import answering, grouped
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.cli.numbers import Number
from airflow_mm2_offsets.cli.output import Answer
from airflow_mm2_offsets.cli.params import Option
from airflow_mm2_offsets.cli.readiness_options import DrillOptions, FolderOptions, JobFacts
from airflow_mm2_offsets.cli.terminal import waiting
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.readiness.thresholds import DEFAULT_THRESHOLDS

if TYPE_CHECKING:
    from airflow_mm2_offsets.core.readiness import ReadinessVerdict

EXAMPLE = """\
\b
Examples:
  airflow-mm2-offsets check --checkpoint s3://eu/orders/checkpoint
  airflow-mm2-offsets check --mode disaster --archive s3://us/syncs --json"""


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


@grouped
@answering
def check(
    *,
    folders: FolderOptions,
    job: JobFacts,
    drill: DrillOptions,
    mode: Annotated[
        FailoverMode, Option("--mode", help="The failover that is to be ready.")
    ] = FailoverMode.PLANNED,
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

    _check_positions(folders, job, mode)
    clusters = find_clusters(pair_options)
    pair = clusters.pair.exchanged() if job.exchanged else clusters.pair
    folders = replace(folders, archive=folders.archive or clusters.archive_location)
    request = ReadinessRequest(
        find_pair=lambda: pair,
        open=clusters.open,
        mode=mode,
        thresholds=Thresholds.parse(asdict(thresholds)),
        plan_options=options,
        more=drill.checks(clusters, folders) if mode is FailoverMode.DRILL else {},
        **job.for_request(),
        **asdict(folders),
    )
    with waiting("Checking"):
        report = check_readiness(request)
    return Answer(
        text=report.summary(), data=report.to_json(), exit_code=_exit_code(report.verdict, strict)
    )


def _check_positions(folders: FolderOptions, job: JobFacts, mode: FailoverMode) -> None:
    if folders.checkpoint and job.positions and mode is not FailoverMode.DISASTER:
        raise ConfigurationError(
            f"they stand in for a checkpoint that is lost, with --mode {FailoverMode.DISASTER}, or "
            f"for none; leave them or --checkpoint out",
            setting="--positions",
        )


def _exit_code(verdict: "ReadinessVerdict", strict: bool) -> ExitCode:  # noqa: FBT001 - private
    from airflow_mm2_offsets.core.readiness import ReadinessVerdict

    if verdict is ReadinessVerdict.NOT_READY:
        return ExitCode.NOT_READY
    if strict and verdict is ReadinessVerdict.READY_WITH_WARNINGS:
        return ExitCode.WARNINGS
    return ExitCode.OK
