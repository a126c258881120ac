"""The settings of OpenProjectX mm2-offset-map, under our names.

Its names are bound as Spring Boot does: dashes and case do not count, in variables dots are
underscores.
"""

import re
from collections.abc import Mapping
from datetime import timedelta

from airflow_mm2_offsets.errors import ConfigurationError

_PREFIX = re.compile(r"mm2[._]offset[-_]?map[._]", re.IGNORECASE)

_NAMES: Mapping[str, str] = {
    "source-cluster": "source.alias",
    "target-cluster": "target.alias",
    # Its syncs are on the target; the source's address falls back to this one.
    "bootstrap-servers": "kafka.bootstrap.servers",
    "source-bootstrap-servers": "source.bootstrap.servers",
    "offset-syncs-topic": "offset-syncs.topic",
    "refresh-interval": "refresh.seconds",
    "consumer-properties": "kafka",
    "source-consumer-properties": "source",
    "target-consumer-properties": "target",
    "enabled": "",
}
_MAPS = frozenset({"kafka", "source", "target"})

_SIMPLE_DURATION = re.compile(r"(\d+)(ns|us|ms|s|m|h|d)?")
_ISO_DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?", re.IGNORECASE)
_UNITS = {
    "us": "microseconds",
    "ms": "milliseconds",
    "s": "seconds",
    "m": "minutes",
    "h": "hours",
    "d": "days",
}


def is_spring(key: str) -> bool:
    """Tell whether a key or a variable is one of mm2-offset-map."""
    return _PREFIX.match(key) is not None


def from_spring(key: str, value: str, origin: str) -> dict[str, str]:
    """Return a setting of mm2-offset-map under our names; empty where it has no meaning here.

    Args:
        key: A key or a variable of mm2-offset-map.
        value: Its value.
        origin: Where it stands, for messages.

    Raises:
        ConfigurationError: It is none that mm2-offset-map has, or is no duration.
    """
    rest = re.sub(r"\[(.+)\]$", r".\1", key[_PREFIX.match(key).end() :])  # type: ignore[union-attr]
    for theirs, ours in _NAMES.items():
        pattern = theirs.replace("-", "[-_]?") + ("[._](?P<name>.+)" if ours in _MAPS else "")
        match = re.fullmatch(pattern, rest, re.IGNORECASE)
        if match is None:
            continue
        if ours in _MAPS:
            name = match["name"]
            return {f"{ours}.{name.lower().replace('_', '.') if key.isupper() else name}": value}
        if ours == "refresh.seconds":
            return {ours: str(_seconds(value, origin)), "offset-syncs.topic.location": "target"}
        # It has its syncs on the target, always.
        return {ours: value, "offset-syncs.topic.location": "target"} if ours else {}
    raise ConfigurationError(
        f"{origin} is not a setting of mm2-offset-map; it has {', '.join(sorted(_NAMES))}"
    )


def _seconds(value: str, origin: str) -> float:
    """Return the seconds of a duration as Spring reads it; a bare number is milliseconds."""
    if match := _SIMPLE_DURATION.fullmatch(value.strip()):
        if unit := _UNITS.get(match[2] or "ms"):
            return timedelta(**{unit: int(match[1])}).total_seconds()
    elif match := _ISO_DURATION.fullmatch(value.strip()):
        hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return timedelta(hours=hours, minutes=minutes, seconds=seconds).total_seconds()
    raise ConfigurationError(f"{origin} is {value!r}; give a duration like 30s")
