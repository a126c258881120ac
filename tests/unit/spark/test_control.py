"""Airflow's side of the stop control."""

import json

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError, StopError
from airflow_mm2_offsets.spark.control import read_acknowledgement, read_driver

ANSWER = {
    "schema_version": 1,
    "request_id": "stop-1",
    "application_id": "app-1",
    "batch_id": 7,
    "offsets": [{"orders": {"0": 42}}, {"logOffset": 3}, {"refunds": {"1": 5}}],
    "clean": True,
    "error": None,
}
DRIVER = {
    "schema_version": 1,
    "application_id": "app-1",
    "query_id": "q",
    "run_id": "r",
    "host": "h",
    "pid": 12,
    "heartbeat": 3,
}


def _answer(control: UPath, **changes: object) -> None:
    (control / "stopped.json").write_text(json.dumps(ANSWER | changes))


def test_an_acknowledgement(control: UPath) -> None:
    """It holds the positions of all Kafka sources, and only answers its own request."""
    assert read_acknowledgement(control, "stop-1") is None
    _answer(control)
    answer = read_acknowledgement(control, "stop-1")

    assert answer is not None
    assert answer.offsets == {"orders": {0: 42}, "refunds": {1: 5}}
    assert (answer.batch_id, answer.clean, answer.error) == (7, True, None)
    assert read_acknowledgement(control, "stop-2") is None


def test_a_run_without_a_batch(control: UPath) -> None:
    """A job that stopped before its first batch has no offsets to tell."""
    _answer(control, batch_id=None, offsets=None)
    answer = read_acknowledgement(control, "stop-1")
    assert answer is not None
    assert (answer.batch_id, answer.offsets) == (None, None)


def test_a_driver(control: UPath) -> None:
    """None until a job has started; an empty file is one that's just being created."""
    assert read_driver(control) is None
    (control / "driver.json").write_text("")
    assert read_driver(control) is None
    (control / "driver.json").write_text(json.dumps(DRIVER))
    driver = read_driver(control)
    assert driver is not None
    assert (driver.host, driver.pid, driver.heartbeat) == ("h", 12, 3)


def test_a_driver_that_says_all(control: UPath) -> None:
    """What an older release did not write has a default; all else is read as it stands."""
    said = {"processes": {"12": 34}, "kubernetes_driver": "ns:pod", "bootstrap_servers": ["a:1"]}
    for given, expected in (
        ({}, ({}, None, frozenset())),
        (said, ({12: 34}, "ns:pod", frozenset({"a:1"}))),
    ):
        (control / "driver.json").write_text(json.dumps(DRIVER | given))
        driver = read_driver(control)
        assert driver is not None
        found = (driver.processes, driver.kubernetes_driver, driver.bootstrap_servers)
        assert found == expected
    (control / "driver.json").write_text(json.dumps(DRIVER | {"processes": {"a": 1}}))
    with pytest.raises(StopError, match="processes is"):
        read_driver(control)


@pytest.mark.parametrize("text", ["{", "[]", "null"])
def test_a_damaged_file(control: UPath, text: str) -> None:
    """What is no JSON object is named by its path."""
    (control / "driver.json").write_text(text)
    with pytest.raises(StopError, match=r"driver\.json"):
        read_driver(control)


def test_two_sources_apart_in_the_answer(control: UPath) -> None:
    """One partition at two offsets is refused, as it is in a checkpoint."""
    _answer(control, offsets=[{"orders": {"0": 1}}, {"orders": {"0": 2}}])
    with pytest.raises(CheckpointError, match=r"orders\[0\]"):
        read_acknowledgement(control, "stop-1")


def test_a_location_out_of_reach() -> None:
    """A location on a storage that nobody knows is named."""
    with pytest.raises(StopError, match="nosuch://control"):
        read_driver("nosuch://control")
