"""What moving a fleet would cost, from where its jobs stand now; it changes nothing.

The jobs run on, so each is planned again when it has stopped; what is approved here bounds that
plan. Jobs that read different topic-partitions are planned together: the syncs are read once, and
a lost source is waited for once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan, Positions, Status, TopicPartition
from airflow_mm2_offsets.core.forecast import FailoverForecast, ForecastRequest
from airflow_mm2_offsets.core.partition_plan import PartitionPlan
from airflow_mm2_offsets.core.plan import shown_counts
from airflow_mm2_offsets.core.policy import Policy
from airflow_mm2_offsets.core.positions import by_topic_partition
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.fleet.order import is_at
from airflow_mm2_offsets.moves.overview import JobOverview
from airflow_mm2_offsets.planning.forecast import forecast_failover
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.partial_plan import plan_from_what_is_left
from airflow_mm2_offsets.planning.plan import STILL_COPYING, plan_failover

NUMBERS = ("refused", "read_again_at_most", "lost_at_most")
"""What decides about a move; a journal has the same names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """Where a job stands, and what it is planned with."""

    name: str
    pair: ClusterPair
    positions: Positions
    pending: Positions | None
    options: PlanOptions

    @property
    def topic_partitions(self) -> set[TopicPartition]:
        """What it reads."""
        return set(by_topic_partition(self.positions))

    def is_planned_like(self, other: "Stand") -> bool:
        """Tell whether one plan may answer for both."""
        return self.pair is other.pair and self.options is other.options

    @property
    def is_planned_alone(self) -> bool:
        """Whether it needs a plan of its own: a plan adds up what it gives up."""
        return bool(self.options.give_up)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a job's move would cost."""

    problem: str | None = None
    """Why nothing is known of it."""
    plan: FailoverPlan | None = None
    forecast: FailoverForecast | None = None
    """In a disaster. Otherwise the move waits for MirrorMaker 2."""

    @property
    def _settled(self) -> tuple[PartitionPlan, ...]:
        """The partitions whose answer does not become better while MirrorMaker 2 copies."""
        lines = self.plan.partitions if self.plan else ()
        if self.forecast is not None:
            return lines
        return tuple(each for each in lines if each.translation.basis not in STILL_COPYING)

    @property
    def refused(self) -> int | None:
        """Topic-partitions without an answer; None: not known."""
        return None if self.problem else self._count(Status.REFUSED)

    @property
    def read_again_at_most(self) -> int | None:
        """The most records read again; None: not known."""
        if self.forecast is not None:
            return self.forecast.read_again.at_most
        answered = [each for each in self._settled if each.start is not None]
        counts = [each.max_reread for each in answered]
        return None if self.problem or None in counts else sum(each for each in counts if each)

    @property
    def lost_at_most(self) -> int | None:
        """The most records lost; None: not known.

        While the source is there, only those that are given up or that an unsafe answer loses.
        """
        if self.forecast is not None:
            return self.forecast.at_risk.at_most
        if self.problem or self.plan is None:
            return None if self.problem else 0
        return self.plan.given_up + sum(answer.max_lost for answer in self.plan.not_safe)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        partitions = len(self.plan.partitions) if self.plan else 0
        return {
            "partitions": partitions,
            **shown_counts({status: self._count(status) for status in Status}),
            "not_copied_yet": partitions - len(self._settled),
            **{name: getattr(self, name) for name in NUMBERS},
            "problem": self.problem,
        }

    def _count(self, status: Status) -> int:
        return sum(each.translation.status is status for each in self._settled)


def find_costs(stands: Sequence[Stand], policy: Policy) -> dict[str, Cost]:
    """Return what the move of each job would cost, by its name.

    A job that can't be planned does not keep the others from it.
    """
    costs: dict[str, Cost] = {}
    for batch in _batches(stands):
        costs |= _plan_batch(batch, policy)
    return costs


def _batches(stands: Sequence[Stand]) -> Iterator[list[Stand]]:
    """Yield jobs that share no topic-partition, so that one plan answers for all of them."""
    left = [*stands]
    while left:
        first = left[0]
        batch, taken = [first], first.topic_partitions
        for stand in left[1:] if not first.is_planned_alone else ():
            if stand.is_planned_like(first) and taken.isdisjoint(stand.topic_partitions):
                batch.append(stand)
                taken |= stand.topic_partitions
        yield batch
        left = [stand for stand in left if stand not in batch]


def _plan_batch(batch: Sequence[Stand], policy: Policy) -> dict[str, Cost]:
    try:
        plan, forecast = _plan(batch, policy)
    except Mm2OffsetsError as error:
        if len(batch) == 1:
            return {batch[0].name: Cost(problem=str(error))}
        # One of them holds the others up: which one shows when each is planned alone.
        return {
            name: cost for stand in batch for name, cost in _plan_batch([stand], policy).items()
        }
    return {stand.name: _part(stand, plan, forecast) for stand in batch}


def _plan(batch: Sequence[Stand], policy: Policy) -> tuple[FailoverPlan, FailoverForecast | None]:
    pair, options = batch[0].pair, batch[0].options
    positions = _merge([stand.positions for stand in batch])
    if not policy.source_may_be_lost:  # a job that is asked to stop ends its batch
        return plan_failover(pair, positions, options=options), None
    pending = _merge([stand.pending or {} for stand in batch])
    plan = plan_from_what_is_left(pair, positions, pending=pending or None, options=options)
    request = ForecastRequest(policy=policy, plan_digest=str(plan.to_json()["digest"]))
    return plan, forecast_failover(pair, plan, request, archive=options.archive)


def _merge(many: Sequence[Positions]) -> Positions:
    merged: Positions = {}
    for positions in many:
        for topic, partitions in positions.items():
            merged.setdefault(topic, {}).update(partitions)
    return merged


def _part(stand: Stand, plan: FailoverPlan, forecast: FailoverForecast | None) -> Cost:
    """Return the lines of one job."""
    keys = stand.topic_partitions
    lines = tuple(each for each in plan.partitions if each.translation.topic_partition in keys)
    if forecast is not None:
        own = tuple(each for each in forecast.partitions if each.topic_partition in keys)
        forecast = replace(forecast, partitions=own)
    return Cost(plan=replace(plan, partitions=lines), forecast=forecast)


def preview_to_json(
    overviews: Sequence[JobOverview], costs: Mapping[str, Cost], to: str
) -> dict[str, Any]:
    """Return where each job is and what its move would cost, and the totals, as plain JSON."""
    jobs = [
        {
            "name": each.job.name,
            "wave": each.job.wave,
            "where": str(each),
            "is_there": is_at(each, to),
            **costs.get(each.job.name, Cost()).to_json(),
        }
        for each in overviews
    ]
    names = ("partitions", "not_copied_yet", *(each.value for each in Status), *NUMBERS)
    totals = {name: _total([job.get(name, 0) for job in jobs]) for name in names}
    if not totals[Status.NOT_SAFE.value]:
        del totals[Status.NOT_SAFE.value]
    there = sum(job["is_there"] for job in jobs)
    return {
        "schema_version": 1,
        "totals": {"jobs": len(jobs), "there_already": there, **totals},
        "jobs": jobs,
    }


def _total(counts: Sequence[Any]) -> int | None:
    return None if None in counts else sum(counts)
