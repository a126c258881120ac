"""The limits on what requests do at once."""

import asyncio
import threading

import pytest

from airflow_mm2_offsets.api.problems import Problem
from airflow_mm2_offsets.api.workers import LIMITS, Kind, Workers

STARLETTES_THREADS = 40
"""The limit of ``run_in_threadpool``; in Airflow it is shared with Airflow's routes."""


def test_the_limits_leave_threads_for_others() -> None:
    """Airflow's own routes run in the same threads."""
    assert sum(LIMITS.values()) < STARLETTES_THREADS


def test_no_more_work_at_once_than_allowed() -> None:
    """Five functions, two at a time; all are run."""
    lock, under_way, most = threading.Lock(), 0, 0
    both = threading.Event()

    def work() -> int:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
            if under_way == 2:
                both.set()
        assert both.wait(10)
        with lock:
            under_way -= 1
        return 1

    async def run_all() -> list[int]:
        workers = Workers(Kind.PLANS, 2)
        return await asyncio.gather(*(workers.run(work) for _ in range(5)))

    assert asyncio.run(run_all()) == [1] * 5
    assert most == 2


def test_who_waits_too_long_is_sent_away() -> None:
    """With 503 and a time to come back; the turn is free again once the work has ended."""
    gate = threading.Event()

    async def three() -> None:
        workers = Workers(Kind.PLANS, 1, patience=0.05)
        first = asyncio.create_task(workers.run(lambda: gate.wait(10)))
        await asyncio.sleep(0)
        with pytest.raises(Problem) as refused:
            await workers.run(lambda: None)
        assert refused.value.status_code == 503
        assert (refused.value.headers or {})["Retry-After"] == "5"
        assert refused.value.detail.startswith("busy: 1 plans are under way")
        gate.set()
        assert await first
        assert await workers.run(lambda: 7) == 7

    asyncio.run(three())


def test_a_failure_gives_the_turn_back() -> None:
    """Else errors would use up all turns."""

    def fail() -> None:
        raise ValueError("x")

    async def twice() -> None:
        workers = Workers(Kind.PLANS, 1, patience=0.05)
        for _ in range(2):
            with pytest.raises(ValueError, match="x"):
                await workers.run(fail)

    asyncio.run(twice())
