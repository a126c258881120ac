"""The translations of all of a job's partitions, with totals and verdict.

``planning`` makes plans. XCom, REST, command line and page show a plan as ``to_json`` writes it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from airflow_mm2_offsets.core.brief import check_whole
from airflow_mm2_offsets.core.ids import PairIds
from airflow_mm2_offsets.core.naming import Direction
from airflow_mm2_offsets.core.offset_mapping import OffsetMapping
from airflow_mm2_offsets.core.partition_plan import (
    PartitionPlan,
    check_bounds,
    partition_from_json,
    partition_to_json,
)
from airflow_mm2_offsets.core.positions import Positions
from airflow_mm2_offsets.core.result import Status, Strategy, Translation
from airflow_mm2_offsets.errors import TranslationRefusedError

SCHEMA_VERSION = 2
"""2: it holds the ids of clusters and topics, and a digest."""


class Verdict(StrEnum):
    """Whether the target job can be started from a plan."""

    READY = "ready"
    REFUSED = "refused"
    NOT_SAFE = "not_safe"
    """A partition starts above its lower bound, by strategy linear or kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A part of the pair that a plan was made without, because it did not answer."""

    part: str
    """``source``, ``syncs topic`` or ``Connect``."""
    reason: str

    def to_json(self) -> dict[str, str]:
        """Return plain JSON."""
        return {"part": self.part, "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverPlan:
    """Where a job continues on the target cluster, and why there."""

    created_at: str
    """ISO 8601, UTC."""
    strategy: Strategy
    syncs_read: int
    """Records of the offset-syncs topic that the answers rest on."""
    syncs_skipped: int
    """Records of that topic that are not offset syncs."""
    partitions: tuple[PartitionPlan, ...]
    source_records_read: int = 0
    """Records of the source that were read as evidence."""
    target_records_read: int = 0
    """Records of the target that were read as evidence."""
    syncs_as_of: str | None = None
    """The archive's time, if only the archive was read and not the topic: ISO 8601, UTC."""
    ids: PairIds = field(default_factory=PairIds)
    """The clusters and topics that the offsets belong to."""
    run_id: str | None = None
    """Airflow's id of the DAG run that made the plan; None outside Airflow."""
    left_out: tuple[LeftOut, ...] = ()
    """What the plan was made without, because it did not answer."""
    direction: Direction = Direction.FORWARD
    """Exchanged: the job goes back to where MirrorMaker 2 copies from."""
    mapping: OffsetMapping = OffsetMapping.OFFSET_SYNCS
    """What the answers rest on: offset syncs, or a copy that keeps offsets."""

    @property
    def refused(self) -> tuple[Translation, ...]:
        """The partitions with neither an answer nor a fallback."""
        return tuple(plan.translation for plan in self.partitions if plan.start is None)

    @property
    def not_safe(self) -> tuple[Translation, ...]:
        """The partitions whose answer may lose records."""
        answers = (plan.translation for plan in self.partitions if plan.fallback is None)
        return tuple(answer for answer in answers if answer.max_lost)

    @property
    def fallbacks(self) -> int:
        """How many partitions start where the user's choice, not a proof, says."""
        return sum(plan.fallback is not None for plan in self.partitions)

    @property
    def given_up(self) -> int:
        """The most records that are lost because the user gave them up: never copied."""
        return sum(plan.given_up for plan in self.partitions)

    @property
    def verdict(self) -> Verdict:
        """Ready, unless a partition is refused or its answer is not safe."""
        if self.refused:
            return Verdict.REFUSED
        return Verdict.NOT_SAFE if self.not_safe else Verdict.READY

    @property
    def max_reread(self) -> int | None:
        """The most records that the target job can process again; None when not known."""
        counts = [partition.max_reread for partition in self.partitions]
        return None if None in counts else sum(count for count in counts if count)

    def count(self, status: Status) -> int:
        """Return how many partitions have ``status``."""
        return sum(plan.translation.status is status for plan in self.partitions)

    def counts(self) -> dict[str, int]:
        """Return how many partitions have each status; see ``shown_counts``."""
        return shown_counts({status: self.count(status) for status in Status})

    def source_positions(self) -> Positions:
        """Return where the job stands, by the source's topic names."""
        positions: Positions = {}
        for plan in self.partitions:
            topic, partition = plan.translation.topic_partition
            positions.setdefault(topic, {})[partition] = plan.translation.position
        return positions

    def target_positions(self) -> Positions:
        """Return where the job continues, by the target's topic names.

        Raises:
            TranslationRefusedError: A partition is refused or its answer is not safe; each is named
                with its reason.
        """
        self.check()
        positions: Positions = {}
        for plan in self.partitions:
            if plan.start is not None:
                positions.setdefault(plan.target_topic, {})[plan.translation.partition] = plan.start
        return positions

    def check(self) -> None:
        """Raise TranslationRefusedError, with each reason, unless every partition has a safe start.

        A fallback that the user has chosen is a start.
        """
        if problems := (*self.refused, *self.not_safe):
            reasons = "\n".join(
                f"  {answer.topic_partition} at {answer.position}: {answer.reason}"
                for answer in problems
            )
            raise TranslationRefusedError(
                f"{len(problems)} of {len(self.partitions)} partitions have no answer that "
                f"is known to lose nothing:\n{reasons}"
            )

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain JSON; offsets are text, for they may pass 2**53."""
        plan: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "created_at": self.created_at,
            "strategy": self.strategy.value,
            "verdict": self.verdict.value,
            "totals": {
                "partitions": len(self.partitions),
                **self.counts(),
                "fallback": self.fallbacks,
                "max_reread": self.max_reread,
            },
            "syncs": {
                "read": self.syncs_read,
                "skipped": self.syncs_skipped,
                "as_of": self.syncs_as_of,
            },
            "evidence": {
                "source_records": self.source_records_read,
                "target_records": self.target_records_read,
            },
            "clusters": self.ids.to_json(),
            "partitions": [partition_to_json(partition) for partition in self.partitions],
        }
        if self.given_up:
            plan["totals"]["given_up"] = self.given_up
        if self.run_id is not None:
            plan["run_id"] = self.run_id
        if self.left_out:
            plan["left_out"] = [each.to_json() for each in self.left_out]
        if self.direction is not Direction.FORWARD:  # Plans without the field stay as they are.
            plan["direction"] = self.direction.value
        if self.mapping is not OffsetMapping.OFFSET_SYNCS:
            plan["mapping"] = self.mapping.value
        return plan | {"digest": digest_of(plan)}

    @classmethod
    def from_json(cls, plan: Mapping[str, Any]) -> "FailoverPlan":
        """Return the plan that ``to_json`` wrote.

        Raises:
            ValueError: It is not an object, has another schema version, is a brief, was changed
                since it was written, or has an answer outside its bounds. The message names field
                and values.
        """
        if not isinstance(plan, Mapping):
            raise ValueError(f"a plan is a JSON object, not {plan!r}")  # noqa: TRY004 - bad input
        if plan.get("schema_version") != SCHEMA_VERSION:
            raise ValueError(
                f"a plan of schema version {plan.get('schema_version')!r} can't be read; "
                f"this release reads version {SCHEMA_VERSION}"
            )
        check_whole(plan)
        partitions = tuple(map(partition_from_json, plan["partitions"]))
        strategy = Strategy(plan["strategy"])
        # Before the digest: if both are wrong, the bounds say more about what was changed.
        for partition in partitions:
            check_bounds(partition, is_safe=strategy is Strategy.SAFE)
        if plan["digest"] != (digest := digest_of(plan)):
            raise ValueError(
                f"digest is {plan['digest']!r}, and that of its content is {digest!r}: the plan "
                f"was changed since it was made"
            )
        return cls(
            created_at=plan["created_at"],
            strategy=strategy,
            syncs_read=plan["syncs"]["read"],
            syncs_skipped=plan["syncs"]["skipped"],
            source_records_read=plan["evidence"]["source_records"],
            target_records_read=plan["evidence"]["target_records"],
            syncs_as_of=plan["syncs"].get("as_of"),
            ids=PairIds.from_json(plan["clusters"]),
            partitions=partitions,
            run_id=plan.get("run_id"),
            left_out=tuple(
                LeftOut(part=each["part"], reason=each["reason"])
                for each in plan.get("left_out", ())
            ),
            direction=Direction(plan.get("direction", Direction.FORWARD)),
            mapping=OffsetMapping(plan.get("mapping", OffsetMapping.OFFSET_SYNCS)),
        )


def shown_counts(counts: Mapping[Status, int]) -> dict[str, int]:
    """Return counts by status as plans show them: ``not_safe`` only where it is not 0.

    So a plan by the strategy safe is the same JSON, with the same digest, as in earlier releases.
    """
    return {
        status.value: count
        for status, count in counts.items()
        if count or status is not Status.NOT_SAFE
    }


def digest_of(plan: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a JSON object without its digest; the order of keys does not count."""
    content = {key: value for key, value in plan.items() if key != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
