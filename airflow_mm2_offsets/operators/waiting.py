"""What every task that waits has in common."""

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar, NoReturn

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_mm2_offsets import errors
from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError
from airflow_mm2_offsets.operators.failing import final
from airflow_mm2_offsets.triggers.polling import NotYet, PollingTrigger


class WaitingOperator(BaseOperator):
    """A task that leaves its wait to the triggerer.

    Args:
        timeout: Seconds to wait at most.
        poll_interval: Seconds between two looks.
    """

    wait_for: ClassVar[str]
    """What is waited for, for messages."""
    error: ClassVar[type[Mm2OffsetsError]]
    """What is raised when the time to wait has passed."""

    def __init__(
        self, *, timeout: float = 600.0, poll_interval: float = 2.0, **kwargs: Any
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.timeout = timeout
        self.poll_interval = poll_interval

    def seconds(self, field: str) -> float | None:
        """Return a field that holds seconds, or the text that a template made of them.

        Raises:
            ConfigurationError: It holds something else.
        """
        given = getattr(self, field)
        if given in {None, "", "None"}:  # as Jinja writes a param that is null
            return None
        try:
            seconds = float(given)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds < float("inf"):
            raise ConfigurationError(
                f"task {self.task_id}: {field} is {given!r}; give seconds, or None for never"
            )
        return seconds

    def look_or_wait(
        self, context: Mapping[str, Any], trigger: type[PollingTrigger], **settings: Any
    ) -> dict[str, Any]:
        """Return what is there already, or defer until it is; a first look can end the wait.

        On a loaded machine Airflow fails a deferred task whose trigger fires before the scheduler
        has heard that the task is deferred: so none is deferred for what is there.

        Args:
            context: Airflow's.
            trigger: Its class.
            settings: What the trigger takes beside its times.
        """
        found = self._trigger(trigger, self.timeout, settings).look()
        if isinstance(found, NotYet):
            return self.wait(trigger, **settings)
        return self.resume(context, found)

    def wait(
        self,
        trigger: type[PollingTrigger],
        *,
        timeout: float | None = None,
        then: str = "resume",
        **settings: Any,
    ) -> NoReturn:
        """Defer until ``trigger`` has an event, and go on with it.

        Args:
            trigger: Its class.
            timeout: Seconds to wait at most; the task's own unless given.
            then: The name of the method that goes on.
            settings: What the trigger takes beside its times.
        """
        seconds = self.timeout if timeout is None else timeout
        self.defer(
            trigger=self._trigger(trigger, seconds, settings),
            method_name=then,
            # The trigger keeps its own deadline, and says what was missing; this is the net.
            timeout=timedelta(seconds=seconds + 300),
        )

    def _trigger(
        self, trigger: type[PollingTrigger], seconds: float, settings: Mapping[str, Any]
    ) -> PollingTrigger:
        return trigger(deadline=time.time() + seconds, poll_interval=self.poll_interval, **settings)

    def resume(self, context: Mapping[str, Any], event: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Return what the wait came to.

        Raises:
            Mm2OffsetsError: ``error``, when its time passed, with no other try: the time was the
                user's to choose. What else ended it is raised as what it was.
        """
        if "timeout" in event:
            waited = f"waited {self.timeout:.0f} s for {self.wait_for}: {event['timeout']}"
            raise final(self.error(waited))
        if "error" in event:
            kind = getattr(errors, event["kind"], self.error)
            problem = kind(f"waiting for {self.wait_for}: {event['error']}")
            raise problem if event["retryable"] else final(problem)
        result: dict[str, Any] = event["result"]
        return result
