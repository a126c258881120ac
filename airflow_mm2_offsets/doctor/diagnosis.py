"""All findings about one set-up, for people and for machines."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from airflow_mm2_offsets.doctor.finding import Finding, Severity

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was found, what was examined, and what could not be."""

    findings: tuple[Finding, ...]
    """The worst first."""
    examined: tuple[str, ...]
    """The connectors and clusters whose settings were read."""
    skipped: tuple[str, ...] = ()
    """What was not looked at, each with the reason."""

    @property
    def has_errors(self) -> bool:
        """Whether a finding is an error."""
        return any(each.severity is Severity.ERROR for each in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        counts = Counter(each.severity for each in self.findings)
        return {
            "schema_version": SCHEMA_VERSION,
            "totals": {severity.value: counts[severity] for severity in Severity},
            "findings": [each.to_json() for each in self.findings],
            "examined": [*self.examined],
            "skipped": [*self.skipped],
        }

    def to_text(self) -> str:
        """Return the findings as paragraphs, the worst first."""
        blocks = [
            f"{each.severity.value:7}  {each.check}: {each.value}\n"
            f"         {each.why}\n"
            f"         Do: {each.remedy}"
            for each in self.findings
        ]
        counts = Counter(each.severity for each in self.findings)
        listed = ", ".join(f"{severity.value}s: {counts[severity]}" for severity in Severity)
        examined = "; ".join(self.examined) or "nothing"
        lines = [f"{listed}. Examined: {examined}."]
        lines += [f"Not examined: {each}." for each in self.skipped]
        return "\n\n".join([*blocks, "\n".join(lines)])


def worst_first(findings: list[Finding]) -> tuple[Finding, ...]:
    """Return findings by severity, each once; within a severity the order stays."""
    order = {severity: number for number, severity in enumerate(Severity)}
    return tuple(sorted(dict.fromkeys(findings), key=lambda each: order[each.severity]))
