"""Translates every position that the copy of a checkpoint needs, and refuses what may not be."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Basis, FailoverPlan, PartitionPlan, Positions, Status
from airflow_mm2_offsets.errors import TranslationRefusedError
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.spark.rewriting import Asked, KeptFile, Use

_POISONED = (
    "; the pending batch is of another cluster's offsets: the checkpoint is poisoned by a start "
    "against the wrong one"
)
_BOUNDED = (
    "; wait until MirrorMaker 2 has copied it, let the source be read, or take allow_bounded, "
    "which may count records twice"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Why a position is asked for."""

    file: str
    use: Use
    asked: Asked

    def __str__(self) -> str:
        """Return it as messages name it."""
        return f"{self.file} ({self.use}): {self.asked}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationPlan:
    """The answers for all positions of the kept files."""

    plans: tuple[FailoverPlan, ...]
    """Several, for a partition has one position in each."""
    notes: tuple[str, ...] = ()
    """What the user must know of the target's topics."""

    @property
    def answers(self) -> dict[Asked, PartitionPlan]:
        """The answers by what was asked."""
        return {
            Asked(
                each.translation.topic, each.translation.partition, each.translation.position
            ): each
            for plan in self.plans
            for each in plan.partitions
        }

    def targets(self) -> dict[Asked, tuple[str, int]]:
        """Return topic and position on the target; 0 for history that nobody can tell.

        A lower bound is raised to that of an earlier position, which holds for later ones too.
        """
        found: dict[Asked, tuple[str, int]] = {}
        floor: dict[tuple[str, int], int] = {}
        for asked, answer in sorted(self.answers.items()):
            place = (asked.topic, asked.partition)
            floor[place] = max(floor.get(place, 0), answer.translation.target or 0)
            found[asked] = (answer.target_topic, floor[place])
        return found

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


def needs(files: Sequence[KeptFile]) -> tuple[Need, ...]:
    """Return every position that must be known, by file.

    A partition that is first seen by the pending batch is read from the topic's beginning, which
    no file names: its position 0 is needed too.
    """
    named = [
        Need(file=file.name, use=file.use, asked=asked)
        for file in files
        for asked in sorted(file.asked())
    ]
    return (*named, *_beginnings(files))


def _beginnings(files: Sequence[KeptFile]) -> Iterable[Need]:
    begun = {
        (source, topic, partition)
        for file in files
        if file.use is Use.START
        for source in file.sources
        for topic, partitions in file.positions(source).items()
        for partition in partitions
    }
    for file in files:
        if file.use is not Use.END:
            continue
        for source in file.sources:
            for topic, partitions in file.positions(source).items():
                for partition in partitions:
                    if (source, topic, partition) not in begun:
                        asked = Asked(topic, partition, 0)
                        yield Need(file=file.name, use=Use.BEGINNING, asked=asked)


def make_plan(
    pair: ClusterPair, wanted: Sequence[Need], *, options: PlanOptions, notes: Sequence[str]
) -> MigrationPlan:
    """Translate all that is needed.

    Raises:
        Mm2OffsetsError: See ``plan_failover``.
    """
    asked = {need.asked for need in wanted}
    plans = [plan_failover(pair, layer, options=options) for layer in _layers(asked)]
    return MigrationPlan(plans=tuple(plans), notes=tuple(notes))


def check_plan(plan: MigrationPlan, wanted: Iterable[Need], *, allow_bounded: bool) -> None:
    """Raise unless each position that Spark uses has an answer that is good enough.

    Raises:
        TranslationRefusedError: Each one that has not is named, with its file and why.
    """
    answers = plan.answers
    wrong = {
        need: found
        for need in wanted
        if (found := _wrong(need, answers[need.asked], allow_bounded=allow_bounded))
    }
    if wrong:
        listed = "\n".join(f"  {need}: {found}" for need, found in wrong.items())
        raise TranslationRefusedError(
            f"{len(wrong)} positions are not known as they must be for state, or an exactly-once "
            f"sink, to go on:\n{listed}"
        )


def _wrong(need: Need, answer: PartitionPlan, *, allow_bounded: bool) -> str | None:
    found = answer.translation
    said = f"{found.status}: {found.reason}"
    if need.use is Use.HISTORY:
        return None
    if need.use is Use.BEGINNING:
        if found.target == 0 and (found.status is Status.EXACT or allow_bounded):
            return None
        return f"Spark reads it from its beginning, which must be that of its copies; {said}"
    if found.status is Status.REFUSED:
        poisoned = need.use is Use.END and found.basis is Basis.OUTSIDE_SOURCE
        return f"{said}{_POISONED}" if poisoned else said
    if found.status is Status.EXACT or allow_bounded:
        return None
    return f"{said}{_BOUNDED}"


def _layers(asked: Iterable[Asked]) -> list[Positions]:
    """Return the positions as few maps as can hold them: each has one of a partition."""
    layers: list[Positions] = []
    depth: dict[tuple[str, int], int] = {}
    for topic, partition, position in sorted(asked):
        level = depth.setdefault((topic, partition), 0)
        depth[topic, partition] += 1
        if level == len(layers):
            layers.append({})
        layers[level].setdefault(topic, {})[partition] = position
    return layers
