"""Reads and judges the report of a reconciliation, as ``job/reconcile/main.py`` wrote it."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core.summary import table
from airflow_mm2_offsets.errors import ReconciliationError
from airflow_mm2_offsets.storage import open_location, read_text

SCHEMA_VERSION = 1
REPORT = "report.json"
KINDS = ("lost", "duplicated", "out_of_order", "unknown")
NAMED_PARTITIONS = 20
"""How many partitions an error names at most."""


class Outcome(StrEnum):
    """What a comparison came to."""

    CLEAN = "clean"
    ANNOUNCED = "announced"
    """Nothing was lost, and no more came twice than the plan had announced."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """A report, and what was announced before."""

    report: Mapping[str, Any]
    allowed: int | None = 0
    """How many records may be there twice; None: nobody could say how many (a fallback)."""

    @property
    def outcome(self) -> Outcome:
        """Clean, as announced, or failed."""
        if self.failures:
            return Outcome.FAILED
        return Outcome.ANNOUNCED if self.total("duplicated") else Outcome.CLEAN

    @property
    def failures(self) -> list[Mapping[str, Any]]:
        """The counts of what must not be: one for each comparison, partition and kind."""
        return [each for each in self.report["counts"] if self._is_failure(each)]

    @property
    def not_judged(self) -> int:
        """Offsets that were wanted, and that a cluster no longer or not yet held."""
        return sum(each["not_judged"] for each in self.report["ranges"])

    def total(self, kind: str, comparison: str | None = None) -> int:
        """Return how many differences there are of a kind."""
        return sum(
            each["count"]
            for each in self.report["counts"]
            if each["kind"] == kind and comparison in {None, each["comparison"]}
        )

    def check(self) -> None:
        """Raise unless the outcome is clean or as announced.

        Raises:
            ReconciliationError: It names partitions, counts, and where the differences are.
        """
        failures = self.failures
        if not failures:
            return
        lines = [
            f"  {_place(each)}: {each['count']} {each['kind'].replace('_', ' ')} "
            f"{_between(each['comparison'])}"
            for each in failures[:NAMED_PARTITIONS]
        ]
        if more := len(failures) - len(lines):
            lines.append(f"  and {more} more")
        again = "an unknown number" if self.allowed is None else f"at most {self.allowed}"
        raise ReconciliationError(
            f"source, target and sink differ by more than was announced ({again} twice, none "
            f"lost); every difference is in {self.report['differences']}:\n" + "\n".join(lines)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the report with its outcome, as plain JSON."""
        return {**self.report, "outcome": self.outcome.value, "allowed": self.allowed}

    def summary(self) -> str:
        """Return it as one sentence and a table."""
        read = Counter(each["side"] for each in self.report["ranges"])
        records = {
            side: sum(each["records"] for each in self.report["ranges"] if each["side"] == side)
            for side in read
        }
        told = ", ".join(f"{count} records of the {side}" for side, count in records.items())
        rows = sum(each["records"] for each in self.report["sinks"])
        gone = f"; NOT JUDGED: {self.not_judged} offsets not held" if self.not_judged else ""
        return (
            f"{self.outcome.value.upper()}: compared {told} and {rows} rows of the sink by "
            f"{', '.join(self.report['compared'])}{gone}.\n\n{self._table()}"
        )

    def _is_failure(self, count: Mapping[str, Any]) -> bool:
        match count["kind"]:
            case "duplicated":
                twice = self.total("duplicated", count["comparison"])
                return self.allowed is not None and twice > self.allowed
            case (
                "unknown"
            ):  # others may write to the target; the sink must know where a row is from
                return bool(count["comparison"] != "source-target")
            case _:
                return True

    def _table(self) -> str:
        held = {(_place(each), each["side"]): each["records"] for each in self.report["ranges"]}
        places = {_place(each): None for each in (*self.report["ranges"], *self.report["counts"])}
        lines = [
            (
                place,
                *(held.get((place, side), "-") for side in ("source", "target")),
                *self._at(place),
            )
            for place in places
        ]
        kinds = (kind.replace("_", " ") for kind in KINDS)
        return table(("partition", "source", "target", *kinds, "from, to"), lines)

    def _at(self, place: str) -> tuple[object, ...]:
        """Return the sum of each kind in a partition, and between which sides it was."""
        mine = [each for each in self.report["counts"] if _place(each) == place]
        sums = (sum(each["count"] for each in mine if each["kind"] == kind) for kind in KINDS)
        return *sums, " ".join(sorted({each["comparison"] for each in mine})) or "-"


def read_report(location: UPath, allowed: int | None = 0) -> Reconciliation:
    """Return the reconciliation whose report lies in a folder.

    Args:
        location: The report folder.
        allowed: How many records may be there twice; None: any number.

    Raises:
        ReconciliationError: There is no report, or the job says in it why it failed.
    """
    path = open_location(location, ReconciliationError) / REPORT
    text = read_text(path, ReconciliationError)
    if text is None:
        raise ReconciliationError(f"{path} is missing: the Spark job did not come to its end")
    try:
        report = json.loads(text)
        version = report["schema_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise ReconciliationError(f"{path} is no report of a reconciliation: {error!r}") from error
    if version != SCHEMA_VERSION:
        raise ReconciliationError(f"{path} is of version {version}; {SCHEMA_VERSION} is known here")
    if "error" in report:
        raise ReconciliationError(f"the Spark job could not compare: {report['error']}")
    return Reconciliation(report=report, allowed=allowed)


def _place(count: Mapping[str, Any]) -> str:
    if count["topic"] is None:
        return "a sink without lineage"
    return f"{count['topic']}[{count['partition']}]"


def _between(comparison: str) -> str:
    left, right = comparison.split("-")
    return f"from {left} to {right}"
