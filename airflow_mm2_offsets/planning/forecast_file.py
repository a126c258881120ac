"""Keeps a forecast in a file, so that a retry says the same; operators and command line call it."""

import logging

from upath import UPath

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.core.forecast import FailoverForecast, ForecastRequest
from airflow_mm2_offsets.planning.forecast import forecast_failover
from airflow_mm2_offsets.planning.kept_file import read_kept_file, write_kept_file

log = logging.getLogger(__name__)


def read_forecast(path: UPath) -> FailoverForecast | None:
    """Return the forecast in a file; None when there is no such file.

    Raises:
        PlanError: The file can't be read, was not made by this release, or was changed since.
    """
    step = "delete the file to have a new one made"
    return read_kept_file(path, FailoverForecast.from_json, kind="forecast", step=step)


def save_forecast(path: UPath, forecast: FailoverForecast) -> None:
    """Write the forecast to a file, whole or not at all.

    Raises:
        PlanError: The file can't be written.
    """
    write_kept_file(path, forecast.to_json())


def forecast_once(
    pair: ClusterPair,
    plan: FailoverPlan,
    request: ForecastRequest,
    *,
    archive: SyncArchive | None = None,
    path: UPath | None = None,
) -> FailoverForecast:
    """Return the kept forecast of the same request; else make one, and keep it.

    A forecast of another request is made anew. For the same plan it takes the source as lost since
    the kept one found it lost, so that the range does not grow while people decide. Before another
    plan the job may have run on, and its source may have been written to.

    Raises:
        PlanError: The kept forecast is damaged or was changed, or the file can't be written.
        Mm2OffsetsError: See ``forecast_failover``.
    """
    kept = read_forecast(path) if path is not None else None
    if kept is not None and kept.request == request:
        log.info("Took the forecast of %s from %s", kept.created_at, path)
        return kept
    first_lost_at = _first_lost_at(kept, request) if kept is not None else None
    forecast = forecast_failover(pair, plan, request, archive=archive, first_lost_at=first_lost_at)
    if path is not None:
        save_forecast(path, forecast)
    return forecast


def _first_lost_at(kept: FailoverForecast, request: ForecastRequest) -> str | None:
    """Return when a kept forecast found the source lost; None if that says nothing now."""
    is_same_plan = kept.request.plan_digest == request.plan_digest
    return kept.lost_at if is_same_plan and kept.request.lost_at is None else None
