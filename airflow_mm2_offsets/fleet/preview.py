"""What a fleet failover would cost, from where its jobs stand now: one plan for all of them.

It reads and changes nothing. The jobs run on, so each is planned again when it has stopped; what is
approved here bounds that plan.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from upath import UPath

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.collected_errors import Problems
from airflow_mm2_offsets.core import FailoverPlan, Positions, Status, TopicPartition
from airflow_mm2_offsets.core.forecast import FailoverForecast, ForecastRequest
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.core.partition_plan import PartitionPlan
from airflow_mm2_offsets.core.plan import shown_counts
from airflow_mm2_offsets.core.positions import by_topic_partition
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.fleet.job import FleetJob
from airflow_mm2_offsets.fleet.order import find_wrong_reads
from airflow_mm2_offsets.fleet.progress import moved_before
from airflow_mm2_offsets.planning.forecast import forecast_failover
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.partial_plan import plan_from_what_is_left
from airflow_mm2_offsets.planning.plan import STILL_COPYING, plan_failover
from airflow_mm2_offsets.positions.checkpoint import read_checkpoint_of
from airflow_mm2_offsets.spark.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPreview:
    """What the failover of one job would cost."""

    job: FleetJob
    moved: str | None = None
    """The sentence that it was moved before."""
    problem: str | None = None
    """Why nothing can be said of it."""
    plan: FailoverPlan | None = None
    forecast: FailoverForecast | None = None
    """In a disaster: it tells the costs. Otherwise the failover waits for MirrorMaker 2."""

    @property
    def _settled(self) -> tuple[PartitionPlan, ...]:
        """The partitions whose answer does not become better while MirrorMaker 2 copies."""
        lines = self.plan.partitions if self.plan else ()
        if self.forecast is not None:
            return lines
        return tuple(each for each in lines if each.translation.basis not in STILL_COPYING)

    @property
    def partitions(self) -> int:
        """How many partitions it reads."""
        return len(self.plan.partitions) if self.plan else 0

    @property
    def not_copied_yet(self) -> int:
        """Partitions that the failover waits for before it translates them: no cost is known."""
        return self.partitions - len(self._settled)

    def count(self, status: Status) -> int:
        """Return how many of the others have a status."""
        return sum(each.translation.status is status for each in self._settled)

    @property
    def refused(self) -> int | None:
        """Partitions without an answer; None: not known."""
        return None if self.problem else self.count(Status.REFUSED)

    @property
    def read_again(self) -> int | None:
        """The most records read again; None: not known."""
        if self.forecast is not None:
            return self.forecast.read_again.at_most
        answered = [each for each in self._settled if each.start is not None]
        counts = [each.max_reread for each in answered]
        return None if self.problem or None in counts else sum(each for each in counts if each)

    @property
    def at_risk(self) -> int | None:
        """The most records at risk; None: not known.

        While the source is there, only those that are given up or that an unsafe answer loses.
        """
        if self.forecast is not None:
            return self.forecast.at_risk.at_most
        if self.problem or self.plan is None:
            return None if self.problem else 0
        return self.plan.given_up + sum(answer.max_lost for answer in self.plan.not_safe)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRequest:
    """What a preview is made of."""

    pair: ClusterPair
    mode: FailoverMode
    options: PlanOptions
    """How each job's positions are to be translated, with the archive."""
    open_place: Callable[[str], UPath]


def preview_fleet(jobs: Sequence[FleetJob], request: PreviewRequest) -> tuple[JobPreview, ...]:
    """Return what the failover of each job would cost, in their order.

    Jobs of different topic-partitions are planned together, by one read of the syncs. A job that
    can't be planned does not keep the others from it.

    Raises:
        ConfigurationError: The ``reads`` of jobs are not what their checkpoints read: they would
            order other jobs than these. All are named.
    """
    found: dict[str, JobPreview] = {}
    written = {topic for job in jobs for topic in job.writes}
    problems = Problems()
    stands: dict[str, Checkpoint] = {}
    for job in jobs:
        try:
            moved = moved_before(job, request.open_place, mode=request.mode)
            if moved is None:
                stands[job.name] = _read(job, request)
            else:
                found[job.name] = JobPreview(job=job, moved=moved)
        except Mm2OffsetsError as error:
            found[job.name] = JobPreview(job=job, problem=str(error))
        if job.name in stands:
            checkpoint = stands[job.name]
            topics = {*checkpoint.positions, *(checkpoint.pending or {})}
            problems.add(*find_wrong_reads(job, topics, written))
    problems.raise_all(file="the manifest")
    for batch in _batches([job for job in jobs if job.name in stands], stands, request.options):
        found |= {each.job.name: each for each in _plan_batch(batch, stands, request)}
    return tuple(found[job.name] for job in jobs)


def _read(job: FleetJob, request: PreviewRequest) -> Checkpoint:
    return read_checkpoint_of(
        request.pair,
        request.open_place(job.checkpoint),
        open_path=request.open_place,
        # A lost source would cost each job a timeout.
        ask_source=request.options.read_source and request.mode is not FailoverMode.DISASTER,
    )


def _batches(
    jobs: Sequence[FleetJob], stands: Mapping[str, Checkpoint], options: PlanOptions
) -> Iterator[list[FleetJob]]:
    """Yield jobs that share no topic-partition, so that one plan answers for all of them.

    A plan adds up what it gives up: then each job has a plan of its own.
    """
    left = [*jobs]
    while left:
        taken: set[TopicPartition] = set()
        batch: list[FleetJob] = []
        for job in left:
            keys = _keys(stands[job.name])
            if taken.isdisjoint(keys) and (not batch or _alike(job, batch[0], options)):
                taken |= keys
                batch.append(job)
        yield batch
        left = [job for job in left if job not in batch]


def _alike(job: FleetJob, other: FleetJob, options: PlanOptions) -> bool:
    gives_up = options.give_up or job.give_up or other.give_up
    return not gives_up and job.changed_records == other.changed_records


def _keys(checkpoint: Checkpoint) -> set[TopicPartition]:
    return set(by_topic_partition(checkpoint.positions))


def _plan_batch(
    batch: Sequence[FleetJob], stands: Mapping[str, Checkpoint], request: PreviewRequest
) -> list[JobPreview]:
    try:
        plan, forecast = _plan(batch, stands, request)
    except Mm2OffsetsError as error:
        if len(batch) == 1:
            return [JobPreview(job=batch[0], problem=str(error))]
        # One of them holds the others up: which one shows when each is planned alone.
        return [each for job in batch for each in _plan_batch([job], stands, request)]
    return [_part(job, _keys(stands[job.name]), plan, forecast) for job in batch]


def _plan(
    batch: Sequence[FleetJob], stands: Mapping[str, Checkpoint], request: PreviewRequest
) -> tuple[FailoverPlan, FailoverForecast | None]:
    is_disaster = request.mode is FailoverMode.DISASTER
    positions: Positions = {}
    pending: Positions = {}
    for job in batch:
        checkpoint = stands[job.name]
        _merge(positions, checkpoint.positions)
        # A job that is asked to stop ends its batch.
        _merge(pending, checkpoint.pending or {} if is_disaster else {})
    job, options = batch[0], request.options
    options = replace(
        options,
        changed_records=options.changed_records or job.changed_records,
        give_up=options.give_up or job.give_up,
    )
    make = plan_from_what_is_left if is_disaster else plan_failover
    plan = make(request.pair, positions, pending=pending or None, options=options)
    if not is_disaster:
        return plan, None
    question = ForecastRequest(mode=request.mode, plan_digest=plan.to_json()["digest"])
    return plan, forecast_failover(request.pair, plan, question, archive=options.archive)


def _merge(positions: Positions, more: Positions) -> None:
    for topic, partitions in more.items():
        positions.setdefault(topic, {}).update(partitions)


def _part(
    job: FleetJob,
    keys: set[TopicPartition],
    plan: FailoverPlan,
    forecast: FailoverForecast | None,
) -> JobPreview:
    """Return the lines of one job."""
    lines = tuple(each for each in plan.partitions if each.translation.topic_partition in keys)
    if forecast is not None:
        costs = tuple(each for each in forecast.partitions if each.topic_partition in keys)
        forecast = replace(forecast, partitions=costs)
    return JobPreview(job=job, plan=replace(plan, partitions=lines), forecast=forecast)


def preview_to_json(previews: Sequence[JobPreview]) -> dict[str, Any]:
    """Return a preview as plain JSON, without its digest; the names are those of a plan."""
    totals = {name: _total(previews, name) for name in ("refused", "read_again", "at_risk")}
    return {
        "schema_version": 1,
        "totals": {
            "jobs": len(previews),
            "moved_before": sum(each.moved is not None for each in previews),
            "partitions": sum(each.partitions for each in previews),
            **shown_counts({one: sum(each.count(one) for each in previews) for one in Status}),
            "not_copied_yet": sum(each.not_copied_yet for each in previews),
            **totals,
            "max_reread": totals["read_again"],
        },
        "jobs": [_job_to_json(each) for each in previews],
    }


def _total(previews: Sequence[JobPreview], name: str) -> int | None:
    counts = [getattr(each, name) for each in previews]
    return None if None in counts else sum(counts)


def _job_to_json(preview: JobPreview) -> dict[str, Any]:
    return {
        "name": preview.job.name,
        "wave": preview.job.wave,
        "partitions": preview.partitions,
        **shown_counts({status: preview.count(status) for status in Status}),
        "not_copied_yet": preview.not_copied_yet,
        **{name: getattr(preview, name) for name in ("refused", "read_again", "at_risk")},
        "moved": preview.moved,
        "problem": preview.problem,
    }
