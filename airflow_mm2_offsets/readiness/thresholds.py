"""The limits that values are compared with; the operator and the command line have them all."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.planning.mirror_connector import RECOMMENDED_OFFSET_LAG

_UNSET = (None, "", "None")


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Beyond them a check fails, or warns."""

    max_lag_records: float = 100_000
    """Records of one topic-partition that MirrorMaker 2 has yet to copy."""
    max_lag_seconds: float = 300
    """Age of the newest heartbeat on the target."""
    max_sync_age: float = 900
    """Age of the newest offset sync in seconds, while records wait for one."""
    max_archive_age: float = 3600
    """Seconds since the archive's last run."""
    min_retention_left: float = 86_400
    """Seconds until the target deletes the record at which the job would start."""
    max_offset_lag: float = RECOMMENDED_OFFSET_LAG
    """``offset.lag.max`` of the connector."""
    max_clock_drift: float = 30
    """Seconds that a heartbeat or an offset sync may lie in the future."""

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> "Thresholds":
        """Return the thresholds of ``values`` by name; templated text counts as its number.

        Raises:
            ConfigurationError: A value is not a number of at least 0.
        """
        names = [each.name for each in fields(cls) if values.get(each.name) not in _UNSET]
        return cls(**{name: _number(name, values[name]) for name in names})


def _number(name: str, value: Any) -> float:  # noqa: ANN401 - what users give
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ConfigurationError(f"is {value!r}; give a number of at least 0", setting=name)
    return number


DEFAULT_THRESHOLDS = Thresholds()
THRESHOLDS = tuple(each.name for each in fields(Thresholds))
"""Their names."""
