"""Bodies of requests and answers: mm2-offset-map's fields, and ours beside them."""

import math
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, FailFast, Field, Strict, WithJsonSchema
from pydantic.functional_validators import BeforeValidator, PlainValidator

from airflow_mm2_offsets.core import Status, Strategy
from airflow_mm2_offsets.core.positions import MAX_OFFSET

MAX_ITEMS = 100_000
MAX_NAME = 249  # org.apache.kafka.common.internals.Topic
MAX_PARTITION = 2**31 - 1
_LONGEST_TEXT = 32
_DIGITS = len(str(MAX_OFFSET))
NAME = r"^[a-zA-Z0-9._-]+$"


def _whole(value: object) -> object:
    """Return 1 for 1.0: in JSON both are the same number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _number(value: object) -> object:
    """Return a text of decimal digits as a number: some clients write large numbers as text."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _DIGITS:
        return int(value)
    return _whole(value)


def _loose(value: object) -> int | str:
    """Return a number or a short text: a wrong item gets its own message later."""
    value = _whole(value)
    if isinstance(value, str) and len(value) <= _LONGEST_TEXT:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError("give a number")


def _digits(maximum: int) -> WithJsonSchema:
    # Many clients use floats for numbers: they round 2**63 - 1 up to 2**63, which is invalid.
    below = maximum if float(maximum) <= maximum else int(math.nextafter(float(maximum), 0))
    number = {"type": "integer", "minimum": 0, "maximum": below}
    # One digit fewer than the maximum: every text that matches is a valid number.
    text = {"type": "string", "pattern": f"^[0-9]{{1,{len(str(maximum)) - 1}}}$"}
    return WithJsonSchema({"anyOf": [number, text]})


Topic = Annotated[
    str, Field(min_length=1, max_length=MAX_NAME, pattern=NAME, examples=["source.orders"])
]
Partition = Annotated[
    int,
    Strict(),
    Field(ge=0, le=MAX_PARTITION, examples=[0]),
    BeforeValidator(_number),
    _digits(MAX_PARTITION),
]
Offset = Annotated[
    int,
    Strict(),
    Field(ge=0, le=MAX_OFFSET, examples=[123]),
    BeforeValidator(_number),
    _digits(MAX_OFFSET),
]
Loose = Annotated[
    int | str,
    PlainValidator(_loose),
    WithJsonSchema(
        {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": _LONGEST_TEXT}]}
    ),
]
"""A number that may be invalid: then only its item fails."""


class TranslateRequest(BaseModel):
    """A position on the source."""

    topic: Topic
    partition: Partition
    offset: Offset
    """The next offset to read."""


class TranslateResponse(BaseModel):
    """The position on the target."""

    topic: str = Field(examples=["source.orders"])
    partition: int = Field(examples=[0])
    sourceOffset: int = Field(examples=[123])
    targetOffset: int = Field(examples=[454])
    """The next offset to read, by the requested strategy."""
    syncUpstreamOffset: int | None = Field(examples=[120])
    """The offset sync at or before the position; null if the first sync is after it."""
    syncTargetOffset: int | None = Field(examples=[453])
    strategy: Strategy
    status: Literal[Status.EXACT, Status.BOUNDED, Status.NOT_SAFE] = Field(examples=["bounded"])
    low: int = Field(examples=[454])
    """Lower bound of the true position."""
    high: int | None = Field(examples=[460])
    """Upper bound of the true position; null while MirrorMaker 2 may copy more."""
    reason: str = Field(examples=["lies between 120 -> 453 and 127 -> 460: ..."])
    basis: str = Field(examples=["between-syncs"])
    """What the answer rests on."""


class BatchItem(BaseModel):
    """A position; if it is invalid, its result says so."""

    partition: Loose = Field(examples=[0])
    startOffset: Loose = Field(examples=[123])


class BatchRequest(BaseModel):
    """Many positions of a topic."""

    topicName: Topic
    offsetList: Annotated[list[BatchItem], Field(max_length=MAX_ITEMS), FailFast()]


class ItemResult(BaseModel):
    """The answer for one position."""

    sourceOffset: int | str
    """As in the request."""
    targetOffset: int | None
    translationMethod: Literal["OFFSET_SYNC"]
    errorMessages: str | None
    """Null if there is an answer. The name is mm2-offset-map's: it is one text."""
    success: bool
    strategy: Strategy
    status: Status | None
    """Null if the item is not a position."""
    low: int | None
    high: int | None
    reason: str | None
    basis: str | None


class PartitionResult(BaseModel):
    """The answers of one partition, in the order of the request."""

    partition: int | str
    status: Literal["SUCCESS", "PARTIAL_SUCCESS", "FAILED"]
    offsetTranslations: list[ItemResult]


class BatchSummary(BaseModel):
    """Counts of a batch's results."""

    totalRequested: int
    successCount: int
    failureCount: int
    processTimeMs: int
    partitionProcessed: int


class BatchResponse(BaseModel):
    """The answers of a batch."""

    topicName: str
    sourceCluster: str
    targetCluster: str
    partitionResults: list[PartitionResult]
    summary: BatchSummary
    timestamp: datetime


class SourcePartition(BaseModel):
    """A partition of the source."""

    topic: str
    partition: int


class Sync(BaseModel):
    """An offset sync."""

    topic: str
    partition: int
    upstreamOffset: int
    targetOffset: int
    sourcePartition: SourcePartition


class SyncsResponse(BaseModel):
    """A page of offset syncs: by topic and partition, and there in the order they were written."""

    syncs: list[Sync]
    total: int
    """How many there are on all pages."""
    next: str | None = Field(examples=["source.orders/0/10000"])
    """The value of ``after`` for the next page; null on the last page."""


class StatusResponse(BaseModel):
    """The state of the syncs in memory."""

    topic: str = Field(examples=["mm2-offset-syncs.source.internal"])
    refreshedAt: datetime | None
    """When the syncs were last read; null before the first read."""
    syncCount: int
    partitionCount: int
    skippedCount: int
    """Records of the topic that are not offset syncs."""
    ageSeconds: float | None
    stale: bool
    """Whether the last refresh failed; the older syncs are still served."""
    error: str | None
    """Why it failed."""
    sourceCluster: str
    targetCluster: str


class Health(BaseModel):
    """The state of this server."""

    status: str = Field(examples=["ok"])
