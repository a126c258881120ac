"""Which errors of a task Airflow tries again, and which fail it at once."""

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_mm2_offsets.errors import Mm2OffsetsError, as_class


@contextmanager
def fails_at_once() -> Iterator[None]:
    """Let errors that no other try mends end the task, whatever its ``retries``; a decorator.

    Raises:
        AirflowFailException: In the place of such an error, and of its class too.
    """
    try:
        yield
    except Mm2OffsetsError as error:
        if error.retryable or isinstance(error, AirflowFailException):
            raise
        raise final(error) from error


def final(error: Mm2OffsetsError) -> Mm2OffsetsError:
    """Return an error as one that Airflow does not try again; its class stays one of its own."""
    kind = type(error)
    names = {"__doc__": kind.__doc__, "__module__": kind.__module__}
    both: type[Mm2OffsetsError] = type(kind.__name__, (kind, AirflowFailException), names)
    return as_class(both, error, str(error))
