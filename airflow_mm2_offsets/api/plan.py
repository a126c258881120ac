"""Plans the failover of a job, as Airflow's operators do."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

from fastapi import APIRouter

from airflow_mm2_offsets.api.models import MAX_ITEMS
from airflow_mm2_offsets.api.pairs import Served
from airflow_mm2_offsets.api.plan_models import PlanRequest, PlanResponse
from airflow_mm2_offsets.api.problems import Json, Problem
from airflow_mm2_offsets.core import OnUnmapped, Positions, check_positions
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.service.fallback import FallbackOptions
from airflow_mm2_offsets.service.plan_options import PlanOptions
from airflow_mm2_offsets.service.planning import plan_failover

router = APIRouter(tags=["plan"])


@router.post("/plan", response_model=PlanResponse)
def plan(served: Served, asked: PlanRequest) -> Json:
    """Translate all of a job's positions, with evidence read from both clusters now."""
    margin = timedelta(seconds=asked.margin_seconds)
    time = _aware(asked.time, margin) if asked.time else None
    options = PlanOptions(
        strategy=asked.strategy,
        read_source=asked.read_source,
        sole_writer=asked.sole_writer,
        changed_records=asked.changed_records,
        max_bytes=asked.max_bytes,
        archive=served.archive,
        fallback=FallbackOptions(
            on_unmapped=asked.on_unmapped,
            time=time,
            margin=margin,
        ),
    )
    positions = _positions(asked.positions)
    pending = _positions(asked.pending) if asked.pending else None
    try:
        made = plan_failover(served.pair, positions, pending=pending, options=options)
    except ConfigurationError as error:
        if asked.on_unmapped is not OnUnmapped.TIMESTAMP or time:
            raise
        raise Problem(HTTPStatus.CONFLICT, str(error), field="body.time") from None
    return Json(made.to_json())


def _aware(time: datetime, margin: timedelta) -> datetime:
    """Return a time that Kafka can be asked for, less the margin: none is before 1970."""
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return max(aware, datetime.fromtimestamp(0, UTC) + margin)


def _positions(given: Mapping[str, Mapping[str, int]]) -> Positions:
    positions = check_positions(given)
    count = sum(len(partitions) for partitions in positions.values())
    if count > MAX_ITEMS:
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"body.positions: {count} partitions; give {MAX_ITEMS} at most",
            field="body.positions",
        )
    return positions
