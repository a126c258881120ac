"""Typed settings by key; the error on a wrong value names its origin.

``load_settings`` reads the entries of files and variables with it, ``Mm2OffsetHook`` those of a
connection.
"""

import math
from pathlib import Path
from typing import TypeVar

from airflow_mm2_offsets.config.entries import Entries, Entry, with_prefix_stripped
from airflow_mm2_offsets.config.keys import (
    CLIENT_PREFIXES,
    CLUSTERS,
    INTERNAL_SEPARATOR,
    KEYS,
    MAPPING,
    POLICY,
    SEPARATOR,
    SHARED,
    SYNCS_TOPIC,
    misspelt,
    variable_of,
)
from airflow_mm2_offsets.config.replacing import replaced_by
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import Naming, OffsetMapping, ReplicationPolicy, SyncsLocation
from airflow_mm2_offsets.core.naming import SYNCS_TOPIC_PREFIX
from airflow_mm2_offsets.errors import ConfigurationError, did_you_mean
from airflow_mm2_offsets.kafka.client_properties import to_librdkafka
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS, Setting

_ALIASES = ("alias", "cluster.alias")
_POLICIES = {
    f"{package}{policy.value.title()}ReplicationPolicy": policy.value
    for policy in ReplicationPolicy
    for package in ("", "org.apache.kafka.connect.mirror.", "io.strimzi.kafka.connect.mirror.")
}
"""Kafka's classes, and Strimzi's, which older versions of it had before Kafka."""
_BOOLEANS = {"true": True, "false": False}
_ChoiceT = TypeVar("_ChoiceT", ReplicationPolicy, SyncsLocation, OffsetMapping)
_NEEDS_SYNCS = ("connect.url", SYNCS_TOPIC, "archive")
"""What says that MirrorMaker 2 copies. The location of its topic has a default in forms."""


class SettingsReader:
    """Reads typed values from the entries of a file, the environment or a connection."""

    def __init__(self, entries: Entries) -> None:
        """Keep the entries.

        Raises:
            ConfigurationError: Keys are unknown. The message names all of them.
        """
        self._entries = entries
        if unknown := [
            f"{entry.origin} is not a known setting; "
            + did_you_mean(key, KEYS, otherwise="docs/settings.md lists them")
            for key, entry in entries.items()
            if key not in KEYS and not _is_client_property(key)
        ]:
            raise ConfigurationError("; ".join(unknown))

    def text(self, key: str) -> str | None:
        """Return a text. An empty text counts as absent."""
        entry = self._entries.get(key)
        return entry.value or None if entry else None

    def choice(self, key: str, default: _ChoiceT) -> _ChoiceT:
        """Return a member of the enumeration that ``default`` belongs to."""
        entry = self._entries.get(key)
        if entry is None:
            return default
        value = _POLICIES.get(entry.value, entry.value)
        try:
            return type(default)(value)
        except ValueError:
            names = ", ".join(type(default))
            like = f"; for a class of your own, set {variable_of(key)} to what it names topics like"
            is_class = key == POLICY and "." in entry.value
            raise _invalid(entry, f"one of {names}{like if is_class else ''}") from None

    def flag(self, key: str, *, default: bool) -> bool:
        """Return a boolean."""
        entry = self._entries.get(key)
        if entry is None:
            return default
        value = _BOOLEANS.get(entry.value.lower())
        if value is None:
            raise _invalid(entry, "true or false")
        return value

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
        raise _invalid(entry, f"a number from {low:g} to {high:g}")

    def client_properties(self, cluster: str) -> dict[str, Setting]:
        """Return a cluster's librdkafka properties.

        Properties with the cluster's prefix take precedence over those with ``kafka.``. Keys that
        this package reads itself, such as ``source.alias``, are no client properties.

        Raises:
            ConfigurationError: ``bootstrap.servers`` is missing; or see ``to_librdkafka``.
        """
        shared, own = (self._client_entries(prefix) for prefix in (SHARED, cluster))
        replaced = replaced_by([name for name, entry in own.items() if entry.value])
        entries = {name: entry for name, entry in shared.items() if name not in replaced} | own
        servers = entries.get(BOOTSTRAP_SERVERS)
        if servers is None or not servers.value:
            key = f"{cluster}.{BOOTSTRAP_SERVERS}"
            raise ConfigurationError(
                f"is missing; put it into the settings file, or into the variable "
                f"{variable_of(key)}",
                setting=key,
            )
        properties = {name: entry.value for name, entry in entries.items()}
        return to_librdkafka(cluster, properties)

    def _client_entries(self, prefix: str) -> Entries:
        client = {key: entry for key, entry in self._entries.items() if key not in KEYS}
        return with_prefix_stripped(client, f"{prefix}.")

    def naming(self, location: SyncsLocation) -> Naming:
        """Return how MirrorMaker 2 names topics.

        The name of the offset-syncs topic contains the alias of the cluster that is not
        ``location``. It takes precedence over the alias setting.
        """
        # An empty separator is one to Kafka, too.
        separator = self._entries[SEPARATOR].value if SEPARATOR in self._entries else "."
        internal = self.flag(INTERNAL_SEPARATOR, default=True)
        aliases = {name: self.text(f"{name}.alias") or name for name in CLUSTERS}
        if topic := self._entries.get(SYNCS_TOPIC):
            other = "source" if location is SyncsLocation.TARGET else "target"
            aliases[other] = _alias_in(topic, separator if internal else ".")
        return Naming(
            source_alias=aliases["source"],
            target_alias=aliases["target"],
            policy=self.choice(POLICY, ReplicationPolicy.DEFAULT),
            separator=separator,
            internal_separator=internal,
        )

    def mapping(self) -> OffsetMapping:
        """Return how positions map.

        Raises:
            ConfigurationError: It is no mapping, or another setting says that MirrorMaker 2 copies.
        """
        mapping = self.choice(MAPPING, OffsetMapping.OFFSET_SYNCS)
        if mapping is OffsetMapping.IDENTITY and (
            contrary := [self._entries[key].origin for key in _NEEDS_SYNCS if self.text(key)]
        ):
            raise ConfigurationError(
                f"is {mapping}: copies keep offsets, and no offset syncs, archive of them or "
                f"Connect is asked; leave out {' and '.join(contrary)}, or set the mapping to "
                f"{OffsetMapping.OFFSET_SYNCS}",
                setting=self._entries[MAPPING].origin,
            )
        return mapping

    def connect_url(self) -> str | None:
        """Return the URL of a Connect worker, if one is set."""
        url = self.text("connect.url")
        if url is not None:
            try:
                ConnectClient(url=url)
            except ConfigurationError as error:
                origin = self._entries["connect.url"].origin
                raise ConfigurationError(str(error), setting=origin) from error
        return url

    def secret(self, key: str) -> str | None:
        """Return a text, or the content of the file that the key with ``.file`` names."""
        file = self.text(f"{key}.file")
        if file is None:
            return self.text(key)
        origin = self._entries[f"{key}.file"].origin
        try:
            secret = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"can't be read ({type(error).__name__}); name a text file that holds only the "
                f"secret",
                setting=origin,
                file=file,
            ) from None
        if not secret:
            raise ConfigurationError("is empty; put the secret into it", setting=origin, file=file)
        return secret

    def require_together(self, first: str, second: str) -> None:
        """Refuse one of two keys without the other."""
        for key, other in ((first, second), (second, first)):
            if self.text(key) and not self.text(other):
                raise ConfigurationError(
                    f"is set without {other}; set both, or neither",
                    setting=self._entries[key].origin,
                )


def _is_client_property(key: str) -> bool:
    """Tell whether a key may be a Kafka client property, whose name librdkafka checks later.

    A misspelt alias is not one: once the source is lost, no source client is made, and the
    mistake would never show.
    """
    prefix, _, name = key.partition(".")
    return prefix in CLIENT_PREFIXES and misspelt(name, _ALIASES) is None


def _invalid(entry: Entry, expected: str) -> ConfigurationError:
    return ConfigurationError(f"is {entry.value!r}; give {expected}", setting=entry.origin)


def _alias_in(topic: Entry, separator: str) -> str:
    """Return the alias in the name of an offset-syncs topic; see ``Naming.syncs_topic``."""
    prefix, suffix = f"{SYNCS_TOPIC_PREFIX}{separator}", f"{separator}internal"
    alias = topic.value.removeprefix(prefix).removesuffix(suffix)
    if f"{prefix}{alias}{suffix}" != topic.value or not alias:
        raise _invalid(topic, f"a name of the form {prefix}<alias>{suffix}")
    return alias
