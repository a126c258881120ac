"""What a disaster has cost beside what was told."""

from typing import Any

import pytest

from demo.truth import Comparison, Counts, Range, Truth

TRUTH = Truth(
    on_source=frozenset(range(12)),
    on_target=frozenset({*range(9), *range(30, 36)}),
    delivered=dict.fromkeys([*range(10), *range(30, 36)], 1) | {4: 2, 7: 3},
)
"""Numbers 9, 10 and 11 were not copied; the job had read 9; 4 and 7 came out again."""


def told(at_risk: tuple[str, str | None], read_again: tuple[str, str | None]) -> dict[str, Any]:
    return {
        name: {"at_least": least, "at_most": most}
        for name, (least, most) in (("at_risk", at_risk), ("read_again", read_again))
    }


def forecast(
    at_risk: tuple[str, str | None] = ("0", "3"), read_again: tuple[str, str | None] = ("0", "3")
) -> dict[str, Any]:
    each = told(at_risk, read_again)
    partitions = [{"topic": "orders", "partition": number, **each} for number in range(3)]
    return {"totals": each, "partitions": partitions}


def test_lost_is_what_no_job_has_put_out() -> None:
    """A record that was not copied, but that the job had read before, is not lost."""
    assert TRUTH.totals == Counts(on_source=12, uncopied=3, lost=2, skipped=0, read_again=3)


def test_partitions_add_up() -> None:
    """Each number counts for its own partition."""
    assert TRUTH.partitions == {
        0: Counts(on_source=4, uncopied=1, lost=0, skipped=0, read_again=0),
        1: Counts(on_source=4, uncopied=1, lost=1, skipped=0, read_again=3),
        2: Counts(on_source=4, uncopied=1, lost=1, skipped=0, read_again=0),
    }


@pytest.mark.parametrize(
    ("at_risk", "read_again"),
    [
        (("0", "2"), ("0", "3")),
        (("0", None), ("0", None)),
    ],
)
def test_a_truth_within_the_forecast_holds(
    at_risk: tuple[str, str | None], read_again: tuple[str, str | None]
) -> None:
    """Both ends of a range belong to it; an unknown end bounds nothing."""
    compared = Comparison.of(TRUTH, forecast(at_risk, read_again))
    assert compared.broken == []
    assert compared.holds


@pytest.mark.parametrize(
    ("at_risk", "read_again", "broken"),
    [
        (("0", "1"), ("0", "9"), ["all"]),
        (("0", "9"), ("0", "2"), ["orders[1]", "all"]),
        (("1", "9"), ("0", "9"), ["orders[0]"]),
    ],
)
def test_a_truth_beyond_the_forecast_is_named(
    at_risk: tuple[str, str | None], read_again: tuple[str, str | None], broken: list[str]
) -> None:
    """More than was told, or less than was told at least, of one partition or of all."""
    compared = Comparison.of(TRUTH, forecast(at_risk, read_again))
    assert [line.partition(":")[0] for line in compared.broken] == broken
    assert broken[0] in str(compared.to_json()["broken"])


def test_a_skipped_copy_breaks_any_forecast() -> None:
    """A record that is on the target and that the job there never read is no matter of a loss."""
    skipping = Truth(
        on_source=TRUTH.on_source,
        on_target=TRUTH.on_target,
        delivered={number: 1 for number in TRUTH.delivered if number != 33},
    )
    compared = Comparison.of(skipping, forecast(("0", None), ("0", None)))
    assert [line.partition(":")[0] for line in compared.broken] == ["orders[0]", "all"]
    assert "1 of the target were skipped" in compared.broken[0]


def test_the_table_shows_both() -> None:
    """Told and true stand in one row, with a question mark for what is unknown."""
    text = str(Comparison.of(TRUTH, forecast(("0", None), ("1", "3"))))
    row = next(line for line in text.splitlines() if line.startswith("all"))
    assert row.split() == ["all", "12", "3", "0", "to", "?", "2", "1", "to", "3", "3", "0"]


def test_a_partition_without_a_forecast_is_an_error() -> None:
    """A forecast that leaves a partition out can't hold."""
    short = forecast()
    short["partitions"].pop()
    with pytest.raises(KeyError):
        Comparison.of(TRUTH, short)


def test_a_range_is_read_from_texts() -> None:
    """Offsets and counts are texts in an XCom."""
    assert str(Range.from_json({"at_least": "12", "at_most": None})) == "12 to ?"
