"""Hides a connector's secrets in what Connect says and in what is shown of its settings."""

import re
from collections.abc import Mapping
from typing import Any

from airflow_mm2_offsets.connect.public_settings import is_public
from airflow_mm2_offsets.kafka.redaction import STARS, Redactor
from airflow_mm2_offsets.logins import without_login, without_logins

_REFERENCE = re.compile(r"\$\{[\w.-]+:[^{}]+\}")
"""To a config provider, by its name (KIP-297); any other ``${...}`` is the value itself."""
_TELLS_NOTHING = re.compile(r"(?:true|false|\d{1,3})?", re.IGNORECASE)
"""Hidden in a message, such values would riddle it with stars."""
_INVALID = re.compile(r"Invalid value (.*?) for configuration ([\w.-]+\w)", re.DOTALL)
"""As Kafka's ``ConfigException`` says it; it may quote what a config provider has resolved."""


def redacted(text: str, *configs: Mapping[str, object]) -> str:
    """Return a text of Connect's without the secrets of a connector.

    Args:
        text: A message or a trace, whole: half a secret is not found.
        configs: The connector's settings, as they are and as they shall be.
    """
    redactor = Redactor(*map(_secret_settings, configs), is_hidden=lambda _: True)
    return without_login(redactor.hide(_INVALID.sub(_invalid, text)))


def shown(name: str, value: Any) -> Any:  # noqa: ANN401 - of an operator's argument
    """Return the value of a setting as it may be shown; stars for what may be a secret."""
    if is_public(name):
        return without_logins(value)
    return value if value is None or _is_reference(value) else STARS


def _is_reference(value: object) -> bool:
    return isinstance(value, str) and bool(_REFERENCE.fullmatch(value))


def _secret_settings(config: Mapping[str, object]) -> dict[str, str]:
    return {
        name: value
        for name, value in config.items()
        if isinstance(value, str)
        and not (is_public(name) or _is_reference(value) or _TELLS_NOTHING.fullmatch(value))
    }


def _invalid(match: re.Match[str]) -> str:
    return f"Invalid value {shown(match[2], match[1])} for configuration {match[2]}"
