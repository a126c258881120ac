"""Forecasts what a failover costs, before anything is started.

The operator and the command line call ``forecast_failover``.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.archive.incremental_read import iso_time, now_in_milliseconds
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Direction, FailoverPlan
from airflow_mm2_offsets.core.forecast import FactAge, FailoverForecast, ForecastRequest
from airflow_mm2_offsets.core.forecast_rules import RATE_FACTOR
from airflow_mm2_offsets.core.times import parse_zoned
from airflow_mm2_offsets.errors import ConfigurationError, PlanError
from airflow_mm2_offsets.planning.forecast_lines import Readings, forecast_partitions
from airflow_mm2_offsets.planning.forecast_reads import (
    newest_heartbeat,
    read_copy_facts,
    read_source_ends,
    read_uncopied,
    read_undecided,
)
from airflow_mm2_offsets.planning.ids import read_ids
from airflow_mm2_offsets.planning.lost_parts import LostParts, quick, with_what_is_left
from airflow_mm2_offsets.planning.offset_evidence import PairWatermarks
from airflow_mm2_offsets.planning.options import EXAMPLE_TIME, PlanOptions

_CLOCKS = 60_000
"""Milliseconds by which clocks may disagree."""


def forecast_failover(
    pair: ClusterPair,
    plan: FailoverPlan,
    request: ForecastRequest,
    *,
    archive: SyncArchive | None = None,
    first_lost_at: str | None = None,
) -> FailoverForecast:
    """Return how many records a failover by ``plan`` loses and reads again, as ranges.

    Args:
        pair: The clusters; the target must answer.
        plan: What ``plan_failover`` or ``plan_from_what_is_left`` made.
        request: What the user says.
        archive: Its watermarks bound the end of a source that is lost.
        first_lost_at: When an earlier forecast found the source lost, so that a retry says the
            same: ISO 8601.

    Raises:
        ConfigurationError: ``request.lost_at`` is not a time, or lies in the future.
        PlanError: A cluster or topic has another id than in the plan.
        ArchiveError: The archive is damaged, of another pair, or out of reach.
        ClusterUnreachableError: The target does not answer.
    """
    now = now_in_milliseconds()
    told = parse_lost_at(request)
    first = _milliseconds(first_lost_at, "lost_at")
    # The text has whole seconds, and the source may have been written to until the next one.
    first_end = now if first is None else min(now, first + 999)
    lost_at = first_end if told is None else told

    def forecast(lost: LostParts) -> FailoverForecast:
        left = quick(pair)
        _check_ids(left, plan, ask_source=lost.source is None)
        readings = _read(left, plan, request, archive, lost, now=now, lost_at=lost_at)
        heartbeat = newest_heartbeat(left.mirrored)
        readings = replace(readings, lost_at=max(lost_at, _last_sign(readings, heartbeat)))
        is_live = len(readings.source_ends) == len(readings.target)
        return FailoverForecast(
            created_at=iso_time(now),
            request=request,
            lost_at=None if is_live else iso_time(readings.lost_at),
            partitions=forecast_partitions(left, plan, readings),
            ages=tuple(_ages(readings, request, heartbeat)),
            assumptions=tuple(_assumptions(left, request, readings, told, is_live=is_live)),
            left_out=lost.left_out(),
        )

    return with_what_is_left(pair, plan.source_positions(), forecast)


def parse_lost_at(request: ForecastRequest) -> int | None:
    """Return when the source was lost by the user's word, in milliseconds since 1970.

    Raises:
        ConfigurationError: A time of the request is none, or it lies in the future.
    """
    now = now_in_milliseconds()
    _milliseconds(request.positions_as_of, "positions_as_of")
    told = _milliseconds(request.lost_at, "lost_at")
    if told is not None and told > now + _CLOCKS:
        raise ConfigurationError(
            f"{iso_time(told)} lies in the future, it is {iso_time(now)}: give the time when the "
            f"source was lost, or none",
            setting="lost_at",
        )
    return told


def _check_ids(pair: ClusterPair, plan: FailoverPlan, *, ask_source: bool) -> None:
    ids = read_ids(pair, plan.source_positions(), ask_source=ask_source)
    for change in plan.ids.changes(ids):
        raise PlanError(
            f"{change.field} is {change.planned!r} in the plan of {plan.created_at}, and "
            f"{change.now!r} now: its offsets are of another cluster or topic; have a new plan made"
        )


def _milliseconds(text: str | None, setting: str) -> int | None:
    if not text:
        return None
    time = parse_zoned(text)
    if time is None:
        raise ConfigurationError(
            f"{text!r} is not a time with its zone, such as {EXAMPLE_TIME}", setting=setting
        )
    return int(time.timestamp() * 1000)


def _last_sign(readings: Readings, heartbeat: str | None) -> int:
    """Return when the source surely lived, in milliseconds since 1970; 0 if nothing says so."""
    if readings.is_way_home:  # archive and heartbeats are of the cluster that the job moves to
        return 0
    seen = [each[-1].time for each in readings.facts.samples.values() if each]
    return max([*seen, _milliseconds(heartbeat, "heartbeat") or 0])


def _read(
    pair: ClusterPair,
    plan: FailoverPlan,
    request: ForecastRequest,
    archive: SyncArchive | None,
    lost: LostParts,
    *,
    now: int,
    lost_at: int,
) -> Readings:
    plans = {each.translation.topic_partition: each for each in plan.partitions}
    is_way_home = pair.direction is Direction.EXCHANGED
    # The archive is of MirrorMaker 2's source: on the way home, that is the job's target.
    options = PlanOptions(archive=None if is_way_home else archive)
    facts = read_copy_facts(pair, plans, lost, options, iso_time(now))
    # The source before the target: what is copied meanwhile only makes the ranges wider.
    ends = read_source_ends(pair, plans, lost)
    firsts = {
        key: max(each.translation.position, facts.copied_to(key) + 1) for key, each in plans.items()
    }
    uncopied = read_uncopied(pair, firsts, ends)
    return Readings(
        now=now,
        lost_at=lost_at,
        max_rate=request.max_rate,
        is_older=request.positions_as_of is not None,
        facts=facts,
        target=PairWatermarks.read(pair, plans, ask_source=False).target,
        source_ends=ends,
        uncopied=uncopied,
        undecided_from=read_undecided(pair, plans),
        is_archive_alone=plan.syncs_as_of is not None,
        source_stays=not request.policy.source_may_be_lost,
        is_way_home=is_way_home,
    )


def _ages(readings: Readings, request: ForecastRequest, heartbeat: str | None) -> Iterator[FactAge]:
    facts = readings.facts
    times = {
        "newest sync": facts.newest_sync_as_of,
        "archive": facts.archive_as_of,
        "newest heartbeat from the source": heartbeat,
        "Connect's offsets": facts.connect_as_of,
        "positions": request.positions_as_of,
    }
    for fact, as_of in times.items():
        if as_of:
            age = readings.now / 1000 - datetime.fromisoformat(as_of).timestamp()
            yield FactAge(fact=fact, as_of=as_of, seconds=round(max(0.0, age), 3))


def _assumptions(
    pair: ClusterPair,
    request: ForecastRequest,
    readings: Readings,
    told: int | None,
    *,
    is_live: bool,
) -> Iterator[str]:
    if pair.has_syncs:
        yield (
            "MirrorMaker 2 copied in order, up to the last sync and to what Connect has committed."
        )
    else:
        yield "The copies keep offsets and order: all before the target's end is copied."
    if is_live:
        if not request.policy.source_may_be_lost:
            yield "The source stays until MirrorMaker 2 has copied the rest of its records."
        return
    yield "The source stays lost: MirrorMaker 2 copies nothing more from it."
    if told is None:
        yield (
            f"The source was lost by {iso_time(readings.lost_at)}, when the first forecast was "
            f"made; give lost_at if you know the time: an earlier one narrows the range."
        )
    elif readings.lost_at > told:
        yield (
            f"The source was lost at {iso_time(readings.lost_at)}: then it was still seen by the "
            f"archive or sent a heartbeat. So lost_at, {iso_time(told)}, does not count."
        )
    if request.max_rate is not None:
        yield (
            f"No partition was written at more than {request.max_rate:g} records/s between the "
            f"archive's last run and the loss (max_rate)."
        )
    elif any(len(each) > 1 for each in readings.facts.samples.values()):
        yield (
            f"After the archive's last run, no partition was written at more than {RATE_FACTOR:g} "
            f"times the highest rate that archive and target show; give max_rate if you know "
            f"better."
        )
