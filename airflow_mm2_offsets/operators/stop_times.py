"""Checks the durations of a stop before it is requested."""

from airflow_mm2_offsets.errors import ConfigurationError


def check_times(
    task_id: str,
    *,
    heartbeat_timeout: float | None,
    kill_after: float | None,
    timeout: float,
) -> None:
    """Raise where a stop could never be proved; all durations are seconds.

    Raises:
        ConfigurationError: The wait ends before ``heartbeat_timeout`` has passed.
    """
    name, limit = ("timeout", timeout) if kill_after is None else ("kill_after", kill_after)
    if heartbeat_timeout is not None and heartbeat_timeout >= limit:
        raise ConfigurationError(
            f"task {task_id}: heartbeat_timeout is {heartbeat_timeout:.0f} s and would "
            f"never pass, for the wait ends after {name}, {limit:.0f} s; give less, or a "
            f"longer {name}"
        )
