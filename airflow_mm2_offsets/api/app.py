"""Builds the FastAPI app, for the standalone server and for Airflow's API server."""

from collections.abc import Callable
from typing import Any

from fastapi import Depends, FastAPI

from airflow_mm2_offsets import __version__
from airflow_mm2_offsets.api import batches, health, plan, syncs, translate
from airflow_mm2_offsets.api.description import add_description
from airflow_mm2_offsets.api.metrics import Metrics
from airflow_mm2_offsets.api.middleware import Limits, RequestLimiter
from airflow_mm2_offsets.api.models import BatchRequest, TranslateRequest
from airflow_mm2_offsets.api.pairs import PairProvider
from airflow_mm2_offsets.api.plan_models import PlanRequest
from airflow_mm2_offsets.api.problems import RESPONSES, install
from airflow_mm2_offsets.api.workers import make_workers

PREFIX = "/api/v1/offsets"
_LIMITS = Limits()
_BODIES = (TranslateRequest, BatchRequest, PlanRequest)


def create_app(
    pairs: PairProvider,
    *,
    auth: Callable[..., Any],
    anonymous_probes: bool = True,
    limits: Limits = _LIMITS,
) -> FastAPI:
    """Return an app that serves ``pairs``; nothing is read yet.

    Args:
        pairs: Finds the pairs of clusters; their indexes are refreshed in the background.
        auth: A FastAPI dependency of every route but the probes, the description too; it
            raises unless the request is authorized.
        anonymous_probes: Whether ``/healthz`` and ``/readyz`` need no login.
        limits: The size and the time of a request's body.
    """
    app = FastAPI(
        title="airflow-mm2-offsets",
        version=__version__,
        summary="Translates Kafka positions from a MirrorMaker 2 source to its target.",
        openapi_url=None,  # ``add_description`` has routes that need a login.
        redirect_slashes=False,  # An unknown path is 404, not a redirect.
    )
    app.state.pairs = pairs
    app.state.metrics = Metrics(pairs)
    app.state.workers = make_workers()
    app.add_middleware(RequestLimiter, limits=limits, metrics=app.state.metrics)
    install(app)
    login = [Depends(auth)]
    for router in (translate.router, batches.router, syncs.router, plan.router):
        app.include_router(router, prefix=PREFIX, dependencies=login, responses=RESPONSES)
    app.include_router(health.metrics_router, dependencies=login, responses=RESPONSES)
    app.include_router(
        health.router, dependencies=[] if anonymous_probes else login, responses=RESPONSES
    )
    add_description(app, login, bodies=_BODIES)
    return app
