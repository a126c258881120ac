"""Reads times that users write, for options and settings."""

from datetime import datetime


def parse_zoned(text: str) -> datetime | None:
    """Return the time of an ISO 8601 text; None if the text is invalid or has no zone.

    Without a zone the text means different moments on different machines.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if time.tzinfo is None else time
