"""What every wait has in common: it polls until there is one event to send."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from airflow.triggers.base import TriggerEvent
from asgiref.sync import async_to_sync

from airflow_mm2_offsets.errors import CheckpointError, ClusterUnreachableError, StopError
from airflow_mm2_offsets.triggers import polling
from airflow_mm2_offsets.triggers.polling import Done, NotYet, PollingTrigger
from tests.unit.operators.worker import events

DOWN = ClusterUnreachableError("source cluster (kafka_source): did not answer")


class Scripted(PollingTrigger):
    """Returns the given outcomes one after the other, and the last one for ever."""

    wait_for = "what the test wants"
    settings = ()

    def __init__(self, *outcomes: Done | NotYet | Exception, seconds: float = 60) -> None:
        super().__init__(deadline=time.time() + seconds, poll_interval=0.005)
        self.outcomes = list(outcomes)
        self.polls = 0

    def poll(self) -> Done | NotYet:
        self.polls += 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def test_what_is_there_is_the_result() -> None:
    """The one event holds what the last poll found."""
    trigger = Scripted(NotYet(reason="no"), NotYet(reason="not yet"), Done(result={"batch": 3}))
    assert events(trigger) == [{"result": {"batch": 3}}]
    assert trigger.polls == 3


def test_what_can_not_end_well_is_an_error() -> None:
    """An error of this package ends the wait at once, with its text, its kind, and its remedy."""
    assert events(Scripted(CheckpointError("damaged"), Done())) == [
        {"error": {"kind": "CheckpointError", "message": "damaged"}, "retryable": False}
    ]
    assert events(Scripted(StopError("a storage is down"), Done())) == [
        {"error": {"kind": "StopError", "message": "a storage is down"}, "retryable": True}
    ]


def test_a_wait_past_its_deadline_says_what_was_missing() -> None:
    """The last reason stands in the event."""
    trigger = Scripted(NotYet(reason="two are behind"), NotYet(reason="one is"), seconds=0.5)
    assert events(trigger) == [{"timeout": "one is"}]


def test_a_cluster_that_is_down_is_waited_for() -> None:
    """A broker may come back: until then it counts as not there yet."""
    assert events(Scripted(DOWN, DOWN, Done())) == [{"result": {}}]


def test_a_cluster_that_stays_down_is_named() -> None:
    """At the deadline the event says which cluster did not answer."""
    assert events(Scripted(DOWN, seconds=0.02)) == [{"timeout": str(DOWN)}]


def test_a_deadline_outlives_the_triggerer() -> None:
    """A trigger that is created after its deadline looks once, and then gives up."""
    assert events(Scripted(NotYet(reason="no"), seconds=-5)) == [{"timeout": "no"}]
    assert events(Scripted(Done(), seconds=-5)) == [{"result": {}}]


@pytest.mark.parametrize(
    "outcomes",
    [
        (NotYet(reason="no"), Done(result={"batch": 3})),
        (DOWN, StopError("a storage is down")),
    ],
)
def test_a_worker_waits_as_the_triggerer_does(outcomes: tuple[Any, ...]) -> None:
    """Both end with the same event."""
    assert [Scripted(*outcomes).wait()] == events(Scripted(*outcomes))
    late = Scripted(NotYet(reason="one is"), seconds=0.02)
    assert late.wait() == {"timeout": "one is"}
    assert late.polls > 1


def test_a_bug_is_not_hidden() -> None:
    """What this package does not raise on purpose reaches Airflow with its trace."""
    with pytest.raises(ZeroDivisionError):
        events(Scripted(ZeroDivisionError()))


def test_the_log_says_what_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Now and then a line names the wait, its length and what is missing."""
    monkeypatch.setattr(polling, "LOG_EVERY", 0.0)
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(Scripted, "log", logging.getLogger(__name__))
    events(Scripted(NotYet(reason="one is behind"), Done()))
    assert "Waiting for what the test wants for 0 s: one is behind" in caplog.text


class _Doing(PollingTrigger):
    """Calls a function, and is done."""

    wait_for = "it"
    settings = ()

    def __init__(self, do: Callable[[], object]) -> None:
        super().__init__(deadline=0.0, poll_interval=0.005)
        self.do = do

    def poll(self) -> Done | NotYet:
        self.do()
        return Done()


def test_a_slow_poll_holds_up_no_other_trigger() -> None:
    """In one triggerer, polls that block run side by side."""
    together = threading.Barrier(3, timeout=5)

    async def run_all(triggers: Iterable[PollingTrigger]) -> list[Any]:
        return await asyncio.gather(*(anext(trigger.run()) for trigger in triggers))

    sent = asyncio.run(run_all([_Doing(together.wait) for _ in range(3)]))
    assert [event.payload for event in sent] == [{"result": {}}] * 3


def test_a_poll_reaches_the_loop_of_the_triggerer() -> None:
    """Airflow 3.1 asks for connections on that loop, from whatever thread a poll runs in."""
    loops: list[asyncio.AbstractEventLoop] = []

    async def note() -> None:
        loops.append(asyncio.get_running_loop())

    async def run_one() -> None:
        await anext(_Doing(async_to_sync(note)).run())
        assert loops == [asyncio.get_running_loop()]

    asyncio.run(run_one())


def test_a_poll_that_is_cancelled_says_why() -> None:
    """Airflow names a user's deed in the cancellation, and calls ``on_kill`` for no other."""
    polls, goes_on = threading.Event(), threading.Event()

    def block() -> None:
        polls.set()
        goes_on.wait(5)

    async def first_event() -> TriggerEvent:
        return await anext(_Doing(block).run())

    async def cancel_one() -> str:
        task = asyncio.create_task(first_event())
        await asyncio.to_thread(polls.wait, 5)
        task.cancel("a user's deed")
        try:
            await task
        except asyncio.CancelledError as error:
            return str(error)
        finally:
            goes_on.set()
        return "not cancelled"

    assert asyncio.run(cancel_one()) == "a user's deed"
