"""Which errors of a task Airflow tries again, and which fail it at once."""

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSensorTimeout

from airflow_mm2_offsets.errors import Mm2OffsetsError, as_class


@contextmanager
def fails_at_once() -> Iterator[None]:
    """Let an error that no retry can mend fail the task at once; a decorator.

    Raises:
        AirflowFailException: In place of such an error; it has the error's class too.
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
    of = type(error)
    names = {"__doc__": of.__doc__, "__module__": of.__module__}
    both: type[Mm2OffsetsError] = type(of.__name__, (of, kind), names)
    return as_class(both, error, str(error))
