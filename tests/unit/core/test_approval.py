"""Whether a person is asked, and what the page shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.core.approval import (
    MAX_SUMMARY,
    Ask,
    body,
    code_block,
    measures_of,
    must_ask,
    reason,
    subject,
)


def numbers(refused: int = 0, again: int | None = 0, risk: int | None = 0) -> dict[str, int | None]:
    return {"refused": refused, "read_again_at_most": again, "lost_at_most": risk}


COUNTS = st.none() | st.integers(0, 5)


@given(st.integers(0, 3), COUNTS, COUNTS, st.tuples(*[st.integers(0, 5)] * 3))
def test_a_person_is_asked_above_any_threshold(
    refused: int, again: int | None, risk: int | None, allowed: tuple[int, int, int]
) -> None:
    """And at no other time: equal is within, unknown is above."""
    r, a, k = allowed
    measures = measures_of(
        numbers(refused, again, risk), max_refused=r, max_read_again=a, max_at_risk=k
    )
    is_above = refused > r or again is None or again > a or risk is None or risk > k
    assert must_ask(Ask.ABOVE_THRESHOLDS, measures) == is_above
    assert must_ask(Ask.ALWAYS, measures)
    assert not must_ask(Ask.NEVER, measures)
    assert ("Above a threshold" in reason(Ask.ABOVE_THRESHOLDS, measures)) == is_above


def test_an_exact_plan_of_healthy_clusters_asks_nobody() -> None:
    """With the default thresholds, which are 0."""
    measures = measures_of(numbers(), max_refused=0, max_read_again=0, max_at_risk=0)
    assert not must_ask(Ask.ABOVE_THRESHOLDS, measures)
    assert reason(Ask.ABOVE_THRESHOLDS, measures) == "No number is above its threshold."


def test_a_number_that_is_missing_is_unknown() -> None:
    """And so above every threshold."""
    measures = measures_of({"refused": 0}, max_refused=0, max_read_again=3, max_at_risk=99)
    assert [each.value for each in measures] == [0, None, None]
    assert must_ask(Ask.ABOVE_THRESHOLDS, measures)


def test_the_page_has_the_numbers_and_the_summaries() -> None:
    """In a table and in fenced blocks; the subject has job, policy and numbers."""
    measures = measures_of(numbers(1, 7, None), max_refused=0, max_read_again=9, max_at_risk=0)
    assert subject("orders", "disaster", measures) == (
        "Failover (disaster) of orders: 1 refused partitions, 7 records read again, "
        "unknown records at risk"
    )
    summaries = {"Plan": "a\nb", "Forecast": None}
    text = body(measures, "why", consequence="then", summaries=summaries, more="/dags/x")
    assert "| refused partitions | 1 | 0 | **above** |\n" in text
    assert "| records read again | 7 | 9 | within |\n" in text
    assert "| records at risk | unknown | 0 | **above** |" in text
    assert "[Plan, status and tasks of this run](/dags/x)" in text
    assert text.endswith("### Plan\n\n```text\na\nb\n```")


def test_a_block_is_wrapped() -> None:
    """Airflow's page cuts what is longer; a location stays whole, to be copied."""
    location = f"s3://{'long/' * 30}"
    lines = code_block(f"Next: {'a word ' * 40}\n{location}").splitlines()
    assert location in lines
    assert max(len(each) for each in lines if each != location) <= 84


@pytest.mark.parametrize("text", ["a", "```", "x" * (MAX_SUMMARY + 5)])
def test_a_block_is_closed(text: str) -> None:
    """Whatever the text holds; a long one is cut, and says so."""
    fence, *_, last = code_block(text).splitlines()
    assert fence.removesuffix("text") == last
    assert last not in text
    assert ("5 characters more" in code_block(text)) == (len(text) > MAX_SUMMARY)
