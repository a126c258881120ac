"""Hides the logins of locations in all that people read: errors, logs, XComs, reports.

Airflow's connections keep a login apart; a location may still hold one (``ftp://user:word@host``).
"""

import re
from collections.abc import Mapping
from typing import Any

_LOGIN = re.compile(
    r"(\bs3[an]?://[^/@:\s]*:|://[^/@:\s]*:(?!\d+/))[^@\s]+@(?:[^@/\s]*@)*", re.IGNORECASE
)
"""A password may contain a slash or an @; digits before a slash are a port, but not of a bucket."""
_TOKEN = re.compile(r"(\bhttps?://)[^/@:\s]+@", re.IGNORECASE)
"""A login without a colon; elsewhere it is a user or a container (``abfss://container@account``)."""
_BARE_LOGIN = re.compile(r"(?<![\w/:.-])([\w.-]+):(?!//)[^@\s/,:\"']+@(?=[\w.-]+(?::\d+)?\b)")
"""As in ``bootstrap.servers=user:word@host:9092``."""
_SECRET_FIELD = re.compile(
    r"([?&][\w.-]*(?:token|sig|signature|secret|password|passwd|pwd|credential|key)=)[^&\s\"']+",
    re.IGNORECASE,
)
"""As in the query of ``https://host/folder?sig=...``."""


def without_login(text: str) -> str:
    """Return a text with the secrets of each location in it hidden.

    ``ftp://user:word@host`` becomes ``ftp://user:***@host``; ``?token=word`` becomes
    ``?token=***``.
    """
    hidden = _TOKEN.sub(r"\1***@", _LOGIN.sub(r"\1***@", text))
    return _SECRET_FIELD.sub(r"\1***", _BARE_LOGIN.sub(r"\1:***@", hidden))


def without_logins(value: Any) -> Any:  # noqa: ANN401 - plain JSON
    """Return plain JSON with the secrets of each location in its texts hidden."""
    if isinstance(value, str):
        return without_login(value)
    if isinstance(value, Mapping):
        return {name: without_logins(each) for name, each in value.items()}
    return [without_logins(each) for each in value] if isinstance(value, list | tuple) else value
