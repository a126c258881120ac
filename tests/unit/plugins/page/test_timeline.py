"""The tasks of a run over time, and the downtimes between them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_mm2_offsets.operators.links import ROLLS_BACK, STARTS, STOPS
from airflow_mm2_offsets.plugins.page.records import LinkedTask, TaskRef, TaskTry
from airflow_mm2_offsets.plugins.page.timeline import Downtime, Timeline, make_timeline

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
NOW = BEGAN + timedelta(seconds=100)
PROVED: dict[str, dict[str, Any]] = {"stop": {"proof": "acknowledged"}, "start": {"batch_id": 0}}


def at(seconds: float | None) -> datetime | None:
    return None if seconds is None else BEGAN + timedelta(seconds=seconds)


def ref(task_id: str, map_index: int = -1) -> TaskRef:
    return TaskRef(dag_id="d", run_id="r", task_id=task_id, map_index=map_index)


def tried(
    task_id: str,
    started: float | None,
    ended: float | None,
    state: str = "success",
    *,
    number: int = 1,
    map_index: int = -1,
    is_last: bool = True,
) -> TaskTry:
    return TaskTry(
        task=ref(task_id, map_index),
        try_number=number,
        state=state,
        started=at(started),
        ended=at(ended),
        is_last=is_last,
    )


def linked(task_id: str, job: str, map_index: int = -1) -> LinkedTask:
    return LinkedTask(task=ref(task_id, map_index), ended=BEGAN, job=job)


JOBS = (linked("stop", STOPS), linked("start", STARTS), linked("roll_back", ROLLS_BACK))


def timeline(
    *tries: TaskTry,
    results: Mapping[str, Mapping[str, Any]] = PROVED,
    jobs: tuple[LinkedTask, ...] = JOBS,
    now: datetime | None = NOW,
) -> Timeline:
    found = {ref(task_id): result for task_id, result in results.items()}
    made = make_timeline([tried("check", 0, 1), *tries], jobs, found, now=now)
    assert made is not None
    return made


def downtimes(*tries: TaskTry, **more: Any) -> list[tuple[float, float, bool]]:
    return [(each.begin, each.end, each.is_over) for each in timeline(*tries, **more).downtimes]


def test_downtime_is_from_the_proof_of_the_stop_to_the_first_batch() -> None:
    """From the end of the stop's task to the end of the start's; the proof is named."""
    made = timeline(tried("stop", 5, 20), tried("start", 30, 65))
    assert made.downtimes == [Downtime(begin=20, end=65, proof="acknowledged", is_over=True)]
    assert made.downtimes[0].seconds == 45


def test_a_job_that_has_not_started_is_down_until_now() -> None:
    """While the sensor waits, and while nothing runs between two tries."""
    assert downtimes(tried("stop", 1, 10), tried("start", 30, None, "deferred")) == [
        (10, 100, False)
    ]
    assert downtimes(tried("stop", 1, 10), tried("other", 20, 40)) == [(10, 100, False)]


def test_a_run_that_has_ended_knows_no_more() -> None:
    """The axis ends with the last task, and the page says that no start was seen."""
    made = timeline(tried("stop", 1, 10), tried("report", 20, 40, "failed"), now=None)
    assert [(each.end, each.is_over) for each in made.downtimes] == [(40, False)]
    assert made.has_ended


def test_a_stop_that_is_done_again_does_not_shorten_the_downtime() -> None:
    """Cleared an hour later, it finds the job stopped already: it was down all the time."""
    tries = (
        tried("stop", 5, 10, is_last=False),
        tried("stop", 3600, 3605, number=2),
        tried("start", 3700, 3710),
    )
    assert downtimes(*tries) == [(10, 3710, True)]


def test_a_job_may_be_down_twice() -> None:
    """After a start, a second stop begins another downtime."""
    tries = (tried("stop", 1, 10, is_last=False), tried("start", 10, 30), tried("stop", 40, 50))
    assert downtimes(*tries) == [(10, 30, True), (50, 100, False)]


def test_a_stop_without_proof_is_no_downtime() -> None:
    """One that failed, or that a user has marked as success: the job may run."""
    assert downtimes(tried("stop", 1, 10, "failed"), tried("start", 20, 30)) == []
    assert downtimes(tried("stop", 1, 10), tried("start", 20, 30), results={}) == []


def test_a_start_that_a_user_has_marked_shows_no_batch() -> None:
    """The job is down until a task has seen its first batch."""
    only_stop = {"stop": {"proof": "acknowledged"}}
    assert downtimes(tried("stop", 1, 10), tried("start", 20, 30), results=only_stop) == [
        (10, 100, False)
    ]


def test_a_roll_back_ends_the_downtime_where_the_job_runs_again() -> None:
    """If it only withdraws the stop, nobody knows: the job stays down."""
    tries = (tried("stop", 1, 10), tried("roll_back", 20, 30))
    for job, expected in {
        "restarted": (10, 30, True),
        "runs": (10, 30, True),
        "stopped": (10, 100, False),
    }.items():
        assert downtimes(*tries, results=PROVED | {"roll_back": {"job": job}}) == [expected]


def test_a_drill_has_no_downtime() -> None:
    """Its job runs on: the page gives no task that stops it."""
    assert downtimes(tried("stop", 1, 10), tried("start", 20, 30), jobs=()) == []


def test_jobs_of_a_fleet_have_no_common_downtime() -> None:
    """One job's start must not end another's downtime."""
    jobs = tuple(linked("stop", STOPS, number) for number in range(2))
    tries = [tried("stop", 1, 10, map_index=number) for number in range(2)]
    assert downtimes(*tries, jobs=(*jobs, linked("start", STARTS))) == []


def test_each_try_is_a_bar() -> None:
    """Tries and mapped tasks are told apart; a running one ends now."""
    made = timeline(
        tried("move", 0, 1, "failed", is_last=False),
        tried("move", 10, 12, number=2),
        tried("job", 12, None, "running", map_index=3),
    )
    assert [bar.label for bar in made.bars] == ["check", "move, try 1", "move, try 2", "job [3]"]
    assert [bar.seconds for bar in made.bars] == [1, 1, 2, 88]
    assert [bar.is_running for bar in made.bars] == [False, False, False, True]
    assert made.seconds == 100


def test_a_try_that_has_not_started_has_no_bar() -> None:
    """A cleared or retrying task still has the times of its last try in Airflow's database."""
    made = timeline(
        tried("stop", 5, 9, is_last=False),
        tried("stop", 5, 9, "queued", number=2),
        tried("report", None, None, "none"),
        tried("other", 5, 9, "up_for_retry"),
    )
    assert [bar.label for bar in made.bars] == ["check", "stop, try 1"]
    assert made.waiting == [
        "stop, try 2 (queued)",
        "report (none)",
        "other (up for retry)",
    ]


def test_a_run_without_a_start_has_no_timeline() -> None:
    """Every task is still queued."""
    assert make_timeline([tried("check", None, None, "queued")], (), {}, now=NOW) is None
