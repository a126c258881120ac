"""What ran on which version: the results of noxfile.py, as the table of docs/versions.md.

``python -m benchmarks.versions`` adds the newest results to those that are committed.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parent.parent
FOUND = ROOT / "build" / "compat"
"""Where each session writes its result."""
RESULTS = Path(__file__).with_name("results") / "versions.json"
PAGE = ROOT / "docs" / "versions.md"
BEGIN, END = "<!-- the table: make compat -->", "<!-- its end -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a run of pytest says."""

    what: str
    tests: int
    """Those that were neither skipped nor known to fail."""
    failed: int

    @classmethod
    def read(cls, what: str, report: Path) -> Self:
        """Read pytest's JUnit report; where it is absent, pytest did not come to its end."""
        if not report.exists():
            return cls(what=what, tests=0, failed=1)
        (suite,) = ET.parse(report).getroot().iter("testsuite")  # noqa: S314 - pytest's own file
        counts = {name: int(to) for name, to in suite.items() if to.isdecimal()}
        failed = counts["failures"] + counts["errors"]
        return cls(what=what, tests=counts["tests"] - counts["skipped"], failed=failed)

    @property
    def passed(self) -> bool:
        """Whether tests ran, and none failed."""
        return self.tests > 0 and self.failed == 0

    def __str__(self) -> str:
        """Return one line."""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.what}: {self.tests:,}{failed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionResult:
    """What ran on one version of one thing."""

    what: str
    version: str
    python: str
    ran: tuple[Ran, ...]
    date: str
    """ISO 8601."""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """Return what ``asdict`` made JSON of."""
        return cls(**{**fields, "ran": tuple(Ran(**each) for each in fields["ran"])})

    def write(self, file: Path) -> None:
        """Write it as JSON."""
        file.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @property
    def passed(self) -> bool:
        """Whether all of it passed."""
        return bool(self.ran) and all(each.passed for each in self.ran)

    def __str__(self) -> str:
        """Return one line."""
        return f"{self.what} {self.version} on Python {self.python}: {self._outcome}; {self._tests}"

    @property
    def row(self) -> str:
        """Its row of the table."""
        cells = (self.what, self.version, self.python, self._tests, self._outcome, self.date)
        return f"| {' | '.join(cells)} |"

    @property
    def _outcome(self) -> str:
        return "passed" if self.passed else "FAILED"

    @property
    def _tests(self) -> str:
        return "; ".join(map(str, self.ran))


def today() -> str:
    """Return the date."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def committed() -> dict[str, VersionResult]:
    """Return the results in the repository, by session."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return {name: VersionResult.of(fields) for name, fields in known.items()}


def found() -> dict[str, VersionResult]:
    """Return the results of the sessions that ran here, by session."""
    files = sorted(FOUND.glob("*.json"))
    return {file.stem: VersionResult.of(json.loads(file.read_text())) for file in files}


def table(results: Iterable[VersionResult]) -> str:
    """Return the rows as Markdown."""
    head = "| what | version | Python | what ran, and how many tests | result | date |"
    by_version = sorted(results, key=_order)
    return "\n".join((head, "|---|---|---|---|---|---|", *(each.row for each in by_version)))


def _order(result: VersionResult) -> tuple[str, list[int], list[int]]:
    numbers = (
        [int(part) for part in version.split(".") if part.isdecimal()]
        for version in (result.version, result.python)
    )
    version, python = numbers
    return result.what, version, python


def with_table(page: str, rows: str) -> str:
    """Return the page with other rows between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{rows}\n{END}{after}"


def main() -> None:
    """Add what was found to the committed results, and rewrite the page's table."""
    results = committed() | found()
    fields = {name: asdict(result) for name, result in sorted(results.items())}
    RESULTS.write_text(json.dumps(fields, indent=1) + "\n")
    rows = table(results.values())
    PAGE.write_text(with_table(PAGE.read_text(), rows))
    sys.stdout.write(f"{rows}\n")


if __name__ == "__main__":
    main()
