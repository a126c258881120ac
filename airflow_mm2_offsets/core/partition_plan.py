"""One partition's line of a failover plan, and its JSON form; ``plan`` holds the lines."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from airflow_mm2_offsets.core.naming import Naming
from airflow_mm2_offsets.core.positions import Positions, TopicPartition
from airflow_mm2_offsets.core.result import Basis, Status, Translation, Uncopied


class OnUnmapped(StrEnum):
    """What to do with a partition whose translation is refused."""

    FAIL = "fail"
    """Refuse the plan."""
    EARLIEST = "earliest"
    """Start at the target's first offset: repeats records, and loses those the target deleted."""
    LATEST = "latest"
    """Start at the target's end: loses every record that the job had yet to read."""
    TIMESTAMP = "timestamp"
    """Start where the target's records are as old as the position, less a margin: may do both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """A target position that was chosen, not proven."""

    kind: OnUnmapped
    position: int
    """The next offset to read on the target."""
    reason: str
    """How it was chosen, with the numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPlan:
    """Where a job continues on one partition, and why."""

    translation: Translation
    target_topic: str
    """What the topic is called on the target."""
    pending: int = 0
    """Records of a batch that the source job began and did not commit: its sink may have them."""
    fallback: Fallback | None = None
    """What was chosen in place of a refused translation, if the user named a choice."""

    @property
    def start(self) -> int | None:
        """Where the job continues on the target; None when refused."""
        return self.fallback.position if self.fallback else self.translation.target

    @property
    def shift(self) -> int | None:
        """Target position less source position; None when refused."""
        return None if self.start is None else self.start - self.translation.position

    @property
    def given_up(self) -> int:
        """The most records that are lost because the user gave them up: never copied."""
        uncopied = self.translation.uncopied
        return uncopied.at_most if uncopied and uncopied.is_given_up else 0

    @property
    def max_reread(self) -> int | None:
        """The most records that the target job can process again; None when not known."""
        again = self.translation.max_reread
        return None if again is None else again + self.pending


def plan_partitions(
    translations: Iterable[Translation],
    naming: Naming,
    pending: Positions | None = None,
    fallbacks: Mapping[TopicPartition, Fallback] = MappingProxyType({}),
) -> tuple[PartitionPlan, ...]:
    """Return ``translations`` as a plan's partitions.

    Args:
        translations: The answers.
        naming: What topics are called on the target.
        pending: Where the batch ends that the source job began and did not commit, if any.
        fallbacks: What was chosen for refused translations, by topic-partition.
    """
    return tuple(
        PartitionPlan(
            translation=answer,
            target_topic=naming.target_topic(answer.topic),
            pending=pending_records(answer, pending),
            fallback=fallbacks.get(answer.topic_partition),
        )
        for answer in translations
    )


def pending_records(answer: Translation, ends: Positions | None) -> int:
    """Return how many of a partition's records are in the batch that was begun, not committed."""
    end = (ends or {}).get(answer.topic, {}).get(answer.partition, 0)
    return max(0, end - answer.position)


def partition_to_json(plan: PartitionPlan) -> dict[str, Any]:
    """Return a partition as plain JSON; offsets are text."""
    answer = plan.translation
    line = {
        "topic": answer.topic,
        "partition": answer.partition,
        "target_topic": plan.target_topic,
        "position": str(answer.position),
        "target": _text(plan.start),
        "low": _text(answer.low),
        "high": _text(answer.high),
        "status": answer.status.value,
        "basis": answer.basis.value,
        "reason": answer.reason,
        "shift": plan.shift,
        "pending": plan.pending,
        "fallback": _fallback_to_json(plan.fallback),
        "max_reread": plan.max_reread,
    }
    if answer.uncopied is not None:  # Plans without the field stay as they are.
        line["uncopied"] = _uncopied_to_json(answer.uncopied)
    return line


def partition_from_json(plan: Mapping[str, Any]) -> PartitionPlan:
    """Return the partition that ``partition_to_json`` wrote."""
    return PartitionPlan(
        translation=Translation(
            topic=plan["topic"],
            partition=plan["partition"],
            position=int(plan["position"]),
            status=Status(plan["status"]),
            basis=Basis(plan["basis"]),
            reason=plan["reason"],
            target=None if plan.get("fallback") else _number(plan["target"]),
            low=_number(plan["low"]),
            high=_number(plan["high"]),
            uncopied=_uncopied_from_json(plan.get("uncopied")),
        ),
        target_topic=plan["target_topic"],
        pending=plan["pending"],
        fallback=_fallback_from_json(plan),
    )


def check_bounds(plan: PartitionPlan, *, is_safe: bool) -> None:
    """Raise ValueError, with field and values, if an answer contradicts its bounds.

    Args:
        plan: The partition.
        is_safe: Whether its strategy stays within the bounds.
    """
    answer = plan.translation
    low, high, target = answer.low, answer.high, answer.target
    problem = None
    if (low is None or target is None) and answer.status is not Status.REFUSED:
        problem = f"low is {low} and target {target}, but the status is {answer.status}"
    elif low is not None and high is not None and low > high:
        problem = f"low is {low}, above high {high}"
    elif answer.status is Status.NOT_SAFE and not answer.max_lost:
        problem = f"the status is {answer.status}, and target is {target}, not above low {low}"
    elif is_safe and low is not None and target is not None:
        if target < low:
            problem = f"target is {target}, below low {low}"
        elif high is not None and target > high:
            problem = f"target is {target}, above high {high}"
    if problem:
        raise ValueError(f"{answer.topic_partition}: {problem}")


def _fallback_to_json(fallback: Fallback | None) -> dict[str, str] | None:
    return {"kind": fallback.kind.value, "reason": fallback.reason} if fallback else None


def _fallback_from_json(plan: Mapping[str, Any]) -> Fallback | None:
    chosen = plan.get("fallback")
    if not chosen:
        return None
    return Fallback(
        kind=OnUnmapped(chosen["kind"]), position=int(plan["target"]), reason=chosen["reason"]
    )


def _uncopied_to_json(uncopied: Uncopied) -> dict[str, Any]:
    return {**asdict(uncopied), "first": str(uncopied.first), "last": str(uncopied.last)}


def _uncopied_from_json(uncopied: Mapping[str, Any] | None) -> Uncopied | None:
    if uncopied is None:
        return None
    return Uncopied(**{**uncopied, "first": int(uncopied["first"]), "last": int(uncopied["last"])})


def _text(offset: int | None) -> str | None:
    return None if offset is None else str(offset)


def _number(offset: str | None) -> int | None:
    return None if offset is None else int(offset)
