"""The base of the triggers that wait; the sensors and the stop operator poll with it, too."""

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from airflow_mm2_offsets.errors import ClusterUnreachableError, Mm2OffsetsError
from airflow_mm2_offsets.triggers.step import waits_for_task

FIRST_LOOK_SECONDS = 5.0
"""How long a trigger waits at most before its first look.

Airflow takes a task for failed whose trigger fires before a busy scheduler has noticed that the
task is deferred.
"""
LOG_EVERY = 30.0
"""Seconds between two lines in the log about what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The wait has succeeded."""

    result: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON for the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotYet:
    """The wait goes on."""

    reason: str
    """What is missing, for log and error."""


class PollingTrigger(BaseTrigger):
    """Polls until the wait ends or its deadline has passed.

    Its event is ``{"result": ...}``, ``{"timeout": what was missing}``, or ``{"error": ...,
    "retryable": ...}`` with the error as ``to_json`` gives it.

    Args:
        deadline: When to give up, in seconds since 1970: it outlives a restart of the triggerer.
        poll_interval: Seconds between two looks.
    """

    wait_for: ClassVar[str]
    """What is waited for, for messages."""
    settings: ClassVar[tuple[str, ...]]
    """The arguments beside ``deadline`` and ``poll_interval``; attributes have the same names."""

    def __init__(self, *, deadline: float, poll_interval: float) -> None:
        """Keep the settings."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.deadline = deadline
        self.poll_interval = poll_interval
        self._began = self._logged = time.monotonic()

    @abstractmethod
    def poll(self) -> Done | NotYet:
        """Look once; may block.

        Raises:
            ClusterUnreachableError: The wait goes on: a broker may come back.
            Mm2OffsetsError: The wait can't end well.
        """

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return class and arguments, for Airflow's database."""
        kind = type(self)
        names = (*self.settings, "deadline", "poll_interval")
        arguments = {name: getattr(self, name) for name in names}
        return f"{kind.__module__}.{kind.__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait in the triggerer; send one event."""
        yield TriggerEvent(await self._wait_as_step())

    async def _wait_as_step(self) -> dict[str, Any]:
        # Not in ``run``: Airflow may close that generator in another context than it ran in.
        with waits_for_task(self):
            seconds = min(self.poll_interval, FIRST_LOOK_SECONDS)
            while True:
                await asyncio.sleep(seconds)
                if (event := self._event(await self._look_in_thread())) is not None:
                    return event
                seconds = self.poll_interval

    def wait(self) -> dict[str, Any]:
        """Wait in the worker; return the event."""
        while (event := self._event(self.look())) is None:
            time.sleep(self.poll_interval)
        return event

    def look(self) -> dict[str, Any] | NotYet:
        """Look once; return the event that ends the wait, as plain JSON, or what is missing."""
        try:
            outcome = self.poll()
        except ClusterUnreachableError as error:
            return NotYet(reason=str(error))
        except Mm2OffsetsError as error:
            return {"error": error.to_json(), "retryable": error.retryable}
        return outcome if isinstance(outcome, NotYet) else {"result": dict(outcome.result)}

    def _event(self, outcome: dict[str, Any] | NotYet) -> dict[str, Any] | None:
        """Return the event that ends the wait; while it goes on None, with a line in the log."""
        if not isinstance(outcome, NotYet):
            return outcome
        if time.time() >= self.deadline:
            return {"timeout": outcome.reason}
        now = time.monotonic()
        if now - self._logged >= LOG_EVERY:
            self._logged = now
            waited = now - self._began
            self.log.info("Waiting for %s for %.0f s: %s", self.wait_for, waited, outcome.reason)
        return None

    async def _look_in_thread(self) -> dict[str, Any] | NotYet:
        # Thread-sensitive calls of all triggers share one thread: a broker that is down would
        # block it.
        looking = asyncio.ensure_future(sync_to_async(self.look, thread_sensitive=False)())
        # A cancelled task raises without the cancellation's message, and Airflow calls on_kill only
        # for the message that says that a user has ended the task.
        return await asyncio.shield(looking)
