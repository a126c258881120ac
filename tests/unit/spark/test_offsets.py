"""Spark's offset JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.core.positions import MAX_OFFSET, Positions
from airflow_mm2_offsets.errors import PositionError
from airflow_mm2_offsets.spark.offsets import format_offsets, parse_offsets

positions = st.dictionaries(
    st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True),
    st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, MAX_OFFSET), min_size=1),
    min_size=1,
)


@given(positions)
def test_what_was_written_is_read_back(given_positions: Positions) -> None:
    """Any positions survive the way to text and back."""
    assert parse_offsets(format_offsets(given_positions)) == given_positions


def test_text_is_deterministic() -> None:
    """Topics stand by name and partitions by number, whatever the order they came in."""
    assert format_offsets({"b": {10: 1, 9: 2}, "a": {0: 3}}) == '{"a":{"0":3},"b":{"9":2,"10":1}}'


def test_spark_s_spacing_does_not_matter() -> None:
    """Text that people or other tools spaced out is read as well."""
    assert parse_offsets(' {"orders": {"1": 7, "0": 42}}\n') == {"orders": {0: 42, 1: 7}}


@pytest.mark.parametrize("offset", ["-1", "-2", "-7", "1.5", "true", "null", '"42"', "[1]", "{}"])
def test_an_offset_that_is_none_is_named(offset: str) -> None:
    """The message holds the topic, the partition and the value."""
    with pytest.raises(PositionError) as refused:
        parse_offsets(f'{{"orders":{{"3":{offset}}}}}')
    assert "orders[3]" in str(refused.value)
    assert repr(json.loads(offset)) in str(refused.value)


@pytest.mark.parametrize("offset", [-1, -2])
def test_latest_and_earliest_are_explained(offset: int) -> None:
    """-1 and -2 are refused as what they mean to Spark, not only as numbers."""
    with pytest.raises(PositionError, match="earliest and latest"):
        parse_offsets(f'{{"orders":{{"0":{offset}}}}}')


@pytest.mark.parametrize(
    "text",
    [
        "",
        "latest",
        "[]",
        "{}",
        "7",
        '{"orders":{"0":1}',
        '{"orders":7}',
        '{"orders":{}}',
        '{"orders":{"x":1}}',
        '{"orders":{"-1":1}}',
        '{"orders":{"07":1}}',
        '{"orders":{"0":1,"0":2}}',
        '{"orders":{"0":1},"orders":{"1":1}}',
        '{"orders":{"0":' + "9" * 5000 + "}}",
        '{"orders":{"' + "9" * 5000 + '":1}}',
        "[" * 100_000,
    ],
)
def test_what_is_no_offset_json_is_refused(text: str) -> None:
    """Bad JSON, other shapes and names given twice are errors, never a guess."""
    with pytest.raises(PositionError):
        parse_offsets(text)


def test_a_number_too_large_for_kafka_is_refused() -> None:
    """2**63 does not fit the wire."""
    with pytest.raises(PositionError, match="9223372036854775808"):
        parse_offsets('{"orders":{"0":9223372036854775808}}')


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter2-long\n",
        '{"private_key": "hunter2-long"}',
        '{"orders": {"0": "hunter2-long"}}',
        '{"orders": {"hunter2-long": 1}}',
        '{"orders": ["hunter2-long"]}',
        '["hunter2-long"]',
        '{"a": "hunter2-long", "a": 1}',
    ],
)
def test_the_text_of_a_wrong_file_is_not_shown(text: str) -> None:
    """Somebody named another file: it may hold secrets."""
    with pytest.raises(PositionError) as refused:
        parse_offsets(text)
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in str(refused.value.__cause__)


@pytest.mark.parametrize("topic", ["", "a:b", "a b", "\ud800", "ä", "x" * 250, "a\n"])
def test_a_name_that_no_topic_can_have_is_refused(topic: str) -> None:
    """By Kafka's rule; librdkafka ends the process on a name that is not UTF-8."""
    with pytest.raises(PositionError, match="249 letters, digits") as refused:
        parse_offsets(json.dumps({topic: {"0": 1}}))
    assert len(str(refused.value)) < 250
