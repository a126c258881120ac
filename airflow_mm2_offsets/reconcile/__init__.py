"""Reads and judges the report of a reconciliation, as ``job/reconcile/main.py`` wrote it.

``ReconcileOperator`` and the demo call it.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.core.summary import table
from airflow_mm2_offsets.errors import ReconciliationError
from airflow_mm2_offsets.storage import open_location, read_text

SCHEMA_VERSION = 1
REPORT = "report.json"
KINDS = ("lost", "duplicated", "out_of_order", "unknown")
NAMED_PARTITIONS = 20
"""How many partitions an error names at most."""


class Outcome(StrEnum):
    """The result of a reconciliation."""

    CLEAN = "clean"
    ANNOUNCED = "announced"
    """Nothing was lost, and no more was duplicated than the plan had announced."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """A report, and the number of duplicates that the plan had announced."""

    report: Mapping[str, Any]
    allowed: int | None = 0
    """How many records may be duplicated; None: an unknown number (a fallback was taken)."""

    @property
    def outcome(self) -> Outcome:
        """Clean, as announced, or failed."""
        if self.failures:
            return Outcome.FAILED
        return Outcome.ANNOUNCED if self.total("duplicated") else Outcome.CLEAN

    @property
    def failures(self) -> list[Mapping[str, Any]]:
        """The counts of forbidden differences, by comparison, partition and kind."""
        return [count for count in self.report["counts"] if self._is_failure(count)]

    @property
    def not_judged(self) -> int:
        """Requested offsets that a cluster no longer or not yet held."""
        return sum(span["not_judged"] for span in self.report["ranges"])

    def total(self, kind: str, comparison: str | None = None) -> int:
        """Return how many differences there are of a kind."""
        return sum(
            count["count"]
            for count in self.report["counts"]
            if count["kind"] == kind and comparison in {None, count["comparison"]}
        )

    def check(self) -> None:
        """Raise unless the outcome is clean or as announced.

        Raises:
            ReconciliationError: Partitions, counts, and the location of the differences are named.
        """
        failures = self.failures
        if not failures:
            return
        lines = [
            f"  {_label(count)}: {count['count']} {count['kind'].replace('_', ' ')} "
            f"from {count['comparison'].replace('-', ' to ')}"
            for count in failures[:NAMED_PARTITIONS]
        ]
        if more := len(failures) - len(lines):
            lines.append(f"  and {more} more")
        again = "an unknown number" if self.allowed is None else f"at most {self.allowed}"
        raise ReconciliationError(
            f"source, target and sink differ by more than was announced ({again} twice, none "
            f"lost); every difference is in {self.report['differences']}:\n" + "\n".join(lines)
        )

    def to_json(self, *, with_keys: bool = False) -> dict[str, Any]:
        """Return the report with its outcome, as plain JSON; by default without record keys."""
        report = {**self.report, "outcome": self.outcome.value, "allowed": self.allowed}
        if not with_keys:
            report["examples"] = [
                {name: value for name, value in example.items() if name != "key"}
                for example in self.report["examples"]
            ]
        return report

    def summary(self) -> str:
        """Return the report as one sentence and a table."""
        records: Counter[str] = Counter()
        for span in self.report["ranges"]:
            records[span["side"]] += span["records"]
        clusters = ", ".join(f"{count} records of the {side}" for side, count in records.items())
        rows = sum(sink["records"] for sink in self.report["sinks"])
        missing = ""
        if not any(records.values()):
            missing = "; NOTHING WAS COMPARED: the ranges hold no record"
        if self.not_judged:
            gone = "offsets that a cluster no longer or not yet holds"
            missing += f"; NOT JUDGED: {self.not_judged} {gone}"
        return (
            f"{self.outcome.value.upper()}: compared {clusters} and {rows} rows of the sink by "
            f"{', '.join(self.report['compared'])}{missing}.\n\n{self._table()}"
        )

    def _is_failure(self, count: Mapping[str, Any]) -> bool:
        match count["kind"]:
            case "duplicated":
                twice = self.total("duplicated", count["comparison"])
                return self.allowed is not None and twice > self.allowed
            case "unknown":  # others may write to the target, but not to the sink
                return bool(count["comparison"] != "source-target")
            case _:
                return True

    def _table(self) -> str:
        ranges, counts = self.report["ranges"], self.report["counts"]
        records = {(_label(span), span["side"]): span["records"] for span in ranges}
        lines = []
        for label in dict.fromkeys(_label(row) for row in (*ranges, *counts)):
            here = [count for count in counts if _label(count) == label]
            lines.append(
                (
                    label,
                    *(records.get((label, side), "-") for side in ("source", "target")),
                    *(sum(row["count"] for row in here if row["kind"] == kind) for kind in KINDS),
                    " ".join(sorted({count["comparison"] for count in here})) or "-",
                )
            )
        kinds = (kind.replace("_", " ") for kind in KINDS)
        return table(("partition", "source", "target", *kinds, "from, to"), lines)


def read_report(location: UPath, allowed: int | None = 0) -> Reconciliation:
    """Return the reconciliation whose report lies in a folder.

    ``allowed`` records may be duplicated; None: any number.

    Raises:
        ReconciliationError: There is no report, or it holds the error of a job that failed.
    """
    path = open_location(location, ReconciliationError) / REPORT
    text = read_text(path, ReconciliationError)
    if text is None:
        raise ReconciliationError(f"{path} is missing: the Spark job did not finish")
    try:
        report = json.loads(text)
        version = report["schema_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise ReconciliationError(f"{path} is not a reconciliation report: {error!r}") from error
    if version != SCHEMA_VERSION:
        raise ReconciliationError(f"{path} has version {version}; only {SCHEMA_VERSION} is known")
    if "error" in report:
        raise ReconciliationError(f"the Spark job could not compare: {report['error']}")
    return Reconciliation(report=report, allowed=allowed)


def _label(row: Mapping[str, Any]) -> str:
    if row["topic"] is None:
        return "a sink without lineage"
    return str(TopicPartition(row["topic"], row["partition"]))
