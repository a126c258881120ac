"""The wait for the proof of a stop, look by look."""

import json
import time
from functools import partial
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError, StopError
from airflow_mm2_offsets.job.stop.control import JobMovedError
from airflow_mm2_offsets.moves.stop_watch import StopRules, StopWatch
from tests.unit.job.drivers import driver
from tests.unit.moves.stage import ONE, TWO, Asked

INTERVAL = 0.25


@pytest.fixture
def watch(asked: Asked) -> StopWatch:
    """A watch of the job's first stop, for which a moment of silence after the answer is enough."""
    asked.mover().ask()
    return _watch(asked)


def _watch(asked: Asked, request_id: str = f"{ONE}#1", **rules: Any) -> StopWatch:
    return StopWatch(
        home=asked.job.homes[0],
        request_id=request_id,
        rules=StopRules(**{"quiet_period": 0.0, **rules}),
        open_path=UPath,
        interval=INTERVAL,
    )


def _pass(seconds: float) -> None:
    time.sleep(seconds)  # the claim is about time that passes


def _proof(watch: StopWatch) -> str | None:
    found = watch.look()
    return None if isinstance(found, str) else str(found["proof"])


def test_it_gives_signs_of_life_until_the_job_has_answered(asked: Asked, watch: StopWatch) -> None:
    """Without them the job takes the stop for given up."""
    file = asked.driver.control / "stop-heartbeat.json"
    signs = []
    for _ in range(2):
        missing = watch.look()
        signs.append(json.loads(file.read_text()))
    assert isinstance(missing, str)
    assert missing.startswith(f"{asked.job.homes[0]} holds no answer to {ONE}#1 (driver h:7")
    assert [sign["request_id"] for sign in signs] == [f"{ONE}#1", f"{ONE}#1"]
    assert signs[0]["at"] < signs[1]["at"]
    assert signs[0]["interval"] == INTERVAL
    asked.driver.acknowledge()
    assert _proof(watch) == "acknowledged"
    assert json.loads(file.read_text()) == signs[1]


@pytest.mark.parametrize("lost", [False, True])
def test_it_says_whether_the_driver_lives(asked: Asked, *, lost: bool) -> None:
    """One look shows no life. In a disaster, a driver that lives may be ended by a person."""
    asked.mover().ask()
    watch = _watch(asked, checkpoint_may_be_lost=lost)
    assert "does the job run" in str(watch.look())
    asked.driver.beat(2)
    missing = str(watch.look())
    assert "driver h:7 lives (heartbeat 2), and answers after its batch" in missing
    assert ("end the driver" in missing) is lost


def test_a_driver_that_still_beats_has_not_stopped(asked: Asked, watch: StopWatch) -> None:
    """Each heartbeat and each change of the checkpoint starts the quiet period again."""
    quiet_period = 0.08
    watch = _watch(asked, quiet_period=quiet_period)
    asked.driver.acknowledge()
    assert _proof(watch) is None
    for change in (
        lambda: asked.driver.beat(2),
        lambda: (asked.driver.checkpoint / "offsets" / ".1.tmp").write_text("x"),
        lambda: (asked.driver.checkpoint / "commits" / ".1.tmp").write_text("x"),
    ):
        _pass(quiet_period)
        change()
        assert "have not changed for 0 of 0 s" in watch.look()
    _pass(quiet_period)
    assert _proof(watch) == "acknowledged"


@pytest.mark.usefixtures("watch")
def test_a_silent_driver_counts_as_dead_after_the_heartbeat_timeout(asked: Asked) -> None:
    """Each heartbeat, and a late answer, start the count again."""
    heartbeat_timeout = 0.08
    watch = _watch(asked, quiet_period=heartbeat_timeout, heartbeat_timeout=heartbeat_timeout)
    asked.driver.beat(1, lease=0.01)
    assert _proof(watch) is None
    for change in (partial(asked.driver.beat, 2, lease=0.01), asked.driver.acknowledge):
        _pass(heartbeat_timeout)
        change()
        assert _proof(watch) is None
    _pass(heartbeat_timeout)
    assert _proof(watch) == "acknowledged"


def test_a_job_that_has_ended_is_stopped_already(asked: Asked, watch: StopWatch) -> None:
    """Its own word that no query runs is the proof, once its driver beats no more for its lease."""
    lease = 0.2
    for heartbeat in (1, 2):
        asked.driver.beat(heartbeat, ended=True, lease=lease)
        found = watch.look()
        assert isinstance(found, str)
        assert found.startswith("its queries have ended; heartbeat and checkpoint have not changed")
        _pass(lease)
    proof = watch.look()
    assert isinstance(proof, dict)
    assert (proof["proof"], proof["batch_id"]) == ("ended", None)


@pytest.mark.usefixtures("watch")
def test_no_wait_is_shorter_than_the_drivers_own_times(asked: Asked) -> None:
    """Three heartbeats of one that answered, its lease of one that did not."""
    asked.driver.beat(1, interval=0.02, lease=0.08)
    silent = _watch(asked, heartbeat_timeout=0.0)
    assert "have not changed for 0 of 0 s" in silent.look()
    _pass(0.1)
    assert _proof(silent) == "silent"
    asked.driver.acknowledge()
    answered = _watch(asked)
    assert _proof(answered) is None
    _pass(0.06)
    assert _proof(answered) == "acknowledged"


def test_an_earlier_answer_counts_while_nothing_has_followed(asked: Asked) -> None:
    """Not where another driver has begun since, nor where the answer does not name its run."""
    asked.mover(ONE).ask()
    asked.driver.acknowledge()
    later = asked.mover(TWO).ask(takes_over=ONE).request_id
    assert _proof(_watch(asked, later)) is None
    asked.driver.acknowledge(request_id=f"{ONE}#1", queries=[asked.driver.query_answer(0)])
    assert _proof(_watch(asked, later)) == "acknowledged"
    for other in ({"run_id": "another"}, {"application_id": "app-2"}):
        asked.driver.beat(1, **other)
        assert _proof(_watch(asked, later)) is None


def test_a_job_that_failed_has_stopped_too(asked: Asked, watch: StopWatch) -> None:
    """Its answer says why it had failed."""
    asked.driver.acknowledge(error="boom")
    proof = watch.look()
    assert isinstance(proof, dict)
    assert (proof["error"], proof["batch_id"]) == ("boom", 0)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"batch_id": 7}, "last committed batch is 0, and 7 in the answer"),
        ({"offsets": [{"orders": {"0": 99}}]}, r"orders\[0\] is 4, and 99 in the answer"),
    ],
)
def test_an_answer_that_differs_from_the_checkpoint_ends_the_wait(
    asked: Asked, watch: StopWatch, answer: dict[str, Any], problem: str
) -> None:
    """Both numbers are named."""
    asked.driver.acknowledge(**answer)
    with pytest.raises(StopError, match=problem):
        watch.look()


def test_damaged_files_end_the_wait(asked: Asked, watch: StopWatch) -> None:
    """Of the driver, and of the checkpoint: unless a disaster may have taken that."""
    driver = (asked.driver.control / "driver.json").read_text()
    (asked.driver.control / "driver.json").write_text("[]")
    with pytest.raises(StopError, match=r"driver\.json"):
        watch.look()
    (asked.driver.control / "driver.json").write_text(driver)
    asked.driver.acknowledge()
    asked.driver.checkpoint.rename(asked.driver.folder / "gone")
    with pytest.raises(CheckpointError):
        watch.look()
    assert _proof(_watch(asked, checkpoint_may_be_lost=True)) == "acknowledged"


def test_a_driver_that_is_refused_proves_no_end(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a cluster manager starts another, the paused one has not ended."""
    asked.driver.beat(30, lease=0.01)
    asked.mover().ask()
    with pytest.raises(JobMovedError):
        driver(monkeypatch, asked.driver.control, "app-2")._start()  # noqa: SLF001 - as constructed
    watch = _watch(asked)
    watch.look()
    _pass(0.02)
    assert _proof(watch) is None
