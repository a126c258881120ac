"""Where a job stands: positions alone, or what a task has returned with them."""

import json
from typing import Any

import pytest

from airflow_mm2_offsets.errors import PositionError
from airflow_mm2_offsets.spark.job_positions import JobPositions, parse_job_positions

AT = {"orders": {0: 4}}
IDS = {"source": {"cluster_id": "S"}, "target": {"cluster_id": "T"}}
READ = {
    "positions": '{"orders":{"0":4}}',
    "pending": '{"orders":{"0":6}}',
    "read_until": '{"orders":{"0":6}}',
    "committed_batch": 3,
    "clusters": IDS,
    "as_of": None,
    "origin": "checkpoint",
    "topics": "orders",
    "driver_run_id": None,
}
"""What ``ReadSparkCheckpointOperator`` returns, in part."""


@pytest.mark.parametrize("as_text", [False, True])
def test_all_that_a_task_has_read_is_taken(*, as_text: bool) -> None:
    """Positions, the pending batch and the ids come together, also as JSON text of a template."""
    value: object = json.dumps(READ) if as_text else READ
    expected = JobPositions(positions=AT, pending={"orders": {0: 6}}, clusters=IDS)
    assert parse_job_positions(value) == expected


def test_a_users_note_says_of_when_its_positions_are() -> None:
    """Positions may be a mapping there; what a template leaves empty is nothing."""
    note = {"positions": {"orders": {"0": "4"}}, "as_of": "2026-11-21T09:10:00+00:00"}
    expected = JobPositions(positions=AT, as_of="2026-11-21T09:10:00+00:00")
    assert parse_job_positions(note) == expected
    both = {"positions": AT, "pending": {"orders": {"0": 6}}, "clusters": IDS}
    expected = JobPositions(positions=AT, pending={"orders": {0: 6}}, clusters=IDS)
    assert parse_job_positions(both) == expected
    empty = {"positions": {"orders": {"0": "4"}}, "as_of": "None", "pending": ""}
    assert parse_job_positions(empty) == JobPositions(positions=AT)


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("others", [[], ["pending", "clusters"], ["as_of", "origin", "topics"]])
def test_a_topic_may_be_called_like_a_field(others: list[str], *, as_text: bool) -> None:
    """Where ``positions`` maps partitions, each key is a topic."""
    topics: Any = {name: {"0": 7} for name in ["positions", *others]}
    value = json.dumps(topics) if as_text else topics
    expected = {name: {0: 7} for name in sorted(topics)}
    assert parse_job_positions(value) == JobPositions(positions=expected)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"as_off": "x"}, r"^'as_off' is no field beside positions; did you mean as_of\?$"),
        ({"orders": {"0": 1}}, r"^'orders' is no field beside positions; give some of positions, "),
        ({"as_of": "yesterday"}, r"^as_of is 'yesterday'; give a time with its zone"),
        ({"as_of": "2026-11-21T09:10:00"}, r"^as_of is '2026-11-21T09:10:00'; give a time with"),
        ({"clusters": "{}"}, r"^clusters is str; give the mapping that the task returned"),
        ({"pending": {"orders": {"0": -1}}}, r"^pending: orders\[0\]: -1 is not a position"),
        ({"positions": "latest"}, "^Spark's offsets must be JSON"),
    ],
)
def test_what_is_wrong_beside_positions_is_named(change: dict[str, Any], said: str) -> None:
    """The error names the field and its value; a misspelt field is no silent loss."""
    with pytest.raises(PositionError, match=said):
        parse_job_positions({"positions": '{"orders":{"0":4}}', **change})
