"""Reads single settings, and says what is wrong with one, and where it stands."""

import difflib
import math
from collections.abc import Collection
from pathlib import Path
from typing import TypeVar

from airflow_mm2_offsets.config.sources import ENV_PREFIX, Entries, Entry
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Naming, ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.core.naming import SYNCS_TOPIC_PREFIX
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.client_properties import to_librdkafka
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS

KEYS = frozenset(
    {
        "source.alias",
        "target.alias",
        "replication.policy",
        "replication.policy.separator",
        "replication.policy.internal.topic.separator.enabled",
        "offset-syncs.topic",
        "offset-syncs.topic.location",
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
VARIABLES = {key.replace(".", "_").replace("-", "_"): key for key in KEYS}
_SIDES = ("kafka", "source", "target")
_ALIASES = ("alias", "cluster.alias")
_SAME_WORD = 0.8
"""How alike two words are, from 0 to 1, of which one is the other misspelt."""
_POLICIES = {
    f"org.apache.kafka.connect.mirror.{policy.value.title()}ReplicationPolicy": policy.value
    for policy in ReplicationPolicy
}
_TRUTHS = {"true": True, "false": False}
_ChoiceT = TypeVar("_ChoiceT", ReplicationPolicy, SyncsLocation)


class SettingsReader:
    """What was given, and how it is read."""

    def __init__(self, entries: Entries) -> None:
        """Keep the settings.

        Raises:
            ConfigurationError: Keys are unknown: all are named.
        """
        self._entries = entries
        if unknown := [
            f"{entry.origin} is no setting; "
            + did_you_mean(key, KEYS, otherwise="docs/rest.md lists them")
            for key, entry in entries.items()
            if key not in KEYS and not _is_client_property(key)
        ]:
            raise ConfigurationError("; ".join(unknown))

    def text(self, key: str, default: str | None = None) -> str | None:
        """Return a text; empty counts as absent."""
        entry = self._entries.get(key)
        return entry.value if entry and entry.value else default

    def choice(self, key: str, default: _ChoiceT) -> _ChoiceT:
        """Return one of the members of the enumeration of ``default``."""
        entry = self._entries.get(key)
        if entry is None:
            return default
        value = _POLICIES.get(entry.value, entry.value)
        try:
            return type(default)(value)
        except ValueError:
            raise _wrong(entry, f"one of {', '.join(type(default))}") from None

    def flag(self, key: str, *, default: bool) -> bool:
        """Return a truth."""
        entry = self._entries.get(key)
        if entry is None:
            return default
        if entry.value.lower() in _TRUTHS:
            return _TRUTHS[entry.value.lower()]
        raise _wrong(entry, "true or false")

    def number(self, key: str, default: float, *, low: float, high: float = 86_400) -> float:
        """Return a number from ``low`` to ``high``."""
        entry = self._entries.get(key)
        if entry is None:
            return default
        try:
            value = float(entry.value)
        except ValueError:
            value = math.nan
        if low <= value <= high:
            return value
        raise _wrong(entry, f"a number from {low:g} to {high:g}")

    def client(self, side: str) -> dict[str, str]:
        """Return the Kafka properties of a side: those of its own over the shared ones."""
        own: dict[str, str] = {}
        for prefix in ("kafka.", f"{side}."):
            own |= {
                key.removeprefix(prefix): entry.value
                for key, entry in self._entries.items()
                if key.startswith(prefix) and key not in KEYS
            }
        if not own.get(BOOTSTRAP_SERVERS):
            raise ConfigurationError(
                f"{side}.{BOOTSTRAP_SERVERS} is missing; put it into the settings file, or into "
                f"the variable {ENV_PREFIX}{side.upper()}_BOOTSTRAP_SERVERS"
            )
        return to_librdkafka(side, own)

    def naming(self, location: SyncsLocation) -> Naming:
        """Return what decides names."""
        separator = self.text("replication.policy.separator", ".") or "."
        internal = self.flag("replication.policy.internal.topic.separator.enabled", default=True)
        aliases = {side: self.text(f"{side}.alias", side) or side for side in _SIDES[1:]}
        if topic := self._entries.get("offset-syncs.topic"):
            other = "source" if location is SyncsLocation.TARGET else "target"
            aliases[other] = _alias_in(topic, separator if internal else ".")
        return Naming(
            source_alias=aliases["source"],
            target_alias=aliases["target"],
            policy=self.choice("replication.policy", ReplicationPolicy.DEFAULT),
            separator=separator,
            internal_separator=internal,
        )

    def connect_url(self) -> str | None:
        """Return the URL of a Connect worker, if one is given."""
        url = self.text("connect.url")
        if url is not None:
            try:
                ConnectClient(url=url)
            except ConfigurationError as error:
                origin = self._entries["connect.url"].origin
                raise ConfigurationError(f"{origin}: {error}") from error
        return url

    def secret(self, key: str) -> str | None:
        """Return a text, or what the file holds that the key with ``.file`` names."""
        file = self.text(f"{key}.file")
        if file is None:
            return self.text(key)
        origin = self._entries[f"{key}.file"].origin
        try:
            secret = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"{origin}: {file} can't be read ({type(error).__name__}); name a text file that "
                f"holds the secret alone"
            ) from None
        if not secret:
            raise ConfigurationError(f"{origin}: {file} is empty; put the secret into it")
        return secret

    def both(self, *keys: str) -> None:
        """Refuse one of two keys without the other."""
        given = [key for key in keys if self.text(key)]
        if len(given) == 1:
            (missing,) = set(keys) - set(given)
            raise ConfigurationError(
                f"{self._entries[given[0]].origin} is given without {missing}; give both or none"
            )


def did_you_mean(name: str, known: Collection[str], *, otherwise: str) -> str:
    """Return a question with the known name that is nearest to ``name``, if any is near."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else otherwise


def _is_client_property(key: str) -> bool:
    """Tell whether a key may be one for librdkafka, which judges its name: no misspelt alias is."""
    side, _, name = key.partition(".")
    return side in _SIDES and not difflib.get_close_matches(name, _ALIASES, cutoff=_SAME_WORD)


def _wrong(entry: Entry, wanted: str) -> ConfigurationError:
    return ConfigurationError(f"{entry.origin} is {entry.value!r}; give {wanted}")


def _alias_in(topic: Entry, separator: str) -> str:
    """Return the alias in the name of an offset-syncs topic; see ``Naming.syncs_topic``."""
    begin, end = f"{SYNCS_TOPIC_PREFIX}{separator}", f"{separator}internal"
    alias = topic.value.removeprefix(begin).removesuffix(end)
    if f"{begin}{alias}{end}" != topic.value or not alias:
        raise _wrong(topic, f"a name of the form {begin}<alias>{end}")
    return alias
