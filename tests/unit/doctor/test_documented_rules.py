"""docs/doctor.md: its table is that of the rules."""

import re
from pathlib import Path

from airflow_mm2_offsets.doctor.diagnose import ALL_RULES
from airflow_mm2_offsets.doctor.finding import Severity

PAGE = Path(__file__).parents[3] / "docs" / "doctor.md"


def test_the_page_lists_every_rule() -> None:
    """Each with its severity, why it matters and what to do; the worst first."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    assert rows == [
        (rule.check, rule.severity.value, rule.why, rule.remedy)
        for severity in Severity
        for rule in ALL_RULES
        if rule.severity is severity
    ]


def test_each_rule_has_a_name_of_its_own() -> None:
    """Users filter by the names."""
    names = [rule.check for rule in ALL_RULES]
    assert len(names) == len(set(names))
