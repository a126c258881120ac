"""Briefs of plans and forecasts: what XCom holds of one whose rest lies in a file; pure.

``planning.stored_plan`` follows a brief to its file.
"""

from collections.abc import Callable, Mapping
from heapq import nlargest
from typing import Any

WORST = 20
"""How many partitions a brief shows: about 9 kB, and more than a person reads at night."""
WHOLE_ROWS, BRIEF_ROWS = "partitions", "worst_partitions"
"""The field with the partitions. A brief has another one: a user's task that reads all partitions
must fail, and not go by the few."""
LEFT_OUT, LOCATION = "partitions_left_out", "location"
"""The fields that a brief has beside those of the whole."""


def is_brief(content: Mapping[str, Any]) -> bool:
    """Tell whether a plan's or forecast's JSON lacks partitions, which lie in a file."""
    return LEFT_OUT in content


def check_whole(content: Mapping[str, Any]) -> None:
    """Raise ValueError for a brief: the caller needs all partitions."""
    if is_brief(content):
        raise ValueError(
            f"it is a brief, which lacks {content[LEFT_OUT]} partitions; the whole is in "
            f"{content.get(LOCATION)}"
        )


def brief_plan(plan: Mapping[str, Any], location: str) -> dict[str, Any]:
    """Return a plan's JSON with its worst partitions alone, and where the whole one is.

    The worst are refused; then those that start by a fallback, that may lose records, whose
    records read again are unknown, and that read the most again. ``digest`` is the whole plan's.
    Of the ids of topics those of the shown partitions are there.
    """
    brief = _brief(plan, location, concern_of)
    names = {row[name] for row in brief[BRIEF_ROWS] for name in ("topic", "target_topic")}
    return brief | {"clusters": {side: _only(ids, names) for side, ids in plan["clusters"].items()}}


def brief_forecast(forecast: Mapping[str, Any], location: str) -> dict[str, Any]:
    """Return a forecast's JSON with its worst partitions alone, and where the whole one is.

    The worst have an unknown number of records at risk; then those with the most at risk, an
    unknown number read again, the most read again. ``digest`` is the whole forecast's.
    """
    return _brief(forecast, location, risk_of)


def worst_partitions(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the worst partitions of a plan's JSON, or of its brief, the worst first."""
    return nlargest(WORST, rows_of(plan), key=concern_of)


def riskiest_partitions(forecast: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the worst partitions of a forecast's JSON, or of its brief, the worst first."""
    return nlargest(WORST, rows_of(forecast), key=risk_of)


def concern_of(row: Mapping[str, Any]) -> tuple[int, ...]:
    """Return how much a plan's partition, as JSON, concerns a person; the worst is the greatest."""
    start, low, again = row["target"], row["low"], row["max_reread"]
    is_proved = start is not None and low is not None and not row["fallback"]
    uncopied = row.get("uncopied") or {}
    given_up = uncopied["at_most"] if uncopied.get("is_given_up") else 0
    return (
        start is None,
        bool(row["fallback"]),
        given_up + (max(0, int(start) - int(low)) if is_proved else 0),  # what may be lost
        again is None,
        again or 0,
    )


def risk_of(row: Mapping[str, Any]) -> tuple[int, ...]:
    """Return how much a forecast's partition, as JSON, concerns a person."""
    most = [row[name]["at_most"] for name in ("at_risk", "read_again")]
    return tuple(number for count in most for number in (count is None, int(count or 0)))


def _brief(
    content: Mapping[str, Any],
    location: str,
    concern: Callable[[Mapping[str, Any]], tuple[int, ...]],
) -> dict[str, Any]:
    rows = content[WHOLE_ROWS]
    worst = nlargest(WORST, rows, key=concern)
    head = {name: each for name, each in content.items() if name != WHOLE_ROWS}
    return {**head, BRIEF_ROWS: worst, LEFT_OUT: len(rows) - len(worst), LOCATION: location}


def rows_of(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the partitions that a plan's or forecast's JSON has: all, or those of its brief."""
    rows: list[Mapping[str, Any]] = content[BRIEF_ROWS if is_brief(content) else WHOLE_ROWS]
    return rows


def rest_of(content: Mapping[str, Any]) -> str:
    """Return where the partitions are that a brief lacks, as a sentence; empty for the whole."""
    if not (left_out := content.get(LEFT_OUT)):
        return ""
    partitions = "1 partition" if left_out == 1 else f"{left_out} partitions"
    return f"{partitions} more: {content[LOCATION]}"


def _only(ids: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    topic_ids = {name: each for name, each in ids["topic_ids"].items() if name in names}
    return {**ids, "topic_ids": topic_ids}
