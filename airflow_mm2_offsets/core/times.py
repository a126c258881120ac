"""Reads times and durations that users write, for options and settings."""

from datetime import datetime
from typing import Unpack

from airflow_mm2_offsets.errors import ConfigurationError, ErrorFields


def parse_zoned(text: str) -> datetime | None:
    """Return the time of an ISO 8601 text; None if the text is invalid or has no zone.

    Without a zone the text means different moments on different machines.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if time.tzinfo is None else time


def parse_seconds(name: str, value: object, **place: Unpack[ErrorFields]) -> float | None:
    """Return a duration in seconds; it may be text, as a template renders it. None: never.

    Args:
        name: What it is called, with its place, for the message.
        value: What a user gave.
        place: Where it is, for the error.

    Raises:
        ConfigurationError: It is no number of seconds from 0.
    """
    if value in (None, "", "None"):  # Jinja writes a value that is null as "None"
        return None
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ConfigurationError(f"{name} is {value!r}; give seconds, or None for never", **place)
    return seconds
