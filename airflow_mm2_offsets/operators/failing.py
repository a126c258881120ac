"""Decides which errors Airflow retries; every operator and sensor runs under it.

What runs under it is a step, too: it has a span, and its log names the run.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import wraps
from types import TracebackType
from typing import ParamSpec, TypeVar

from airflow.providers.common.compat.sdk import (
    AirflowFailException,
    AirflowSensorTimeout,
)

from airflow_mm2_offsets.errors import Mm2OffsetsError, as_class
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.observability import run_step
from airflow_mm2_offsets.operators.links import PROBLEM
from airflow_mm2_offsets.operators.step import find_step

P = ParamSpec("P")
R = TypeVar("R")


class _FailsAtOnce:
    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not isinstance(error, Mm2OffsetsError) or error.retryable:
            return
        if not isinstance(error, (AirflowFailException, AirflowSensorTimeout)):
            # Once in the log, with the places of both.
            raise final(error).with_traceback(traceback) from error.__cause__

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate an operator's method, or any function."""

        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            arguments = [*args, *kwargs.values()]
            step = find_step(arguments)
            with ExitStack() as stack:
                if step is not None:
                    stack.enter_context(run_step(step))
                stack.enter_context(self)
                try:
                    return function(*args, **kwargs)
                except Mm2OffsetsError as error:
                    _push_problem(arguments, error)
                    raise

        return run


def _push_problem(arguments: Sequence[object], error: Mm2OffsetsError) -> None:
    """Keep the error's message for the page: Airflow has it in the task's log alone."""
    for each in arguments:
        if isinstance(each, Mapping) and "ti" in each:
            with suppress(Exception):  # the error itself counts
                each["ti"].xcom_push(key=PROBLEM, value=without_login(str(error)))


def fails_at_once() -> _FailsAtOnce:
    """Let an error that no retry can mend fail the task at once; a decorator.

    The method of an operator that it decorates is a step: see ``observability.run_step``.

    Raises:
        AirflowFailException: In place of such an error; it also has the error's class.
    """
    return _FailsAtOnce()


def final(error: Mm2OffsetsError, kind: type[Exception] = AirflowFailException) -> Mm2OffsetsError:
    """Return an error that Airflow does not retry; it keeps its class.

    Args:
        error: What went wrong.
        kind: What it is for Airflow: ``AirflowFailException`` or ``AirflowSensorTimeout``.
    """
    base = type(error)
    attributes = {"__doc__": base.__doc__, "__module__": base.__module__}
    final_class: type[Mm2OffsetsError] = type(base.__name__, (base, kind), attributes)
    return as_class(final_class, error, str(error))
