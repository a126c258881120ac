"""The settings of OpenProjectX mm2-offset-map, translated to this package's keys.

``sources`` calls it for every such key or variable. Names are matched as Spring Boot binds them:
dashes and case do not count; in variables, underscores stand for dots.
"""

import re
from collections.abc import Mapping
from datetime import timedelta

from airflow_mm2_offsets.errors import ConfigurationError

_PREFIX = re.compile(r"mm2[._]offset[-_]?map[._]", re.IGNORECASE)

_KEYS: Mapping[str, str] = {
    "source-cluster": "source.alias",
    "target-cluster": "target.alias",
    # mm2-offset-map reads the syncs on the target; the source's address defaults to this one.
    "bootstrap-servers": "kafka.bootstrap.servers",
    "source-bootstrap-servers": "source.bootstrap.servers",
    "offset-syncs-topic": "offset-syncs.topic",
    "refresh-interval": "refresh.seconds",
    "consumer-properties": "kafka",
    "source-consumer-properties": "source",
    "target-consumer-properties": "target",
    "enabled": "",
}
"""This package's key for each key of mm2-offset-map; empty: ignored."""
_CLIENT_PREFIXES = frozenset({"kafka", "source", "target"})

_SIMPLE_DURATION = re.compile(r"(\d+)(us|ms|s|m|h|d)?")
_ISO_DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?", re.IGNORECASE)
_UNITS = {
    "us": "microseconds",
    "ms": "milliseconds",
    "s": "seconds",
    "m": "minutes",
    "h": "hours",
    "d": "days",
}


def is_mm2_offset_map_key(key: str) -> bool:
    """Tell whether a key or a variable has the prefix of mm2-offset-map."""
    return _PREFIX.match(key) is not None


def translate_setting(key: str, value: str, origin: str) -> dict[str, str]:
    """Return a setting of mm2-offset-map under this package's keys; empty if it is ignored.

    Raises:
        ConfigurationError: mm2-offset-map has no such setting, or the value is not a duration. The
            field ``setting`` is ``origin``.
    """
    name = re.sub(r"\[(.+)\]$", r".\1", _PREFIX.sub("", key, count=1))
    for theirs, ours in _KEYS.items():
        is_prefix = ours in _CLIENT_PREFIXES
        pattern = theirs.replace("-", "[-_]?") + ("[._](?P<name>.+)" if is_prefix else "")
        match = re.fullmatch(pattern, name, re.IGNORECASE)
        if match is None:
            continue
        if is_prefix:
            client_property = match["name"]
            if key.isupper():
                client_property = client_property.lower().replace("_", ".")
            return {f"{ours}.{client_property}": value}
        if not ours:
            return {}
        if ours == "refresh.seconds":
            value = str(_duration_seconds(value, origin))
        # mm2-offset-map always reads the syncs on the target.
        return {ours: value, "offset-syncs.topic.location": "target"}
    raise ConfigurationError(
        f"is not a setting of mm2-offset-map; its settings are {', '.join(sorted(_KEYS))}",
        setting=origin,
    )


def _duration_seconds(value: str, origin: str) -> float:
    """Return the seconds of a duration as Spring reads it; a bare number is milliseconds."""
    if match := _SIMPLE_DURATION.fullmatch(value.strip()):
        return timedelta(**{_UNITS[match[2] or "ms"]: int(match[1])}).total_seconds()
    if match := _ISO_DURATION.fullmatch(value.strip()):
        hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return timedelta(hours=hours, minutes=minutes, seconds=seconds).total_seconds()
    raise ConfigurationError(f"is {value!r}; give a duration like 30s", setting=origin)
