"""Decides which errors Airflow retries; every operator and sensor runs under it."""

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSensorTimeout

from airflow_mm2_offsets.errors import Mm2OffsetsError, as_class


@contextmanager
def fails_at_once() -> Iterator[None]:
    """Let an error that no retry can mend fail the task at once; a decorator.

    Raises:
        AirflowFailException: In place of such an error; it also has the error's class.
    """
    try:
        yield
    except Mm2OffsetsError as error:
        if error.retryable or isinstance(error, (AirflowFailException, AirflowSensorTimeout)):
            raise
        raise final(error) from error


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
