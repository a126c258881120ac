"""The rules of a forecast, its JSON and its text."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.core.forecast import (
    CountRange,
    FactAge,
    FailoverForecast,
    ForecastRequest,
    PartitionForecast,
)
from airflow_mm2_offsets.core.forecast_rules import (
    EndSample,
    RiskFacts,
    estimate_at_risk,
    highest_rate,
)
from airflow_mm2_offsets.core.forecast_summary import summarize_forecast
from airflow_mm2_offsets.core.plan import LeftOut
from airflow_mm2_offsets.core.policy import DISASTER
from airflow_mm2_offsets.core.reread_rules import RereadFacts, estimate_read_again

FACTS = RiskFacts(position=100, read_until=100, copied_to=149, known_end=150, target_end=150)
RUNS = (EndSample(0, 0, 0), EndSample(10_000, 100, 90), EndSample(20_000, 160, 150))
"""The end of a partition that was written at 10 and then at 6 records per second."""


def _risk(lost_at: int = 30_000, max_rate: float | None = None, **facts: Any) -> CountRange:
    return estimate_at_risk(replace(FACTS, **facts), lost_at=lost_at, max_rate=max_rate).records


@pytest.mark.parametrize(
    ("facts", "at_most"),
    [
        ({"samples": RUNS}, 160 + 2 * 10 * 10 - 150),
        ({"samples": RUNS, "lost_at": 20_000}, 10),
        ({"samples": RUNS, "max_rate": 3.0}, 160 + 30 - 150),
        ({"samples": RUNS, "position": 200}, 160 + 200 - 200),
        ({"samples": RUNS, "position": 1000}, 0),
        ({"samples": RUNS, "known_end": 460}, 160 + 2 * 300 - 150),
        ({"samples": RUNS[:1], "max_rate": 10.0}, 300 - 150),
        ({"samples": RUNS[:1]}, None),
        ({}, None),
        ({"samples": RUNS, "max_rate": 1.0, "known_end": 171}, None),
        ({"samples": RUNS, "max_rate": 3.0, "skipped_by_start": 7}, 47),
    ],
)
def test_the_end_of_a_lost_source_is_bounded_by_a_rate(
    facts: dict[str, Any], at_most: int | None
) -> None:
    """From the last watermarks on, at twice the highest rate seen, or at the user's.

    Records that the job has read are not lost; without two watermarks or a rate nothing is known.
    """
    assert _risk(**facts) == CountRange(at_most=at_most)


@pytest.mark.parametrize(
    ("facts", "at_most"),
    [
        # Up to the run's end at 160 nothing was left to copy: 500 are newer, and so many again.
        ({"copied_to": 159, "target_end": 650}, 2 * 500),
        # Ten of them may have waited at the run.
        ({"copied_to": 149, "target_end": 650}, 2 * 490 + 10),
        ({"copied_to": 149, "target_end": 150}, 10 + 2 * 10 * 10),
    ],
)
def test_a_target_that_has_grown_shows_what_was_written(
    facts: dict[str, Any], at_most: int
) -> None:
    """A rate that the archive never saw shows in the copies, also where all syncs are lost."""
    assert _risk(samples=RUNS, **facts) == CountRange(at_most=at_most)


@pytest.mark.parametrize(
    ("lost_after", "max_rate", "at_most"),
    [
        (3600, None, 10 + 2 * 10 * 3600),
        (3601, None, None),
        (3601, 1.0, 10 + 3601),
    ],
)
def test_a_short_look_says_nothing_of_a_long_time(
    lost_after: int, max_rate: float | None, at_most: int | None
) -> None:
    """Rates seen for 20 s count for an hour; of an older archive only the user can tell."""
    told = _risk(lost_at=20_000 + 1000 * lost_after, max_rate=max_rate, samples=RUNS)
    assert told == CountRange(at_most=at_most)


def test_a_long_look_counts_for_as_long() -> None:
    """An archive of a fortnight that ended a week ago has seen how the partition is written."""
    day = 86_400_000
    runs = [EndSample(number * day, 100 * number, 100 * number) for number in range(15)]
    (told, basis) = estimate_at_risk(
        replace(FACTS, samples=runs, copied_to=1399, known_end=1400, target_end=1400),
        lost_at=21 * day,
    )
    assert told == CountRange(at_most=2 * 100 * 7)
    assert "604800 s before the loss" in basis


def test_what_is_unknown_says_what_would_bound_it() -> None:
    """An archive, a rate, or a rate that does not contradict what was seen."""
    bases = [
        estimate_at_risk(replace(FACTS, **facts), lost_at=30_000, max_rate=rate).basis
        for facts, rate in (
            ({}, None),
            ({"samples": RUNS[:1]}, None),
            ({"samples": RUNS, "known_end": 300}, 1.0),
        )
    ]
    assert "an archive of the offset syncs would bound it" in bases[0]
    assert "max_rate (records per second) would bound it" in bases[1]
    assert "give a higher max_rate" in bases[2]


def test_a_source_that_answers_gives_a_narrow_range() -> None:
    """The records that it holds and that are not copied count; a gap is not a record."""
    assert _risk(source_end=155) == CountRange(at_most=5)
    assert _risk(source_end=155, uncopied=[150, 154]) == CountRange(at_most=2)
    assert _risk(source_end=150, uncopied=[]) == CountRange(at_most=0)


def test_a_target_that_has_not_grown_has_no_copies() -> None:
    """The target was at 90 before the source was at 160; it is at 100, so 10 can be copies."""
    uncopied = list(range(150, 190))
    facts: dict[str, Any] = {"samples": RUNS, "source_end": 190, "uncopied": uncopied}
    assert _risk(**facts, target_end=100) == CountRange(at_least=20, at_most=40)
    assert _risk(**facts, target_end=119) == CountRange(at_least=1, at_most=40)
    assert _risk(**facts, target_end=150) == CountRange(at_least=0, at_most=40)
    # The job may have processed the records before the end of its pending batch.
    assert _risk(**facts, target_end=100, read_until=185) == CountRange(at_least=0, at_most=40)


@pytest.mark.parametrize(
    ("samples", "rate"),
    [
        ((), None),
        (RUNS[:1], None),
        (RUNS, 10.0),
        # 900 records in 0.9 s: over a second and more it is 500 per second.
        ((EndSample(0, 0), EndSample(900, 900), EndSample(1800, 900)), 500.0),
        # The last sample counts although it is near the one before.
        ((EndSample(0, 0), EndSample(1000, 0), EndSample(1500, 300)), 200.0),
        ((EndSample(0, 50), EndSample(2000, 20)), 0.0),
    ],
)
def test_the_highest_rate_is_over_a_second_at_least(
    samples: tuple[EndSample, ...], rate: float | None
) -> None:
    """A rate between two runs that nearly meet says nothing."""
    assert highest_rate(samples) == rate


@given(
    ends=st.lists(st.integers(0, 50), min_size=2, max_size=8),
    tail=st.integers(0, 50),
    position=st.integers(0, 400),
    copied=st.integers(-1, 400),
)
def test_the_range_holds_while_the_rate_does(
    ends: list[int], tail: int, position: int, copied: int
) -> None:
    """Whatever was written: at no more than twice the highest rate, no more is lost than told."""
    sums = [sum(ends[: number + 1]) for number in range(len(ends))]
    samples = [EndSample(10_000 * number, end) for number, end in enumerate(sums)]
    fastest = max(ends[1:])
    end = sums[-1] + min(tail, 2 * fastest)
    position, copied = min(position, end), min(copied, end - 1)
    told = _risk(
        lost_at=10_000 * len(sums),
        samples=samples,
        position=position,
        copied_to=copied,
        known_end=max(position, copied + 1),
    )
    assert told.at_most is not None
    assert max(0, end - max(position, copied + 1)) <= told.at_most


@pytest.mark.parametrize(
    ("facts", "at_most"),
    [
        ({"max_reread": 7}, 7),
        ({"max_reread": None}, 50),
        ({"max_reread": 7, "is_older": True}, 50),
        ({"max_reread": 7, "is_older": True, "still_to_come": 4}, 54),
        ({"max_reread": 7, "unsynced": 30}, 37),
        ({"max_reread": 7, "unsynced": 300}, 50),
        ({"max_reread": 0, "start": 160}, 0),
    ],
)
def test_records_read_again_are_always_bounded(facts: dict[str, Any], at_most: int) -> None:
    """By the plan where it knows, else by all that the target holds from the start on."""
    given_facts: dict[str, Any] = {"start": 100, "target_end": 150, "max_reread": 0} | facts
    records = estimate_read_again(RereadFacts(**given_facts)).records
    assert records == CountRange(at_most=at_most)


def _line(partition: int, at_risk: CountRange, seconds: float | None) -> PartitionForecast:
    return PartitionForecast(
        topic="orders",
        partition=partition,
        position=2**60,
        at_risk=at_risk,
        at_risk_seconds=seconds,
        at_risk_basis="why",
        read_again=CountRange(at_most=4),
        read_again_seconds=2.0,
        read_again_basis="the plan",
    )


FORECAST = FailoverForecast(
    created_at="2026-11-21T08:00:00+00:00",
    request=ForecastRequest(policy=DISASTER, plan_digest="d", max_rate=3.0),
    lost_at="2026-11-21T07:59:00+00:00",
    partitions=(
        _line(0, CountRange(at_least=1, at_most=9), 3.0),
        _line(1, CountRange(at_most=0), 0.0),
    ),
    ages=(FactAge(fact="archive", as_of="2026-11-21T07:50:00+00:00", seconds=600.0),),
    assumptions=("The source stays lost.",),
    left_out=(LeftOut(part="source", reason="did not answer"),),
)


def test_json_and_back() -> None:
    """A forecast comes back as it was; offsets are text."""
    written = FORECAST.to_json()
    assert FailoverForecast.from_json(written) == FORECAST
    assert written["partitions"][0]["position"] == str(2**60)
    assert written["totals"]["at_risk"] == {"at_least": 1, "at_most": 9}
    assert written["totals"]["read_again"] == {"at_least": 0, "at_most": 8}
    assert (written["totals"]["at_risk_seconds"], written["schema_version"]) == (3.0, 1)


@pytest.mark.parametrize("change", [{"lost_at": None}, {"schema_version": 9}])
def test_a_forecast_that_was_changed_is_refused(change: dict[str, Any]) -> None:
    """An edited number is noticed by the digest, another form by its version."""
    with pytest.raises(ValueError, match=r"digest is|schema version 9"):
        FailoverForecast.from_json(FORECAST.to_json() | change)


def test_one_unknown_partition_makes_the_total_unknown() -> None:
    """A total that leaves one out would be exceeded."""
    unknown = _line(2, CountRange(at_least=5, at_most=None), None)
    forecast = replace(FORECAST, partitions=(*FORECAST.partitions, unknown))
    assert forecast.at_risk == CountRange(at_least=6, at_most=None)
    assert forecast.at_risk_seconds is None
    assert "at risk: an unknown number of records, at least 6" in summarize_forecast(forecast)


def test_the_text_says_numbers_bases_and_assumptions() -> None:
    """Numbers first, then what they rest on."""
    text = summarize_forecast(FORECAST)
    assert text.startswith(
        "at risk: at least 1 and at most 9 records (at most 3 s of data), read again: at most 8 "
        "records (at most 2 s of data). The source counts as lost at 2026-11-21T07:59:00+00:00."
    )
    assert "archive: 2026-11-21T07:50:00+00:00, 600 s old" in text
    assert "No range is exceeded as long as:\n  The source stays lost." in text
    assert "orders[0]: at risk: why; read again: the plan" in text
