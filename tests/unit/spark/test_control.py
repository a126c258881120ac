"""Airflow's side of the stop control."""

import json
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError, StopError
from airflow_mm2_offsets.spark.closing import close_request
from airflow_mm2_offsets.spark.control import StopProof, read_acknowledgement, read_driver
from airflow_mm2_offsets.spark.stopping import request_stop

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


def _asked(control: UPath) -> str:
    request = json.loads((control / "stop-request.json").read_text())
    assert request["schema_version"] == 1
    return str(request["request_id"])


def test_a_request_is_written_once(control: UPath) -> None:
    """The same id asks once: the second call leaves the file as it is, answered or not."""
    request_stop(control, "stop-1")
    written = (control / "stop-request.json").stat().st_mtime
    request_stop(control, "stop-1")
    _answer(control)
    request_stop(control, "stop-1")

    assert _asked(control) == "stop-1"
    assert (control / "stop-request.json").stat().st_mtime == written
    assert {path.name for path in control.iterdir()} == {"stop-request.json", "stopped.json"}


def test_another_open_request_is_named(control: UPath) -> None:
    """Two stops at once are a mistake, and the message says which was first."""
    request_stop(control, "stop-1")
    with pytest.raises(StopError, match="'stop-1' is open"):
        request_stop(control, "stop-2")
    assert _asked(control) == "stop-1"


def test_an_answered_request_makes_room(control: UPath) -> None:
    """After the answer another may ask, and the first never asks again."""
    request_stop(control, "stop-1")
    _answer(control)
    request_stop(control, "stop-2")
    assert _asked(control) == "stop-2"
    assert read_acknowledgement(control, "stop-2") is None

    with pytest.raises(StopError, match="'stop-1' was requested and answered before 'stop-2'"):
        request_stop(control, "stop-1")


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


def test_a_request_closed_in_the_place_of_the_dead(control: UPath) -> None:
    """It is answered, so that it stops no later driver; the answer says that it is not a job's."""
    (control / "driver.json").write_text(json.dumps(DRIVER))
    request_stop(control, "stop-1")
    close_request(control, "stop-1", StopProof.SILENT)
    answer = read_acknowledgement(control, "stop-1")
    assert answer is not None
    assert (answer.proof, answer.clean, answer.application_id) == (StopProof.SILENT, False, "app-1")
    request_stop(control, "stop-2")


def test_a_location_that_can_not_be_written(tmp_path: Path) -> None:
    """A request that nobody could read is not taken for one that was asked."""
    control = UPath(tmp_path)
    (control / "stop-request.json").mkdir()
    with pytest.raises(StopError, match=r"stop-request\.json is out of reach: IsADirectoryError"):
        request_stop(control, "stop-1")


@pytest.mark.parametrize(
    "change",
    [
        {"clean": "yes"},
        {"batch_id": True},
        {"offsets": {}},
        {"application_id": None},
        {"proof": "sworn"},
        {"queries": ["q"]},
        {"heartbeat": "1"},
    ],
)
def test_an_answer_that_is_none_of_ours(control: UPath, change: dict[str, object]) -> None:
    """A field of another kind is named with what the file holds."""
    _answer(control, **change)
    with pytest.raises(StopError, match=next(iter(change))):
        read_acknowledgement(control, "stop-1")


def test_a_request_that_is_none_of_ours(control: UPath) -> None:
    """The error names a field that must hold a list and holds something else."""
    request_stop(control, "stop-1")
    (control / "stop-request.json").write_text('{"request_id": "stop-1", "earlier": 3}')
    with pytest.raises(StopError, match="earlier is 3"):
        request_stop(control, "stop-2")


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


def test_a_location_out_of_reach(tmp_path: Path) -> None:
    """A location that doesn't exist, or on a storage nobody knows, is named."""
    with pytest.raises(StopError, match=f"{tmp_path}/typo"):
        request_stop(str(tmp_path / "typo"), "stop-1")
    with pytest.raises(StopError, match="nosuch://control"):
        request_stop("nosuch://control", "stop-1")
    with pytest.raises(StopError, match="nosuch://control"):
        read_driver("nosuch://control")
