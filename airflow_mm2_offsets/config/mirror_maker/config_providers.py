"""Kafka's config providers: values such as ``${file:/run/secrets/mm2.properties:password}``.

Rules: ``ConfigTransformer``, ``FileConfigProvider``, ``DirectoryConfigProvider`` and
``EnvVarConfigProvider`` (KIP-297, KIP-421, KIP-887). Other providers ask a service of their own.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import javaproperties

from airflow_mm2_offsets.config.entries import Entries, Entry
from airflow_mm2_offsets.errors import ConfigurationError

_PATTERN = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
"""``ConfigTransformer.DEFAULT_PATTERN``: ``${provider:path:key}``, the path may be missing."""
_PROVIDERS = "config.providers"

_Lookup = Callable[[str, str, Mapping[str, str]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigProviders:
    """The providers that may stand in values: the simple name of the class by provider."""

    classes: Mapping[str, str]
    are_all: bool = False
    """Whether there are no others: the text of another one is no reference, and stays (Kafka)."""

    def resolve(self, entries: Entries, environ: Mapping[str, str]) -> Entries:
        """Return entries with the values that providers hold.

        An entry that a provider has no value for here becomes ``absent``.
        """
        return {key: self._resolve_entry(entry, environ) for key, entry in entries.items()}

    def _resolve_entry(self, entry: Entry, environ: Mapping[str, str]) -> Entry:
        try:
            value = _PATTERN.sub(lambda match: self._value(match, environ), entry.value)
        except _AbsentError as error:
            return replace(entry, value="", absent=str(error))
        return replace(entry, value=value)

    def _value(self, match: re.Match[str], environ: Mapping[str, str]) -> str:
        provider, path, key = match[1], match[2] or "", match[3]
        if self.are_all and provider not in self.classes:
            return match[0]
        look_up = _LOOKUPS.get(self.classes.get(provider, ""))
        if look_up is None:
            raise _AbsentError(f"it is in the config provider {provider!r}, which is not read here")
        return look_up(path, key, environ)


class _AbsentError(Exception):
    """A provider has no such value here."""


WORKER_PROVIDERS = ConfigProviders(
    classes={
        "file": "FileConfigProvider",
        "dir": "DirectoryConfigProvider",
        "directory": "DirectoryConfigProvider",
        "env": "EnvVarConfigProvider",
    }
)
"""The names that Kafka's docs use. A connector's own settings don't declare its providers."""


def declared_providers(entries: Entries) -> ConfigProviders:
    """Return the providers that a file declares by ``config.providers``.

    Raises:
        ConfigurationError: A provider has no class.
    """
    declared = entries.get(_PROVIDERS)
    classes = {}
    for name in re.split(r"\s*,\s*", declared.value.strip()) if declared else ():
        key = f"{_PROVIDERS}.{name}.class"
        if key not in entries:
            raise ConfigurationError(
                f"names {name!r}, and {key} is missing; add it", setting=_PROVIDERS
            )
        classes[name] = entries[key].value.strip().rpartition(".")[2]
    return ConfigProviders(classes=classes, are_all=True)


def _from_file(path: str, key: str, _: Mapping[str, str]) -> str:
    try:
        properties = javaproperties.loads(_read(path))
    except ValueError:
        raise _AbsentError(f"the file {path} is not a properties file") from None
    if key not in properties:
        raise _AbsentError(f"the file {path} has no {key}")
    return properties[key]


def _from_directory(path: str, key: str, _: Mapping[str, str]) -> str:
    if "/" in key:
        raise _AbsentError(f"{key} is not the name of a file in {path}")
    return _read(f"{path}/{key}")


def _from_variable(path: str, key: str, environ: Mapping[str, str]) -> str:
    if path:
        raise _AbsentError(f"a variable has no path, and {path} is given")
    if key not in environ:
        raise _AbsentError(f"the variable {key} is not set")
    return environ[key]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise _AbsentError(f"the file {path} can't be read ({type(error).__name__})") from None


_LOOKUPS: Mapping[str, _Lookup] = {
    "FileConfigProvider": _from_file,
    "DirectoryConfigProvider": _from_directory,
    "EnvVarConfigProvider": _from_variable,
}
