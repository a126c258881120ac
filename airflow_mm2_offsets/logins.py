"""Hides the logins of locations in all that people read: errors, logs, XComs, reports.

Airflow's connections keep a login apart; a location may still hold one (``ftp://user:word@host``).
"""

import re
from collections.abc import Mapping
from typing import Any

_LOGIN = re.compile(r"(://[^/@:\s]*):[^/@\s]+@")


def without_login(text: str) -> str:
    """Return a text with the password of each location in it hidden (``ftp://user:***@host``)."""
    return _LOGIN.sub(r"\1:***@", text)


def without_logins(value: Any) -> Any:  # noqa: ANN401 - plain JSON
    """Return plain JSON with the password of each location in its texts hidden."""
    if isinstance(value, str):
        return without_login(value)
    if isinstance(value, Mapping):
        return {name: without_logins(each) for name, each in value.items()}
    return [without_logins(each) for each in value] if isinstance(value, list | tuple) else value
