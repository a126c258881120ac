"""What every wait of this package has in common, in the triggerer."""

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from airflow_mm2_offsets.errors import ClusterUnreachableError, Mm2OffsetsError

LOG_EVERY = 30.0
"""Seconds between two lines in the log that say what is being waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What was waited for is there."""

    result: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON for the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotYet:
    """What was waited for is not there yet."""

    reason: str
    """What is missing, for log and error."""


class PollingTrigger(BaseTrigger):
    """Polls until the wait is over or its deadline has passed.

    Args:
        deadline: When to give up, in seconds since 1970: it outlives a restart of the triggerer.
        poll_interval: Seconds between two polls.
    """

    wait_for: ClassVar[str]
    """What is waited for, for messages."""

    def __init__(self, *, deadline: float, poll_interval: float) -> None:
        """Keep the settings."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.deadline = deadline
        self.poll_interval = poll_interval

    @abstractmethod
    def poll(self) -> Done | NotYet:
        """Look once; it runs in a thread and may block.

        Raises:
            ClusterUnreachableError: Taken as waiting: a broker may come back.
            Mm2OffsetsError: The wait can't end well.
        """

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the arguments beside ``deadline`` and ``poll_interval``."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return class and arguments, for Airflow's database."""
        kind = type(self)
        times = {"deadline": self.deadline, "poll_interval": self.poll_interval}
        return f"{kind.__module__}.{kind.__qualname__}", self.settings() | times

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll until there is an event to send."""
        began = logged = time.monotonic()
        while True:
            found = await self._look_in_thread()
            if not isinstance(found, NotYet):
                yield TriggerEvent(found)
                return
            if time.time() >= self.deadline:
                yield TriggerEvent({"timeout": found.reason})
                return
            if time.monotonic() - logged >= LOG_EVERY:
                logged = time.monotonic()
                self.log.info(
                    "Waiting for %s for %.0f s: %s", self.wait_for, logged - began, found.reason
                )
            await asyncio.sleep(self.poll_interval)

    def look(self) -> dict[str, Any] | NotYet:
        """Poll once; return the event that ends the wait, as plain JSON, or what is missing."""
        try:
            found = self.poll()
        except ClusterUnreachableError as error:
            return NotYet(reason=str(error))
        except Mm2OffsetsError as error:
            return _told(error)
        return found if isinstance(found, NotYet) else {"result": dict(found.result)}

    async def _look_in_thread(self) -> dict[str, Any] | NotYet:
        # All that is thread-sensitive shares one thread: a broker that is down would hold up every
        # other trigger there.
        looking = asyncio.ensure_future(sync_to_async(self.look, thread_sensitive=False)())
        # Cancelled itself, it would raise without the cancellation's message, by which Airflow
        # knows that a user has ended the task, and calls on_kill.
        return await asyncio.shield(looking)


def _told(error: Mm2OffsetsError) -> dict[str, Any]:
    """Return an error as plain JSON: the task raises it again as what it was."""
    kind = type(error).__name__
    return {"error": str(error), "kind": kind, "retryable": error.retryable}
