"""How a login or a key pair replaces another one, which may be written by other properties.

``sources`` lets variables replace those of MirrorMaker 2's files, whose logins often are secrets
that only variables can give; ``reader`` lets a cluster's own replace those of both clusters.
"""

from collections.abc import Collection, Iterator

from airflow_mm2_offsets.config.entries import Entries
from airflow_mm2_offsets.config.keys import CLUSTERS, SHARED, variable_of
from airflow_mm2_offsets.errors import ConfigurationError

_PASSWORD = ("sasl.username", "sasl.password")
_CA = ("ssl.ca.location", "ssl.ca.pem", "ssl.truststore.certificates")
_CERTIFICATE = (
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.keystore.certificate.chain",
)
_KEY = ("ssl.key.location", "ssl.key.pem", "ssl.keystore.key")
_TRUSTSTORE = tuple(f"ssl.truststore.{name}" for name in ("location", "password", "type"))
_KEYSTORE = tuple(f"ssl.keystore.{name}" for name in ("location", "password", "type"))

_REPLACED: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("sasl.jaas.config",), _PASSWORD),
    (_PASSWORD, ("sasl.jaas.config",)),
    (_CA, (*_CA, *_TRUSTSTORE)),
    (("ssl.truststore.location",), _CA),
    (_CERTIFICATE, (*_CERTIFICATE, *_KEYSTORE)),
    (_KEY, (*_KEY, *_KEYSTORE)),
    (("ssl.keystore.location",), (*_CERTIFICATE, *_KEY)),
)
"""Those of the first replace the ones of the second, which say the same in other words."""


def replaced_by(names: Collection[str]) -> frozenset[str]:
    """Return the client properties that do not count where those of ``names`` are given."""
    return frozenset(
        name
        for replacing, replaced in _REPLACED
        if not frozenset(replacing).isdisjoint(names)
        for name in replaced
    )


def without_replaced(settings: Entries, variables: Entries) -> Entries:
    """Return a file's settings without those that variables replace.

    A variable for both clusters replaces only what the file does not have: a cluster's own property
    takes precedence.
    """
    own = {key for cluster in CLUSTERS for key in _replaced(cluster, cluster, variables)}
    shared = {key for cluster in CLUSTERS for key in _replaced(SHARED, cluster, variables)}
    return {
        key: entry
        for key, entry in settings.items()
        if key not in own and not (entry.absent and key in shared)
    }


def require_values(settings: Entries) -> None:
    """Refuse settings whose values are not in the file.

    Raises:
        ConfigurationError: The message names, for each, the reason and the variable to set.
    """
    if absent := [
        f"{entry.origin}: {entry.absent}; set {_variables(key)}"
        for key, entry in settings.items()
        if entry.absent
    ]:
        raise ConfigurationError(". ".join(absent))


def _replaced(prefix: str, cluster: str, variables: Entries) -> Iterator[str]:
    """Yield a cluster's keys that variables with ``prefix`` replace."""
    names = {
        key.removeprefix(f"{prefix}.")
        for key, entry in variables.items()
        if key.startswith(f"{prefix}.") and entry.value
    }
    yield from (f"{cluster}.{name}" for name in names | replaced_by(names))


def _variables(key: str) -> str:
    """Return the variables that can give a value; a PEM and a login have two forms each."""
    prefix, _, kind = key.rpartition(".")
    text = f"the variable {variable_of(key)}"
    if kind == "location":
        return f"{text} (a PEM file) or {variable_of(f'{prefix}.pem')}"
    if key.endswith(".sasl.jaas.config"):
        cluster = key.partition(".")[0]
        user, password = (variable_of(f"{cluster}.{name}") for name in _PASSWORD)
        return f"{text}, or {user} and {password}"
    return text
