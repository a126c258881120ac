"""The names of this package's settings, and of the variables that hold them."""

import difflib
import re
from collections.abc import Collection

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
MAPPING = "mapping"

KEYS = frozenset(
    {
        SOURCE_ALIAS,
        TARGET_ALIAS,
        POLICY,
        SEPARATOR,
        INTERNAL_SEPARATOR,
        SYNCS_TOPIC,
        SYNCS_LOCATION,
        MAPPING,
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


_MISSPELT_FROM = 0.8
"""From this similarity on (0 to 1), a name is taken for a misspelt one."""


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


def misspelt(name: str, names: Collection[str]) -> str | None:
    """Return which of ``names`` was surely meant by a similar one; None if none was."""
    similar = difflib.get_close_matches(name, names, n=1, cutoff=_MISSPELT_FROM)
    return similar[0] if similar else None
