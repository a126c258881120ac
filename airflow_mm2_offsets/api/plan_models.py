"""What is asked and answered about a plan."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from airflow_mm2_offsets.api.models import MAX_ITEMS, Offset, Topic
from airflow_mm2_offsets.core import OnUnmapped, Strategy

PartitionKey = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,8})$")]
"""No topic has more partitions; without leading zeros no two texts are the same number."""
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


class PlanRequest(BaseModel):
    """A job's positions, and what its user decides."""

    model_config = ConfigDict(extra="forbid")

    positions: PositionsIn
    """Topic, then partition, then the next offset to read on the source."""
    pending: PositionsIn | None = None
    """Where the batch ends that the job began and did not commit."""
    strategy: Strategy = Strategy.SAFE
    on_unmapped: OnUnmapped = OnUnmapped.FAIL
    time: datetime | None = None
    """For ``timestamp``: how old the position is; null takes the source's record there."""
    margin_seconds: float = Field(300, ge=0, le=10**7)
    """For ``timestamp``: how much earlier to start."""
    read_source: bool = True
    """False where the source is gone."""
    sole_writer: bool = False
    """Your word that only MirrorMaker 2 writes to the topics on the target, in order, that they are
    not compacted, and that no transform makes two copies of one record differ."""
    changed_records: bool = False
    """A transform changes records on the way, so that a record may differ from its copy. Not
    needed where Kafka Connect can be asked."""
    max_bytes: int = Field(256 * 2**20, ge=0, le=2**30)
    """Of each cluster's records, how much may be read as evidence."""


class PlanResponse(BaseModel):
    """A failover plan, as in XCom; offsets are text, for they may pass 2**53."""

    model_config = ConfigDict(extra="allow")

    schema_version: int
    created_at: datetime
    strategy: Strategy
    verdict: Literal["ready", "refused"]
    totals: dict[str, int | None]
    syncs: dict[str, Any]
    evidence: dict[str, int]
    clusters: dict[str, dict[str, Any]]
    """The ids of both clusters and of the topics there."""
    partitions: list[dict[str, Any]]
    digest: str
    """SHA-256 of all the rest."""
