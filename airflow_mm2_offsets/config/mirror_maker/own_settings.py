"""This package's settings that stand in a file of MirrorMaker 2."""

from collections.abc import Collection

from airflow_mm2_offsets.config.entries import Entries
from airflow_mm2_offsets.config.keys import (
    CLIENT_PREFIXES,
    INTERNAL_SEPARATOR,
    KEYS,
    SEPARATOR,
    SYNCS_LOCATION,
    misspelt,
)
from airflow_mm2_offsets.errors import ConfigurationError

_SHARED_WITH_KAFKA = frozenset({SEPARATOR, INTERNAL_SEPARATOR, SYNCS_LOCATION})
"""Kafka's keys have these names; its precedence between a flow and the file counts for them."""
_OWN = KEYS - _SHARED_WITH_KAFKA
_OF_CONNECTOR = ("cluster.", "consumer.", "producer.", "admin.")
_TYPICAL = ("serve.", "connect.", "archive")


def own_settings(entries: Entries, clusters: Collection[str] = ()) -> Entries:
    """Return the settings that are this package's; they take precedence over MirrorMaker 2's.

    Other keys are ignored: those of MirrorMaker 2 and its Connect workers are many. In a file of
    clusters, a prefix that is a cluster's alias is that cluster's.

    Raises:
        ConfigurationError: Keys look like misspelt ones of this package.
    """
    if wrong := [
        f"{entry.origin} is not a known setting; did you mean {meant}?"
        for key, entry in entries.items()
        if key.startswith(_TYPICAL)
        and key not in KEYS
        and key.partition(".")[0] not in clusters
        and (meant := misspelt(key, _OWN))
    ]:
        raise ConfigurationError("; ".join(wrong))
    return {
        key: entry
        for key, entry in entries.items()
        if key in _OWN or _is_client_property(key, clusters)
    }


def _is_client_property(key: str, clusters: Collection[str]) -> bool:
    prefix, _, name = key.partition(".")
    return (
        prefix in CLIENT_PREFIXES and prefix not in clusters and not name.startswith(_OF_CONNECTOR)
    )
