"""Times as users write them."""

from datetime import datetime


def parse_zoned(text: str) -> datetime | None:
    """Return the time that an ISO 8601 text names; None where it is none, or lacks its zone.

    Without a zone it would mean another moment on another machine.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if time.tzinfo is None else time
