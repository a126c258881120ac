"""``forecast``: what a failover loses and reads again, from whatever still answers."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from airflow_mm2_offsets.cli.clusters import ClusterOptions, find_clusters
from airflow_mm2_offsets.cli.command import answering, grouped
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.cli.numbers import Number
from airflow_mm2_offsets.cli.options import (
    ArchiveOptions,
    JobOptions,
    MovedJob,
    PolicyName,
    pair_of,
)
from airflow_mm2_offsets.cli.output import Answer
from airflow_mm2_offsets.cli.params import Option
from airflow_mm2_offsets.cli.terminal import waiting
from airflow_mm2_offsets.core.policy import DISASTER, POLICIES
from airflow_mm2_offsets.planning.options import PlanOptions

if TYPE_CHECKING:
    from airflow_mm2_offsets.core import FailoverPlan
    from airflow_mm2_offsets.core.forecast import ForecastRequest

EXAMPLE = """\
\b
Examples:
  airflow-mm2-offsets forecast --positions positions.json --archive s3://bucket/syncs
  airflow-mm2-offsets forecast --job orders --jobs s3://bucket/jobs.yaml --max-rate 500"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossOptions:
    """What the user knows of the loss."""

    policy: PolicyName = DISASTER.name
    lost_at: Annotated[
        str | None,
        Option("--lost-at", metavar="TIME", help="When the source was lost; else now."),
    ] = None
    max_rate: Annotated[
        float | None,
        Option(
            "--max-rate",
            metavar="RECORDS",
            type=Number(float),
            help="How many records per second each partition was written at, at most; else twice "
            "the highest rate that the archive has seen.",
        ),
    ] = None
    positions_as_of: Annotated[
        str | None,
        Option(
            "--positions-as-of",
            metavar="TIME",
            help="When the positions were read, if the job may have gone on since.",
        ),
    ] = None

    def request(self, failover_plan: "FailoverPlan") -> "ForecastRequest":
        """Return the request of a forecast of a plan."""
        from airflow_mm2_offsets.core.forecast import ForecastRequest

        return ForecastRequest(
            policy=POLICIES[self.policy],
            plan_digest=failover_plan.to_json()["digest"],
            lost_at=self.lost_at,
            max_rate=self.max_rate,
            positions_as_of=self.positions_as_of,
        )


@grouped
@answering
def forecast(
    *,
    moved: MovedJob,
    job: JobOptions,
    loss: LossOptions,
    options: PlanOptions,
    archive: ArchiveOptions,
    pair_options: ClusterOptions,
) -> Answer:
    """Tell what a failover loses and reads again.

    It plans with what still answers: source, Connect and syncs topic may be lost.
    """
    from airflow_mm2_offsets.core import Verdict
    from airflow_mm2_offsets.core.forecast_summary import summarize_forecast
    from airflow_mm2_offsets.planning.forecast import forecast_failover
    from airflow_mm2_offsets.planning.partial_plan import plan_from_what_is_left

    clusters = find_clusters(pair_options)
    if (mover := moved.mover(loss.policy, clusters.open)) is not None:
        move = mover.find()
        clusters = replace(clusters, pair=pair_of(move, clusters.pair))
        if job.positions is None:
            job = replace(job, checkpoint=job.checkpoint or move.here.checkpoint)
        archive = replace(archive, archive=archive.archive or move.job.archive)
    positions, pending = job.read(clusters, ask_source=options.read_source)
    options = replace(options, archive=archive.open(clusters))
    with waiting("Asking what is left of the clusters"):
        failover_plan = plan_from_what_is_left(
            clusters.pair, positions, pending=pending, options=options
        )
        told = forecast_failover(
            clusters.pair, failover_plan, loss.request(failover_plan), archive=options.archive
        )
    verdict = failover_plan.verdict
    return Answer(
        text=f"{verdict.upper().replace('_', ' ')}: {summarize_forecast(told)}",
        data=told.to_json() | {"verdict": verdict.value},
        exit_code=ExitCode.OK if verdict is Verdict.READY else ExitCode.REFUSED,
    )
