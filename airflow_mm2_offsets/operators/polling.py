"""The bases of the operators and sensors that wait.

They wait in the triggerer, or in the worker if ``deferrable`` is off; the same trigger polls in
both places. ``PollingTask`` is the base of operators, ``PollingSensor`` that of sensors.
"""

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar, NoReturn

from airflow.providers.common.compat.sdk import AirflowFailException, BaseOperator, Context, conf

from airflow_mm2_offsets.core.times import parse_seconds
from airflow_mm2_offsets.errors import (
    ConfigurationError,
    Mm2OffsetsError,
    as_class,
    error_from_json,
)
from airflow_mm2_offsets.observability import current_step
from airflow_mm2_offsets.operators.failing import fails_at_once, final
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.step import BEGAN
from airflow_mm2_offsets.triggers.polling import PollingTrigger

TRIGGERER_GRACE_SECONDS = 300.0
"""How long after the trigger's own deadline Airflow ends the wait: the triggerer may be down."""


class DeferrablePolling(BaseOperator):
    """Mixin of operators and sensors that wait.

    Args:
        deferrable: Wait in the triggerer; None: as ``[operators] default_deferrable`` says.
    """

    wait_for: ClassVar[str]
    """What is waited for, for messages."""
    error: ClassVar[type[Mm2OffsetsError]]
    """What is raised when the time to wait has passed."""
    timeout_kind: ClassVar[type[Exception]] = AirflowFailException
    """Airflow's class of that error: it decides about retries."""
    timeout: float
    """Seconds to wait at most."""
    default_timeout: ClassVar[float] = 600.0
    """``timeout``, unless the task is told otherwise."""

    operator_extra_links = page_links("run")

    def __init__(self, *, deferrable: bool | None = None, **kwargs: Any) -> None:
        """Keep the setting."""
        super().__init__(**kwargs)
        if deferrable is None:
            deferrable = conf.getboolean("operators", "default_deferrable", fallback=False)
        self.deferrable = deferrable

    def seconds(self, field: str) -> float | None:
        """Return a field that holds seconds; it may be a templated string.

        Raises:
            ConfigurationError: It holds something else.
        """
        return self.parse_seconds(field, getattr(self, field))

    def parse_seconds(self, field: str, value: Any) -> float | None:  # noqa: ANN401 - of any kind
        """Return a value of seconds that a template may have rendered; see ``seconds``."""
        return parse_seconds(f"task {self.task_id}: {field}", value)

    def check_number(self, field: str) -> None:
        """Raise ConfigurationError where a field is not a number of seconds, from 0."""
        value = getattr(self, field)
        if not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
            raise ConfigurationError(
                f"task {self.task_id}: {field} is {value!r}; give a number of seconds, from 0"
            )

    def wait_in_triggerer(
        self, trigger: PollingTrigger, method_name: str = "execute_complete"
    ) -> NoReturn:
        """Defer until the trigger has an event; then Airflow calls the method with it."""
        left = max(trigger.deadline - time.time(), 0.0)
        # The trigger keeps its own deadline, and its event says what was missing.
        limit = timedelta(seconds=left + TRIGGERER_GRACE_SECONDS)
        step = current_step()
        kwargs = {BEGAN: step.began} if step else {}
        self.defer(trigger=trigger, method_name=method_name, timeout=limit, kwargs=kwargs)

    @fails_at_once()
    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> Any:  # noqa: ANN401 - Airflow's signature
        """Go on after a wait, as a part of the step that began before it."""
        kwargs = {name: value for name, value in (next_kwargs or {}).items() if name != BEGAN}
        return super().resume_execution(next_method, kwargs, context)

    def execute_complete(
        self,
        context: Mapping[str, Any],  # noqa: ARG002 - Airflow's signature
        event: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return the result of a wait.

        Raises:
            Mm2OffsetsError: ``error`` where the time has passed; Airflow does not retry it, for the
                user chose the time. Any other error has the class that it had in the trigger.
        """
        if "timeout" in event:
            raise self.timed_out(event["timeout"])
        if "error" in event:
            cause = error_from_json(event["error"])
            problem = as_class(type(cause), cause, f"waiting for {self.wait_for}: {cause}")
            raise problem if event["retryable"] else final(problem)
        result: dict[str, Any] = event["result"]
        return result

    def timed_out(self, missing: str) -> Mm2OffsetsError:
        """Return the error of a wait whose time has passed.

        Args:
            missing: What was not there at the last look.
        """
        text = f"waited {self.timeout:.0f} s for {self.wait_for}: {missing}"
        return final(self.error(text), self.timeout_kind)


class PollingTask(DeferrablePolling):
    """The base of operators that wait.

    Args:
        timeout: Seconds to wait at most; None: 600, or as the operator says.
        poll_interval: Seconds between two looks.
        kwargs: See ``DeferrablePolling``.
    """

    def __init__(
        self, *, timeout: float | None = None, poll_interval: float = 2.0, **kwargs: Any
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.timeout = self.default_timeout if timeout is None else timeout
        self.poll_interval = poll_interval
