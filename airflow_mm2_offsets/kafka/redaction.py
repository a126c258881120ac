"""Hides the secrets of a configuration in what librdkafka and Kafka Connect say: logs and errors.

``session`` hides them in each line, ``connect`` in each message and trace, and the hook tells them
to Airflow's own masker.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import quote

from airflow_mm2_offsets.kafka.client_properties.secret_names import is_secret

_SHORT = 4
"""Below this length, a secret is hidden as a whole word only: texts would be riddled with stars."""
_KEY_LINE = 16
"""A line of a PEM text of this length on is a secret of its own: logs break lines."""
STARS = "***"
_NO_SECRETS = frozenset(
    {
        *("username", "principal", "serviceName", "keyTab", "ticketCache", "clientId", "scope"),
        *("true", "false"),
    }
)
"""Options of a JAAS text whose values are shown, and values that say nothing."""
_PART = re.compile(
    r"""(?<![\w.-])([\w.-]+)\s*=\s*(?:"((?:\\.|[^"\\])+)"|'((?:\\.|[^'\\])+)'|(?!["'=])([^\s;,&"']{4,}))""",
    re.DOTALL,
)
"""A part of a secret that is a secret itself: of a JAAS text, a URL or a connection string."""
_NAMED = re.compile(
    r"""((?:password|passphrase|passwd|pwd|secret|token|(?:api|access|private)[._-]?key)\s*=\s*)"""
    r"""(?:"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|[^\s;,&"']+)""",
    re.IGNORECASE | re.DOTALL,
)
"""What a text itself calls a secret, whether or not a configuration is known that has it."""


class Redactor:
    """Replaces the secrets of configurations by stars."""

    def __init__(
        self, *configs: Mapping[str, object], is_hidden: Callable[[str], bool] = is_secret
    ) -> None:
        """Keep the secrets: the values of properties whose names ``is_hidden`` knows."""
        every = frozenset[str]().union(*(secrets_of(each, is_hidden) for each in configs))
        # The longest first: one may be a part of another.
        secrets = sorted(every, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_pattern, secrets))) if secrets else None

    def __repr__(self) -> str:
        """Show no secret."""
        return f"{type(self).__name__}()"

    def hide(self, text: str) -> str:
        """Return a text without the secrets."""
        hidden = self._pattern.sub(STARS, text) if self._pattern else text
        return _NAMED.sub(rf"\1{STARS}", hidden)


def secrets_of(
    properties: Mapping[str, object], is_hidden: Callable[[str], bool] = is_secret
) -> frozenset[str]:
    """Return the secrets of properties, their parts, and the forms in which they are sent."""
    return frozenset(
        form
        for name, value in properties.items()
        if is_hidden(name) and isinstance(value, str)
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
    for name, *values in _PART.findall(secret):
        value = "".join(values)
        if not _NO_SECRETS & {name, value.lower()}:
            yield from (value, re.sub(r"\\(.)", r"\1", value))


def _basic_logins(properties: Mapping[str, object]) -> Iterator[str]:
    """Yield the header of OAuth's client: the id and the secret in base64 (RFC 6749, 2.3.1)."""
    prefix = "sasl.oauthbearer.client."
    user, secret = (properties.get(f"{prefix}{name}") for name in ("id", "secret"))
    if user and secret:
        yield b64encode(f"{user}:{secret}".encode()).decode()


def _pattern(secret: str) -> str:
    escaped = re.escape(secret)
    return escaped if len(secret) >= _SHORT else rf"(?<!\w){escaped}(?!\w)"
