"""The settings of OpenProjectX mm2-offset-map, translated to this package's keys.

``spring`` calls it. Names are matched as Spring Boot binds them ("Relaxed Binding" in its
reference): dashes, underscores and case do not count; in variables, underscores stand for dots.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from airflow_mm2_offsets.config.entries import Entries, Entry
from airflow_mm2_offsets.config.keys import (
    CLIENT_PREFIXES,
    ENV_PREFIX,
    SOURCE_ALIAS,
    SYNCS_LOCATION,
    SYNCS_TOPIC,
    TARGET_ALIAS,
    shown_key,
)
from airflow_mm2_offsets.errors import ConfigurationError

_PREFIX = re.compile(r"mm2[._]offset[-_]?map[._]", re.IGNORECASE)
_BRACKETS = re.compile(r"\.?\[([^\]]+)\]")
DEFAULT_TOPIC = "mm2-offset-syncs.source.internal"
"""The topic that mm2-offset-map reads unless it is told another, whatever ``source-cluster`` is."""

_KEYS: Mapping[str, str] = {
    "source-cluster": SOURCE_ALIAS,
    "target-cluster": TARGET_ALIAS,
    # mm2-offset-map reads the syncs on the target; the source's address defaults to this one.
    "bootstrap-servers": "kafka.bootstrap.servers",
    "source-bootstrap-servers": "source.bootstrap.servers",
    "offset-syncs-topic": SYNCS_TOPIC,
    "refresh-interval": "refresh.seconds",
    "consumer-properties": "kafka",
    "source-consumer-properties": "source",
    "target-consumer-properties": "target",
    "enabled": "",
}
"""This package's key for each key of mm2-offset-map; empty: ignored."""
_SERVER_KEYS: Mapping[str, str] = {"server.port": "serve.port", "server.address": "serve.host"}
"""Spring Boot's own settings of the server."""

_SIMPLE_DURATION = re.compile(r"([+-]?\d+)(ns|us|ms|s|m|h|d)?", re.IGNORECASE)
_ISO_DURATION = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def looks_like_mm2_offset_map(key: str) -> bool:
    """Tell whether a key or a variable is mm2-offset-map's, or looks like a misspelt one.

    Files and environments hold other programs' settings too, which are ignored. A misspelt one
    is kept, so that it can be refused.
    """
    name = key.lower().replace(".", "_")
    is_similar = name.startswith("mm2_offset") and not name.startswith(ENV_PREFIX.lower())
    return is_similar or _is_mm2_offset_map(key)


def translate_settings(entries: Entries) -> Entries:
    """Return settings of mm2-offset-map under this package's keys; a later one takes precedence.

    What only looks like one keeps its key, which the reader refuses.

    Raises:
        ConfigurationError: mm2-offset-map has no such setting, or a value is not a duration. The
            field ``setting`` is the origin.
    """
    translated: Entries = {}
    for key, entry in entries.items():
        if ours := _SERVER_KEYS.get(key):
            translated[ours] = entry
        elif _is_mm2_offset_map(key):
            translated |= _translate(key, entry)
        else:
            translated[key] = entry
    return translated


def _is_mm2_offset_map(key: str) -> bool:
    return _PREFIX.match(key) is not None


def _translate(key: str, entry: Entry) -> Entries:
    name = _BRACKETS.sub(r".\1", _PREFIX.sub("", key, count=1))
    for theirs, ours in _KEYS.items():
        is_prefix = ours in CLIENT_PREFIXES
        pattern = theirs.replace("-", "[-_]?") + ("[._](?P<name>.+)" if is_prefix else "")
        match = re.fullmatch(pattern, name, re.IGNORECASE)
        if match is None:
            continue
        if is_prefix:
            client_property = match["name"]
            if key.isupper():
                client_property = client_property.lower().replace("_", ".")
            return {f"{ours}.{client_property}": entry}
        if not ours:
            return {}
        if ours == "refresh.seconds":
            entry = replace(entry, value=str(_duration_seconds(entry)))
        # mm2-offset-map always reads the syncs on the target.
        return {ours: entry, SYNCS_LOCATION: replace(entry, value="target")}
    raise ConfigurationError(
        f"is not a setting of mm2-offset-map; its settings are {', '.join(sorted(_KEYS))}",
        setting=entry.origin if shown_key(key) else "a key that is not shown",
    )


def _duration_seconds(entry: Entry) -> float:
    """Return the seconds of a duration as Spring reads it; a bare number is milliseconds."""
    value = entry.value.strip()
    if match := _SIMPLE_DURATION.fullmatch(value):
        return int(match[1]) * _SECONDS[(match[2] or "ms").lower()]
    if (match := _ISO_DURATION.fullmatch(value)) and any(match.groups()):
        days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()
    raise ConfigurationError(f"is {entry.value!r}; give a duration like 30s", setting=entry.origin)
