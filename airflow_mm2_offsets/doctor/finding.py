"""What a rule finds, and the rule itself."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from airflow_mm2_offsets.logins import without_login

SubjectT = TypeVar("SubjectT")


class Severity(StrEnum):
    """How bad it is, the worst first."""

    ERROR = "error"
    """A failover can fail or lose records without a sign, or a login can be stolen."""
    WARNING = "warning"
    """A failover works, with less proof, more records read again, or a smaller margin."""
    NOTE = "note"
    """Nothing to mend, but good to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong or dangerous."""

    severity: Severity
    check: str
    """The rule's name; it is stable."""
    value: str
    """What was found, and where."""
    why: str
    """What it means for a failover."""
    remedy: str
    """What to set or do."""

    def to_json(self) -> dict[str, str]:
        """Return plain JSON."""
        return {
            "severity": self.severity.value,
            "check": self.check,
            "value": self.value,
            "why": self.why,
            "remedy": self.remedy,
        }


class Hit(NamedTuple):
    """What a rule looks for, found once."""

    value: str
    subject: str = ""
    """The topic or the setting that stands for ``{subject}`` in the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[SubjectT]):
    """One thing to look for. docs/doctor.md lists all rules."""

    check: str
    severity: Severity
    why: str
    remedy: str
    find: Callable[[SubjectT], Iterable[Hit]]

    def examine(self, subject: SubjectT) -> Iterator[Finding]:
        """Yield a finding for each hit."""
        for hit in self.find(subject):
            yield self.finding(hit)

    def finding(self, hit: Hit) -> Finding:
        """Return the finding of a hit."""
        return Finding(
            severity=self.severity,
            check=self.check,
            value=without_login(hit.value),
            why=self.why,
            remedy=self.remedy.replace("{subject}", hit.subject),
        )
