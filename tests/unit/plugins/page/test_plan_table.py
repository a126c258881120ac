"""A plan's rows, filtered, sorted and cut into pages."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.core.brief import concern_of, worst_partitions
from airflow_mm2_offsets.plugins.page.plan_table import (
    PAGE_ROWS,
    Filter,
    Row,
    Sort,
    TableQuery,
    kind_of,
    name_of,
    parse_rows,
    table_page,
)


def row(partition: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "topic": "orders",
        "partition": partition,
        "target_topic": "source.orders",
        "position": "10",
        "target": "10",
        "low": "10",
        "high": "10",
        "pending": 0,
        "status": "exact",
        "basis": "sync",
        "reason": "lies at a sync",
        "shift": 0,
        "max_reread": 0,
        "fallback": None,
    } | fields


ROWS = st.lists(
    st.builds(
        row,
        st.integers(0, 20_000),
        status=st.sampled_from(["exact", "bounded"]),
        target=st.none() | st.just("10"),
        shift=st.none() | st.integers(-(10**9), 10**9),
        max_reread=st.none() | st.integers(0, 10**9),
        fallback=st.none() | st.just({"kind": "earliest", "reason": "chosen"}),
    ),
    max_size=3 * PAGE_ROWS,
)


@given(ROWS, st.sampled_from(Sort), st.sampled_from(Filter))
def test_the_pages_hold_each_row_that_is_found_once(
    rows: list[Row], sort: Sort, status: Filter
) -> None:
    """Whatever the order and the filter: no row is lost, none is shown twice."""
    first = table_page(rows, TableQuery(sort=sort, status=status))
    pages = [
        table_page(rows, TableQuery(sort=sort, status=status, page=number + 1))
        for number in range(first.pages)
    ]
    seen = [id(each) for page in pages for each in page.rows]
    wanted = [id(each) for each in rows if status in {Filter.ALL, kind_of(each)}]
    assert sorted(seen) == sorted(wanted)
    assert first.matches == len(wanted)


@given(ROWS)
def test_the_worst_are_those_of_the_brief(rows: list[Row]) -> None:
    """A long plan's brief and its page rank alike."""
    shown = table_page(rows, TableQuery()).rows[:20]
    brief = worst_partitions({"partitions": rows})
    assert list(map(concern_of, shown)) == list(map(concern_of, brief))


@pytest.mark.parametrize(
    "plan",
    [
        {},
        {"partitions": None},
        {"partitions": ["x"]},
        {"partitions": [{}]},
        {"partitions": [row(status="forecast")]},
        {"partitions": [row(position=None)]},
    ],
)
def test_what_is_no_plan_is_told_apart(plan: dict[str, Any]) -> None:
    """Anybody may have written the XCom."""
    assert parse_rows(plan) is None
    assert parse_rows({"partitions": [row()]}) == [row()]


@pytest.mark.parametrize("text", ["orders[7]", "SOURCE.ORDERS", "  content ", "found there"])
def test_a_text_is_looked_for_in_names_basis_and_reason(text: str) -> None:
    """Whatever its case, and with spaces around it."""
    wanted = row(7, basis="content", reason="it was found there")
    other = row(8, target_topic="other")
    assert table_page([other, wanted], TableQuery(text=text)).rows[0] == wanted


def test_a_page_beyond_the_last_is_the_last() -> None:
    """An address that was kept from a longer plan still shows something."""
    page = table_page([row(each) for each in range(PAGE_ROWS + 1)], TableQuery(page=99))
    assert (page.number, len(page.rows), page.first) == (2, 1, PAGE_ROWS + 1)


def test_no_row_is_one_empty_page() -> None:
    """A filter that finds nothing has one page."""
    page = table_page([row()], TableQuery(text="nothing"))
    assert (page.pages, page.matches, page.rows) == (1, 0, [])


def test_a_fallback_is_its_own_kind() -> None:
    """A refused partition that starts by the user's choice is not shown as refused."""
    chosen = row(status="refused", fallback={"kind": "latest", "reason": "by choice"})
    assert kind_of(chosen) == "fallback"
    assert name_of(chosen) == "orders[0]"


def test_shifts_are_sorted_by_their_size() -> None:
    """The farthest first, to either side."""
    rows = [row(0, shift=5), row(1, shift=-900), row(2, shift=None)]
    found = table_page(rows, TableQuery(sort=Sort.SHIFT)).rows
    assert [each["partition"] for each in found] == [1, 0, 2]
