"""Whether a failover needs a person's word, and the page that asks for it; pure.

``operators.approve`` calls it with the numbers of a plan and a forecast.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from textwrap import fill

_COLUMNS = 84
"""Airflow shows a block in so many columns on a small screen, and wraps nothing itself."""
MAX_SUMMARY = 20_000
"""Characters of a summary on the page: a plan of 10,000 partitions is megabytes."""


class Ask(StrEnum):
    """When a person is asked."""

    ABOVE_THRESHOLDS = "above_thresholds"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One number of a failover beside its threshold."""

    name: str
    value: int | None
    """The most that it can be; None: unknown, which is above every threshold."""
    threshold: int

    @property
    def is_above(self) -> bool:
        """Whether a person is to decide."""
        return self.value is None or self.value > self.threshold

    def __str__(self) -> str:
        """Return it as part of a sentence."""
        value = "an unknown number" if self.value is None else f"at most {self.value}"
        return f"{self.name}: {value}, allowed {self.threshold}"


def measures_of(
    numbers: Mapping[str, int | None], *, max_refused: int, max_read_again: int, max_at_risk: int
) -> tuple[Measure, ...]:
    """Return the three numbers that decide, beside their thresholds.

    Args:
        numbers: ``refused``, ``read_again_at_most`` and ``lost_at_most``; None: unknown.
        max_refused: Topic-partitions without a proved answer that need no approval.
        max_read_again: Records processed twice that need none.
        max_at_risk: Records lost that need none.
    """
    limits = {
        "refused partitions": ("refused", max_refused),
        "records read again": ("read_again_at_most", max_read_again),
        "records at risk": ("lost_at_most", max_at_risk),
    }
    return tuple(
        Measure(name=name, value=numbers.get(key), threshold=limit)
        for name, (key, limit) in limits.items()
    )


def must_ask(ask: Ask, measures: Sequence[Measure]) -> bool:
    """Tell whether a person is to decide."""
    return ask is Ask.ALWAYS or (
        ask is Ask.ABOVE_THRESHOLDS and any(each.is_above for each in measures)
    )


def reason(ask: Ask, measures: Sequence[Measure]) -> str:
    """Return why a person is asked, or why nobody is, as a sentence."""
    above = "; ".join(str(each) for each in measures if each.is_above)
    match ask:
        case Ask.ALWAYS:
            return f"Every failover is to be approved{f': {above}' if above else ''}."
        case Ask.NEVER:
            return f"Nobody is to be asked{f', though {above}' if above else ''}."
    return f"Above a threshold: {above}." if above else "No number is above its threshold."


def subject(job: str, mode: str, measures: Sequence[Measure]) -> str:
    """Return the headline: job, mode and numbers."""
    numbers = ", ".join(
        f"{'unknown' if each.value is None else each.value} {each.name}" for each in measures
    )
    return f"Failover ({mode}) of {job}: {numbers}"


def body(
    measures: Sequence[Measure],
    why: str,
    *,
    consequence: str,
    summaries: Mapping[str, str | None],
    more: str,
) -> str:
    """Return the page in Markdown: why, a table of the numbers, and the summaries as they are.

    ``more`` is the address of the page that has the plan.
    """
    rows = [
        f"| {each.name} | {'unknown' if each.value is None else each.value} | {each.threshold} "
        f"| {'**above**' if each.is_above else 'within'} |"
        for each in measures
    ]
    parts = [
        why,
        "\n".join(["| | at most | allowed | |", "|---|---:|---:|---|", *rows]),
        consequence,
        f"[Plan, status and tasks of this run]({more})",
        *(f"### {title}\n\n{code_block(text)}" for title, text in summaries.items() if text),
    ]
    return "\n\n".join(parts)


def code_block(text: str) -> str:
    """Return a text as a fenced block, wrapped, and cut where it is too long for a page."""
    if len(text) > MAX_SUMMARY:
        text = f"{text[:MAX_SUMMARY]}\n... {len(text) - MAX_SUMMARY} characters more in the XCom"
    text = "\n".join(
        fill(line, _COLUMNS, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    )
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"
