"""The tasks of a run over time, and the downtime between two of them."""

from datetime import UTC, datetime, timedelta

from airflow_mm2_offsets.plugins.page.records import TaskRef, TaskTry
from airflow_mm2_offsets.plugins.page.timeline import Timeline, make_timeline

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
NOW = BEGAN + timedelta(seconds=100)


def at(seconds: float | None) -> datetime | None:
    return None if seconds is None else BEGAN + timedelta(seconds=seconds)


def tried(
    task_id: str,
    started: float | None,
    ended: float | None,
    *,
    operator: str = "Other",
    state: str | None = "success",
    number: int = 1,
    map_index: int = -1,
) -> TaskTry:
    return TaskTry(
        task=TaskRef(dag_id="d", run_id="r", task_id=task_id, map_index=map_index),
        try_number=number,
        operator=operator,
        state=state,
        started=at(started),
        ended=at(ended),
    )


def stop(
    started: float, ended: float | None, state: str = "success", map_index: int = -1
) -> TaskTry:
    operator = "StopSparkStreamingOperator"
    return tried("stop", started, ended, operator=operator, state=state, map_index=map_index)


def start(started: float, ended: float | None, state: str = "success") -> TaskTry:
    return tried("start", started, ended, operator="SparkStartedSensor", state=state)


def timeline(*tries: TaskTry, is_drill: bool = False) -> Timeline:
    made = make_timeline(tries, NOW, is_drill=is_drill)
    assert made is not None
    return made


def test_downtime_is_from_the_proof_of_the_stop_to_the_first_batch() -> None:
    """From the end of the stop's task to the end of the start's, counted from the first start."""
    down = timeline(stop(5, 20), start(30, 65)).downtime
    assert down is not None
    assert (down.begin, down.end, down.seconds, down.is_over) == (15, 60, 45, True)


def test_a_job_that_has_not_started_is_down_until_now() -> None:
    """While the sensor waits, and where no task watches for the start."""
    waiting = timeline(stop(0, 10), start(30, None, "deferred")).downtime
    assert waiting is not None
    assert (waiting.seconds, waiting.is_over) == (90, False)
    over = timeline(stop(0, 10), tried("report", 20, 40)).downtime
    assert over is not None
    assert (over.seconds, over.is_over) == (30, False)


def test_a_stop_without_proof_is_no_downtime() -> None:
    """A stop that failed proves nothing: the job may run."""
    assert timeline(stop(0, 10, "failed"), start(20, 30)).downtime is None


def test_a_second_stop_begins_the_downtime_anew() -> None:
    """A start that was seen before the last stop is not its end."""
    down = timeline(stop(0, 10), start(10, 30), stop(40, 50)).downtime
    assert down is not None
    assert (down.begin, down.is_over) == (50, False)


def test_a_drill_has_no_downtime() -> None:
    """Its job runs on."""
    assert timeline(stop(0, 10), start(20, 30), is_drill=True).downtime is None


def test_jobs_of_a_fleet_have_no_common_downtime() -> None:
    """One job's start must not end another's downtime."""
    jobs = [stop(0, 10, map_index=each) for each in range(2)]
    assert timeline(*jobs, start(20, 30)).downtime is None


def test_each_try_is_a_bar() -> None:
    """Tries and mapped tasks are told apart; what has not started is named below."""
    made = timeline(
        tried("check", 0, 1, state="failed"),
        tried("check", 10, 12, number=2),
        tried("move", 12, None, state="running", map_index=3),
        tried("report", None, None, state=None),
    )
    assert [bar.label for bar in made.bars] == ["check, try 1", "check, try 2", "move [3]"]
    assert [bar.seconds for bar in made.bars] == [1, 2, 88]
    assert [bar.is_running for bar in made.bars] == [False, False, True]
    assert made.waiting == ["report (not started)"]
    assert made.seconds == 100


def test_a_run_without_a_start_has_no_timeline() -> None:
    """Every task is still queued."""
    assert make_timeline([tried("check", None, None)], NOW, is_drill=False) is None
