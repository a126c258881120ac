"""The base of the sensors: ``poke`` polls with the trigger that the sensor defers."""

import time
from abc import abstractmethod
from datetime import timedelta
from typing import Any, ClassVar

from airflow.providers.common.compat.sdk import (
    AirflowSensorTimeout,
    BaseSensorOperator,
    Context,
    PokeReturnValue,
)

from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.moving import mover_of, note_wait
from airflow_mm2_offsets.operators.polling import DeferrablePolling
from airflow_mm2_offsets.triggers.polling import NotYet, PollingTrigger


class PollingSensor(DeferrablePolling, BaseSensorOperator):
    """A sensor that polls with a trigger, in the worker or in the triggerer.

    ``mode``, ``soft_fail`` and all else mean what they mean for ``BaseSensorOperator``.

    Args:
        timeout: Seconds to wait at most; None: 600, or as the sensor says.
        poke_interval: Seconds between two looks; None: 2, or as the sensor says.
    """

    timeout_kind = AirflowSensorTimeout
    default_poke_interval: ClassVar[float] = 2.0
    """``poke_interval``, unless the task is told otherwise."""
    ends_with: ClassVar[Event | None] = None
    """What the sensor records in the journal of a move at the end of its wait; see ``note_wait``.
    None: whatever it records is new."""

    def __init__(
        self,
        *,
        timeout: timedelta | float | None = None,
        poke_interval: timedelta | float | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(
            timeout=self.default_timeout if timeout is None else timeout,
            poke_interval=self.default_poke_interval if poke_interval is None else poke_interval,
            **kwargs,
        )
        self._trigger: PollingTrigger | None = None
        self._missing = ""

    @abstractmethod
    def new_trigger(self, context: Context, **times: float) -> PollingTrigger:
        """Return the trigger, from settings that are rendered.

        Args:
            context: Airflow's.
            times: Its ``deadline`` and ``poll_interval``.
        """

    @fails_at_once()
    def execute(self, context: Context) -> Any:  # noqa: ANN401 - Airflow's signature
        """Wait in the triggerer or in the worker."""
        if self.deferrable:
            # Airflow applies soft_fail and never_fail in resume_execution.
            return self.resume_execution("look_or_defer", None, context)
        self._trigger = None
        try:
            return super().execute(context)
        except AirflowSensorTimeout as error:
            raise self.timed_out(self._missing) from error

    @fails_at_once()
    def poke(self, context: Context) -> PokeReturnValue:
        """Look once."""
        is_first = self._trigger is None
        trigger = self._trigger = self._trigger or self._build_trigger(context)
        outcome = self._look(trigger, context)
        if is_first and not outcome:
            self.note_wait(context, self._missing, trigger.deadline)
        return outcome

    @fails_at_once()
    def look_or_defer(self, context: Context) -> Any:  # noqa: ANN401 - as of execute
        """Return the result, or defer until there is one.

        On a loaded machine Airflow fails a deferred task whose trigger fires before the scheduler
        has noticed that the task is deferred. So only a task that must wait is deferred.
        """
        trigger = self._build_trigger(context)
        outcome = self._look(trigger, context)
        if not outcome:
            self.note_wait(context, self._missing, trigger.deadline)
            self.wait_in_triggerer(trigger)
        return outcome.xcom_value

    def note_wait(self, context: Context, missing: str, deadline: float) -> None:
        """Note in the journal of a move what is waited for; once, also if it is rescheduled.

        Args:
            context: Airflow's.
            missing: What was not there at the first look.
            deadline: When the wait ends, in seconds since 1970.
        """
        if getattr(self, "move", None) is None:
            return
        instance: Any = context["ti"]
        if self.reschedule and instance.get_first_reschedule_date(context) is not None:
            return  # each look has a process of its own, and the deadline is that of the first
        waits_for = f"{self.wait_for}: {missing}"
        note_wait(mover_of(self, context), waits_for, deadline, ends_with=self.ends_with)

    def _build_trigger(self, context: Context) -> PollingTrigger:
        return self.new_trigger(
            context, deadline=time.time() + self.timeout, poll_interval=self.poke_interval
        )

    def _look(self, trigger: PollingTrigger, context: Context) -> PokeReturnValue:
        event = trigger.look()
        if isinstance(event, NotYet):
            self.log.info("Waiting for %s: %s", self.wait_for, event.reason)
            self._missing = event.reason
            return PokeReturnValue(is_done=False)
        return PokeReturnValue(is_done=True, xcom_value=self.execute_complete(context, event))
