"""How close answers are to the truth, on recordings of real MirrorMaker 2 runs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from airflow_mm2_offsets.core import (
    Evidence,
    Extras,
    Strategy,
    TargetWindow,
    Translation,
)
from airflow_mm2_offsets.core.evidence import NO_EVIDENCE
from benchmarks.store import Store
from tests.support.golden import (
    NAMES,
    NO_EXTRAS,
    RECORDED_KINDS,
    GoldenPartition,
    GoldenSet,
    golden_set,
)

SEVERAL_WRITERS = frozenset({"foreign"})
"""Kinds where counting on the target is not allowed: not only MirrorMaker 2 writes there."""

Question: TypeAlias = tuple[int, GoldenPartition, int]
"""The partition's number, the partition, the position."""
Answers: TypeAlias = Iterable[int | None]
"""For each question the target position; None: refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How one method did on one set."""

    name: str
    """The set."""
    method: str
    positions: int
    losing: int
    """Positions whose answer lies above the truth: records are lost."""
    refused: int
    mean: float | None
    """Records that are read again, over all answers; None where all are refused."""
    most: int | None

    @classmethod
    def of(cls, name: str, method: str, questions: list[Question], answers: Answers) -> "Score":
        """Compare answers with the truth."""
        losing = refused = 0
        again = []
        for (_, partition, position), target in zip(questions, answers, strict=True):
            if target is None:
                refused += 1
            else:
                losing += target > partition.truth(position)
                again.append(max(0, partition.reread(position, target)))
        return cls(
            name=name,
            method=method,
            positions=len(questions),
            losing=losing,
            refused=refused,
            mean=sum(again) / len(again) if again else None,
            most=max(again, default=None),
        )

    def percent(self, count: int) -> float:
        """Return ``count`` as a part of the positions."""
        return 100 * count / self.positions

    def __str__(self) -> str:
        """Return mean and most records read again, and what is wrong, if anything."""
        parts = ["-" if self.mean is None else f"{self.mean:.1f} / {self.most}"]
        if self.losing:
            parts.append(f"LOSES {self.percent(self.losing):.1f}%")
        if self.refused:
            parts.append(f"refuses {self.percent(self.refused):.2f}%")
        return ", ".join(parts)


def scores(store: Store, stride: int) -> Iterator[Score]:
    """Yield each method's score on each set, of every ``stride``-th position.

    A method whose evidence is not true of a set is left out there.
    """
    for name in NAMES:
        golden = golden_set(name)
        questions = list(golden.positions(stride))
        for method, answers in _methods(golden, questions, store).items():
            yield Score.of(name, method, questions, answers)


def _methods(golden: GoldenSet, questions: list[Question], store: Store) -> Mapping[str, Answers]:
    ours = _Ours(golden=golden, questions=questions)
    methods: dict[str, Answers] = {"safe": ours.answers()}
    if golden.name in NO_EXTRAS:
        methods["safe, no extras"] = ours.answers(extras=Extras.NONE)
    if RECORDED_KINDS[golden.name] not in SEVERAL_WRITERS:
        methods["safe, target read"] = ours.answers_from_target()
    methods["safe, both read"] = ours.answers_from_both()
    methods["linear"] = ours.answers(strategy=Strategy.LINEAR)
    methods["kafka"] = ours.answers(strategy=Strategy.KAFKA)
    asked = [(number, position) for number, _, position in questions]
    syncs = [sync for sync in golden.syncs if sync.topic == golden.topic]
    stored = store.ask(syncs, asked)
    methods["OffsetSyncStore"] = (_target(answer.running) for answer in stored)
    methods["... restarted"] = (_target(answer.restarted) for answer in stored)
    return methods


def _target(answer: int) -> int | None:
    return answer if answer >= 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ours:
    """What this package answers."""

    golden: GoldenSet
    questions: list[Question]
    _windows: dict[tuple[int, int | None], TargetWindow] = field(default_factory=dict)

    def answers(
        self, *, strategy: Strategy = Strategy.SAFE, extras: Extras = Extras.POSSIBLE
    ) -> Answers:
        for number, partition, position in self.questions:
            evidence = Evidence(extras=extras, source=partition.source, target=partition.target)
            # The older formulas know nothing of where the target ends.
            used = evidence if strategy is Strategy.SAFE else NO_EVIDENCE
            yield self._translate(number, position, used, strategy).target

    def answers_from_target(self) -> Answers:
        """Answer with the target's records between two syncs, and none of the source."""
        for number, partition, position in self.questions:
            marks = Evidence(source=partition.source, target=partition.target)
            bounded = self._translate(number, position, marks)
            evidence = replace(
                marks, target_window=self._read(partition, bounded), sole_writer=True
            )
            yield self._translate(number, position, evidence).target

    def answers_from_both(self) -> Answers:
        for number, partition, position in self.questions:
            marks = Evidence(
                source=partition.source,
                target=partition.target,
                sole_writer=RECORDED_KINDS[self.golden.name] not in SEVERAL_WRITERS,
            )
            yield self.golden.read_both(number, position, marks).target

    def _translate(
        self,
        partition: int,
        position: int,
        evidence: Evidence,
        strategy: Strategy = Strategy.SAFE,
    ) -> Translation:
        return self.golden.index.translate(
            self.golden.topic, partition, position, strategy=strategy, evidence=evidence
        )

    def _read(self, partition: GoldenPartition, bounded: Translation) -> TargetWindow:
        """Return the window around an answer: the same for all between two syncs."""
        around = (bounded.partition, bounded.high)
        if around not in self._windows:
            self._windows[around] = partition.target_window(bounded)
        return self._windows[around]
