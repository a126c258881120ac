"""The report of a readiness check: each check with its status, value, threshold and remedy.

``readiness`` makes reports. XCom, command line and page show a report as ``to_json`` writes it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from airflow_mm2_offsets.core.policy import Policy
from airflow_mm2_offsets.core.readiness_names import NEXT_STEPS, CheckName

SCHEMA_VERSION = 1

_HEADER = ("check", "status", "value")


class CheckStatus(StrEnum):
    """How one check ended."""

    OK = "ok"
    WARNING = "warning"
    """Nothing that stops a failover, but somebody should look."""
    FAILED = "failed"
    """A failover would fail, or lose or repeat records."""
    UNKNOWN = "unknown"
    """It could not be asked: something did not answer, or does not tell."""
    NOT_ASKED = "not_asked"
    """The mode or the settings do not need it."""


class ReadinessVerdict(StrEnum):
    """Whether a failover can begin."""

    READY = "ready"
    READY_WITH_WARNINGS = "ready_with_warnings"
    """No check has failed; at least one is a warning or unknown."""
    NOT_READY = "not_ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessCheck:
    """One check."""

    name: CheckName
    status: CheckStatus
    value: str
    """What was found, with its place."""
    threshold: str | None = None
    """What the value is compared with."""
    remedy: str = ""
    """What to do; empty where ``value`` says it, or where nothing is to do."""
    number: float | None = None
    """The value as a number, where it is one: records or seconds."""
    subject: str = ""
    """The topic-partition, connector or folder that it is about; empty: all of them."""

    @property
    def problem(self) -> str:
        """The value and what to do, as one sentence."""
        return f"{self.value}; {self.remedy}" if self.remedy else self.value

    @property
    def next_step(self) -> str:
        """What to do; empty where all is well."""
        if self.status in {CheckStatus.OK, CheckStatus.NOT_ASKED}:
            return self.remedy
        return self.remedy or NEXT_STEPS[self.name]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "name": self.name.value,
            "status": self.status.value,
            "value": self.value,
            "number": self.number,
            "threshold": self.threshold,
            "remedy": self.next_step,
            "subject": self.subject,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessReport:
    """All checks of one moment."""

    checks: tuple[ReadinessCheck, ...]
    policy: Policy
    created_at: str
    """ISO 8601, UTC."""
    run_id: str | None = None
    """The run that asked: DAG id and run id."""
    is_under_way: bool = False
    """Whether the run that asked has raised its fence: then only what is to come was checked."""

    @property
    def failed(self) -> tuple[ReadinessCheck, ...]:
        """The checks that failed."""
        return self._of(CheckStatus.FAILED)

    @property
    def problems(self) -> list[str]:
        """The failed checks as sentences, each once."""
        return list(dict.fromkeys(check.problem for check in self.failed))

    @property
    def verdict(self) -> ReadinessVerdict:
        """Not ready if a check failed."""
        if self.failed:
            return ReadinessVerdict.NOT_READY
        if self._of(CheckStatus.WARNING) or self._of(CheckStatus.UNKNOWN):
            return ReadinessVerdict.READY_WITH_WARNINGS
        return ReadinessVerdict.READY

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "verdict": self.verdict.value,
            "policy": self.policy.name,
            "created_at": self.created_at,
            "run_id": self.run_id,
            "is_under_way": self.is_under_way,
            "totals": {status.value: len(self._of(status)) for status in CheckStatus},
            "checks": [check.to_json() for check in self.checks],
        }

    def summary(self) -> str:
        """Return the report as one sentence, a table, and what to do."""
        rows = [
            (check.name.value, check.status.value, _one_line(check.value)) for check in self.checks
        ]
        steps = [f"{check.name}: {check.next_step}" for check in self._to_do()]
        listed = "\n\nWhat to do\n" + "\n".join(steps) if steps else ""
        return f"{self._headline()}\n\n{_table([_HEADER, *rows])}{listed}"

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        lines = [
            f"**{self._headline()}**",
            "",
            "| check | status | value | threshold | what to do |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| `{check.name}` | {check.status} | {_cell(check.value)} | "
            f"{_cell(check.threshold or '')} | {_cell(check.next_step)} |"
            for check in self.checks
        ]
        return "\n".join(lines)

    def _headline(self) -> str:
        verdict = self.verdict.value.replace("_", " ").upper()
        counts = ", ".join(
            f"{count} {status.value.replace('_', ' ')}"
            for status in CheckStatus
            if (count := len(self._of(status)))
        )
        return f"{verdict} for {self.policy}, as of {self.created_at}: {counts}"

    def _of(self, status: CheckStatus) -> tuple[ReadinessCheck, ...]:
        return tuple(check for check in self.checks if check.status is status)

    def _to_do(self) -> Iterator[ReadinessCheck]:
        for check in self.checks:
            if check.next_step and check.status is not CheckStatus.OK:
                yield check


def _table(rows: list[tuple[str, str, str]]) -> str:
    """Return a table whose columns are all aligned left."""
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join(
        f"{name:{first}}  {status:{second}}  {value}".rstrip() for name, status, value in rows
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _one_line(text).replace("|", "\\|")
