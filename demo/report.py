"""The proof: every number produced against every number in the sink."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.core.summary import table
from airflow_mm2_offsets.reconcile import Outcome, Reconciliation
from demo.producer import PARTITIONS
from demo.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a failover."""

    plan: FailoverPlan
    straight_line: FailoverPlan
    """The same positions by the formula d1 + p - u1, for comparison."""
    produced: int
    """Numbers that the producer committed, on both clusters."""
    delivered: Counter[int]
    """How often each number is in the sink."""
    seconds: Mapping[str, float]
    timeline: Timeline
    """Whose the seconds were until the first record on the target."""
    verified: Reconciliation | None = None
    """The result of the DAG's task verify; None if it was skipped."""

    @property
    def lost(self) -> int:
        """Numbers that are not in the sink."""
        return sum(self._lost(partition) for partition in range(PARTITIONS))

    @property
    def duplicated(self) -> int:
        """Records in the sink beyond the first of each number."""
        return sum(self._duplicated(partition) for partition in range(PARTITIONS))

    @property
    def holds(self) -> bool:
        """Nothing was lost, and no more was repeated than the plan announced."""
        announced = self.plan.max_reread
        as_announced = announced is None or self.duplicated <= announced
        failed = self.verified is not None and self.verified.outcome is Outcome.FAILED
        return not self.lost and as_announced and not failed

    @property
    def verdict(self) -> str:
        """What came of it, in a sentence."""
        announced = self.plan.max_reread
        return (
            f"{self.produced} records produced, {len(self.delivered)} of them in the sink: "
            f"{self.lost} lost, {self.duplicated} duplicated "
            f"(the plan announced at most {'?' if announced is None else announced}). "
            f"{'PROVEN' if self.holds else 'FAILED'}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        return {
            "produced": self.produced,
            "delivered": self.delivered.total(),
            "lost": self.lost,
            "duplicated": self.duplicated,
            "announced": self.plan.max_reread,
            "partitions": [
                planned
                | {"lost": self._lost(planned["partition"])}
                | {"duplicated": self._duplicated(planned["partition"])}
                for planned in self.plan.to_json()["partitions"]
            ],
            "verified": self.verified and self.verified.to_json(),
            "seconds": dict(self.seconds),
            "first_record": self.timeline.to_json(),
        }

    def write(self, path: Path) -> None:
        """Write the report as a JSON file."""
        path.write_text(json.dumps(self.to_json(), indent=1) + "\n")

    def __str__(self) -> str:
        """Return the report as tables."""
        verified = [f"The task verify: {self.verified.summary()}"] if self.verified else []
        parts = [self._partitions(), *verified, self._steps(), str(self.timeline), self.verdict]
        return "\n\n".join(parts)

    def _lost(self, partition: int) -> int:
        return sum(n not in self.delivered for n in range(partition, self.produced, PARTITIONS))

    def _duplicated(self, partition: int) -> int:
        numbers = range(partition, self.produced, PARTITIONS)
        return sum(max(0, self.delivered[number] - 1) for number in numbers)

    def _partitions(self) -> str:
        rows = [
            (
                each.translation.topic_partition,
                each.translation.position,
                each.translation.target,
                each.translation.status.value,
                each.translation.basis.value,
                each.shift,
                self._lost(each.translation.partition),
                self._duplicated(each.translation.partition),
                _compared(line.translation.target, each.translation.target),
            )
            for each, line in zip(self.plan.partitions, self.straight_line.partitions, strict=True)
        ]
        header = ("partition", "source position", "target position", "status", "basis")
        return table((*header, "offset shift", "lost", "duplicated", "straight line"), rows)

    def _steps(self) -> str:
        return table(
            ("step", "seconds"), [(step, f"{took:.1f}") for step, took in self.seconds.items()]
        )


def _compared(guess: int | None, answer: int | None) -> str:
    if guess is None or answer is None:
        return "-"
    return f"{guess} (loses {guess - answer})" if guess > answer else str(guess)
