"""The names of this package's settings, and of the variables that hold them."""

import re

ENV_PREFIX = "MM2_OFFSETS_"
CONFIG_VARIABLE = f"{ENV_PREFIX}CONFIG"
"""The variable that names the settings file."""

CLUSTERS = ("source", "target")
SHARED = "kafka"
"""The prefix of client properties for both clusters."""
CLIENT_PREFIXES = (SHARED, *CLUSTERS)

SOURCE_ALIAS = "source.alias"
TARGET_ALIAS = "target.alias"
POLICY = "replication.policy"
SEPARATOR = "replication.policy.separator"
INTERNAL_SEPARATOR = "replication.policy.internal.topic.separator.enabled"
SYNCS_TOPIC = "offset-syncs.topic"
SYNCS_LOCATION = "offset-syncs.topic.location"

KEYS = frozenset(
    {
        SOURCE_ALIAS,
        TARGET_ALIAS,
        POLICY,
        SEPARATOR,
        INTERNAL_SEPARATOR,
        SYNCS_TOPIC,
        SYNCS_LOCATION,
        "connect.url",
        "connect.username",
        "connect.password",
        "archive",
        "refresh.seconds",
        "serve.host",
        "serve.port",
        "serve.token",
        "serve.token.file",
        "serve.username",
        "serve.password",
        "serve.tls.certificate",
        "serve.tls.key",
        "serve.without.auth",
    }
)
_KEY_BY_VARIABLE = {key.replace(".", "_").replace("-", "_"): key for key in KEYS}
_KEY_NAME = re.compile(r"[a-z][\w-]{0,40}([.>\[][\w<>\[\]-]{1,60})*", re.IGNORECASE)
_SECRET_WORD = re.compile(r"[^.]*\d[^.]*|.*(?=\w*\d)(?=\w*[A-Z])\w{16,}.*|.*(?=\w*\d)\w{24,}.*")
"""A word with a digit that stands alone, or a long one anywhere."""


def key_of(variable: str) -> str:
    """Return the key of a variable of this package, such as ``refresh.seconds``.

    In the name of a client property, each underscore stands for a dot.
    """
    name = variable.removeprefix(ENV_PREFIX).lower()
    return _KEY_BY_VARIABLE.get(name, name.replace("_", "."))


def variable_of(key: str) -> str:
    """Return the variable of a key, such as ``MM2_OFFSETS_REFRESH_SECONDS``."""
    return ENV_PREFIX + key.replace(".", "_").replace("-", "_").upper()


def shown_key(key: str) -> str | None:
    """Return a key for a message; None if it may be a secret on a line of its own."""
    is_name = _KEY_NAME.fullmatch(key) and not _SECRET_WORD.fullmatch(key)
    return key if is_name else None
