"""Probes for orchestrators, and metrics for Prometheus."""

from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST

from airflow_mm2_offsets.api.models import Health
from airflow_mm2_offsets.api.problems import Json, Problem

if TYPE_CHECKING:
    from airflow_mm2_offsets.api.metrics import Metrics
    from airflow_mm2_offsets.api.pairs import PairProvider

router = APIRouter(tags=["server"])
metrics_router = APIRouter(tags=["server"])


@router.get("/healthz", response_model=Health)
async def healthz() -> Json:
    """Tell that the server runs."""
    return Json({"status": "ok"})


@router.get("/readyz", response_model=Health)
async def readyz(request: Request) -> Json:
    """Tell whether every index has been read; a stale index still serves, and counts as ready."""
    pairs: PairProvider = request.app.state.pairs
    if unread := sum(served.cache.state.syncs is None for served in pairs.served().values()):
        raise Problem(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"pairs of clusters whose offset syncs have not been read yet: {unread}",
        )
    return Json({"status": "ready"})


@metrics_router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def show(request: Request) -> Response:
    """Return the metrics of the server and of each index, for Prometheus."""
    all_metrics: Metrics = request.app.state.metrics
    return Response(all_metrics.render(), headers={"Content-Type": CONTENT_TYPE_LATEST})
