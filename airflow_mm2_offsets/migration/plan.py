"""Translates every position that the copy of a checkpoint needs, and refuses uncertain ones."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import (
    Basis,
    FailoverPlan,
    PartitionPlan,
    Positions,
    Status,
    TopicPartition,
)
from airflow_mm2_offsets.errors import TranslationRefusedError
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.spark.rewriting import OffsetFile, OffsetRole, SourcePosition

_POISONED = (
    "; the pending batch holds another cluster's offsets: the checkpoint is poisoned by a start "
    "against the wrong cluster"
)
_BOUNDED = (
    "; wait until MirrorMaker 2 has copied it, let the source be read, or set allow_bounded, "
    "which may count records twice"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredPosition:
    """A position that must be translated, and what for."""

    file: str
    role: OffsetRole
    position: SourcePosition

    def __str__(self) -> str:
        """Return the form that messages use."""
        return f"{self.file} ({self.role}): {self.position}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationPlan:
    """The translations of all positions that the copy needs."""

    plans: tuple[FailoverPlan, ...]
    """Several, because a plan has one position of each partition."""
    notes: tuple[str, ...] = ()
    """What the user must know about the target's topics."""

    @property
    def by_position(self) -> dict[SourcePosition, PartitionPlan]:
        """The partition plans by the position that they translate."""
        return {
            SourcePosition(each.translation.topic_partition, each.translation.position): each
            for plan in self.plans
            for each in plan.partitions
        }

    def targets(self) -> dict[SourcePosition, tuple[str, int]]:
        """Return topic and position on the target; 0 where a position of history is unknown.

        A lower bound is raised to that of an earlier position, which holds for later ones too.
        """
        highest: dict[TopicPartition, int] = defaultdict(int)
        targets: dict[SourcePosition, tuple[str, int]] = {}
        for position, plan in sorted(self.by_position.items()):
            partition = position.topic_partition
            highest[partition] = max(highest[partition], plan.translation.target or 0)
            targets[position] = (plan.target_topic, highest[partition])
        return targets

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"plans": [plan.to_json() for plan in self.plans], "notes": list(self.notes)}

    @classmethod
    def from_json(cls, plan: Mapping[str, Any]) -> "MigrationPlan":
        """Return the plan that ``to_json`` made."""
        return cls(
            plans=tuple(FailoverPlan.from_json(each) for each in plan["plans"]),
            notes=tuple(plan["notes"]),
        )


def required_positions(files: Sequence[OffsetFile]) -> tuple[RequiredPosition, ...]:
    """Return every position that must be translated, by file.

    A partition that the pending batch is the first to read is read from the topic's beginning,
    which no file names: its position 0 is required too.
    """
    named = [
        RequiredPosition(file=file.name, role=file.role, position=position)
        for file in files
        for position in sorted(file.positions())
    ]
    return (*named, *_beginnings(files))


def _beginnings(files: Sequence[OffsetFile]) -> Iterator[RequiredPosition]:
    begun = {key for file in files if file.role is OffsetRole.START for key in file.by_source()}
    for file in files:
        if file.role is OffsetRole.END:
            for source, partition in file.by_source():
                if (source, partition) not in begun:
                    yield beginning(file, partition)


def beginning(file: OffsetFile, partition: TopicPartition) -> RequiredPosition:
    """Return that Spark reads a partition from its beginning, since a file does not name it."""
    return RequiredPosition(
        file=file.name, role=OffsetRole.BEGINNING, position=SourcePosition(partition, 0)
    )


def make_plan(
    pair: ClusterPair,
    required: Iterable[RequiredPosition],
    *,
    options: PlanOptions,
    notes: Sequence[str],
) -> MigrationPlan:
    """Translate all required positions.

    Raises:
        Mm2OffsetsError: See ``plan_failover``.
    """
    maps = _split_by_partition({each.position for each in required})
    plans = [plan_failover(pair, positions, options=options) for positions in maps]
    return MigrationPlan(plans=tuple(plans), notes=tuple(notes))


def check_plan(
    plan: MigrationPlan, required: Iterable[RequiredPosition], *, allow_bounded: bool
) -> None:
    """Raise unless each position that Spark uses is translated well enough.

    Raises:
        TranslationRefusedError: Each of the other positions is named, with its file and why.
    """
    plans = plan.by_position
    refusals = {
        each: refusal
        for each in required
        if (refusal := _refusal(each, plans[each.position], allow_bounded=allow_bounded))
    }
    if refusals:
        lines = "\n".join(f"  {each}: {refusal}" for each, refusal in refusals.items())
        raise TranslationRefusedError(
            f"{len(refusals)} positions are not known well enough for state, or an exactly-once "
            f"sink, to continue:\n{lines}"
        )


def _refusal(required: RequiredPosition, plan: PartitionPlan, *, allow_bounded: bool) -> str | None:
    translation = plan.translation
    reason = f"{translation.status}: {translation.reason}"
    is_accepted = translation.status is Status.EXACT or (
        allow_bounded and translation.status is Status.BOUNDED
    )
    match required.role:
        case OffsetRole.HISTORY:
            return None
        case OffsetRole.BEGINNING:
            if is_accepted and translation.target == 0:
                return None
            return f"Spark reads it from its beginning, which must be that of its copies; {reason}"
    if is_accepted:
        return None
    if translation.status is not Status.REFUSED:
        return f"{reason}{_BOUNDED}"
    is_poisoned = required.role is OffsetRole.END and translation.basis is Basis.OUTSIDE_SOURCE
    return f"{reason}{_POISONED}" if is_poisoned else reason


def _split_by_partition(positions: Iterable[SourcePosition]) -> list[Positions]:
    """Return as few maps as can hold the positions: each map has one of a partition."""
    maps: list[Positions] = []
    count: dict[TopicPartition, int] = defaultdict(int)
    for partition, position in sorted(positions):
        if count[partition] == len(maps):
            maps.append({})
        maps[count[partition]].setdefault(partition.topic, {})[partition.partition] = position
        count[partition] += 1
    return maps
