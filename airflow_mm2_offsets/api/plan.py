"""The route that plans the failover of a job, as Airflow's operators do."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends

from airflow_mm2_offsets.api.body import body_schema, json_body
from airflow_mm2_offsets.api.models import MAX_ITEMS
from airflow_mm2_offsets.api.pairs import Served, ServedPair
from airflow_mm2_offsets.api.plan_models import PlanRequest, PlanResponse
from airflow_mm2_offsets.api.problems import Json, Problem, problem_of
from airflow_mm2_offsets.api.workers import PlanWorkers
from airflow_mm2_offsets.core import Positions, check_positions
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.planning.plan import plan_failover

router = APIRouter(tags=["plan"])


PlanBody = Annotated[PlanRequest, Depends(json_body(PlanRequest))]


@router.post("/plan", response_model=PlanResponse, openapi_extra=body_schema(PlanRequest))
async def plan(served: Served, workers: PlanWorkers, request: PlanBody) -> Json:
    """Translate all of a job's positions, with evidence read from both clusters now."""
    return await workers.run(partial(_plan, served, request))


def _plan(served: ServedPair, request: PlanRequest) -> Json:
    options = replace(request.options(), archive=served.archive)
    positions = _positions(request.positions)
    pending = _positions(request.pending) if request.pending else None
    try:
        failover_plan = plan_failover(served.pair, positions, pending=pending, options=options)
    except ConfigurationError as error:
        if "setting" not in error.fields:
            raise
        field = f"body.{error.fields['setting']}"
        raise problem_of(error, HTTPStatus.CONFLICT, field=field) from None
    return Json(failover_plan.to_json())


def _positions(body: Mapping[str, Mapping[str, int]]) -> Positions:
    positions = check_positions(body)
    count = sum(len(partitions) for partitions in positions.values())
    if count > MAX_ITEMS:
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"body.positions: {count} partitions; give {MAX_ITEMS} at most",
            field="body.positions",
        )
    return positions
