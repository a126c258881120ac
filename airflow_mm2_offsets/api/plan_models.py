"""Bodies of requests for a plan, and of the answers."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from airflow_mm2_offsets.api.models import MAX_ITEMS, Offset, Topic
from airflow_mm2_offsets.core import OnUnmapped, Strategy, Verdict
from airflow_mm2_offsets.planning.options import PLAN_OPTIONS, PlanOptions

PartitionKey = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,8})$")]
"""At most 999,999,999, without leading zeros."""
_CLOSED: JsonDict = {"additionalProperties": False}  # keys that match no pattern are refused
PositionsIn = Annotated[
    dict[
        Topic,
        Annotated[
            dict[PartitionKey, Offset],
            Field(min_length=1, max_length=MAX_ITEMS, json_schema_extra=_CLOSED),
        ],
    ],
    Field(
        min_length=1,
        max_length=1000,
        json_schema_extra=_CLOSED,
        examples=[{"orders": {"0": 2607, "1": "2598"}}],
    ),
]


def _option(name: str, *, maximum: float | None = None) -> Any:  # noqa: ANN401 - as pydantic types it
    option = PLAN_OPTIONS[name]
    default: Any = option.default
    return Field(
        default,
        description=option.metadata["explanation"],
        ge=option.metadata.get("minimum"),
        le=maximum or option.metadata.get("maximum"),
    )


class PlanRequest(BaseModel):
    """A job's positions, and the options of the plan."""

    model_config = ConfigDict(extra="forbid")

    positions: PositionsIn
    """Topic, then partition, then the next offset to read on the source."""
    pending: PositionsIn | None = None
    """The end of the batch that the job began and did not commit."""
    strategy: Strategy = _option("strategy")
    read_source: bool = _option("read_source")
    sole_writer: bool = _option("sole_writer")
    changed_records: bool = _option("changed_records")
    max_evidence_bytes: int = _option("max_evidence_bytes", maximum=2**30)
    on_unmapped: OnUnmapped = _option("on_unmapped")
    unmapped_time: AwareDatetime | None = _option("unmapped_time")
    unmapped_margin: float = _option("unmapped_margin")
    give_up: int = _option("give_up", maximum=2**63 - 1)

    def options(self) -> PlanOptions:
        """Return the options for the planner."""
        return PlanOptions(**{name: getattr(self, name) for name in PLAN_OPTIONS})


class PlanResponse(BaseModel):
    """A failover plan, as in XCom; offsets are text, since they may pass 2**53."""

    model_config = ConfigDict(extra="allow")

    schema_version: int
    created_at: datetime
    strategy: Strategy
    verdict: Verdict
    totals: dict[str, int | None]
    syncs: dict[str, Any]
    evidence: dict[str, int]
    clusters: dict[str, dict[str, Any]]
    """The ids of both clusters and of the topics there."""
    partitions: list[dict[str, Any]]
    digest: str
    """SHA-256 of the other fields."""
