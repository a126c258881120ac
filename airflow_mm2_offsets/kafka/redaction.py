"""Hides the secrets of a configuration in what librdkafka says: logs and errors.

``session`` hides them in each line, the hook tells them to Airflow's own masker.
"""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from airflow_mm2_offsets.kafka.client_properties.secret_names import is_secret

_SHORT = 4
"""Below this length, a secret is hidden as a whole word only: texts would be riddled with stars."""
_KEY_LINE = 16
"""A line of a PEM text of this length on is a secret of its own: logs break lines."""
_STARS = "***"


class Redactor:
    """Replaces the secrets of one configuration by stars."""

    def __init__(self, properties: Mapping[str, object]) -> None:
        """Keep the secrets: the values of properties that ``is_secret`` names."""
        # The longest first: one may be a part of another.
        secrets = sorted(secrets_of(properties), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_pattern, secrets))) if secrets else None

    def __repr__(self) -> str:
        """Show no secret."""
        return f"{type(self).__name__}()"

    def hide(self, text: str) -> str:
        """Return a text without the secrets."""
        return self._pattern.sub(_STARS, text) if self._pattern else text


def secrets_of(properties: Mapping[str, object]) -> frozenset[str]:
    """Return the secrets of Kafka client properties, and the forms in which they are sent."""
    return frozenset(
        form
        for name, value in properties.items()
        if is_secret(name) and isinstance(value, str)
        for form in _forms(value)
    ) | frozenset(_basic_logins(properties))


def _forms(secret: str) -> Iterator[str]:
    if secret.strip():
        yield from (secret, secret.strip(), quote(secret, safe=""))
    yield from (
        line.strip()
        for line in secret.splitlines()
        if len(line.strip()) >= _KEY_LINE and not line.startswith("-----")
    )


def _basic_logins(properties: Mapping[str, object]) -> Iterator[str]:
    """Yield the header of OAuth's client: the id and the secret in base64 (RFC 6749, 2.3.1)."""
    prefix = "sasl.oauthbearer.client."
    user, secret = (properties.get(f"{prefix}{name}") for name in ("id", "secret"))
    if user and secret:
        yield b64encode(f"{user}:{secret}".encode()).decode()


def _pattern(secret: str) -> str:
    escaped = re.escape(secret)
    return escaped if len(secret) >= _SHORT else rf"(?<!\w){escaped}(?!\w)"
