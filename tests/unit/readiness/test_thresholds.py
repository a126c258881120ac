"""Thresholds as users give them."""

import pytest

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.readiness.thresholds import DEFAULT_THRESHOLDS, Thresholds


def test_templated_text_counts_as_its_number() -> None:
    """What a template leaves empty keeps its default."""
    parsed = Thresholds.parse({"max_lag_records": "5", "max_sync_age": "None", "other": 1})
    assert parsed.max_lag_records == 5
    assert parsed.max_sync_age == DEFAULT_THRESHOLDS.max_sync_age


@pytest.mark.parametrize("value", ["many", "-1", "nan", "inf", [1]])
def test_what_is_not_a_number_is_refused(value: object) -> None:
    """A threshold that compares as false would never fail."""
    with pytest.raises(ConfigurationError, match=r"max_lag_seconds: is .*at least 0"):
        Thresholds.parse({"max_lag_seconds": value})
