"""The settings of a MirrorSourceConnector, from Connect's JSON or from another format.

Rules: ``MirrorConnectorConfig`` and ``MirrorSourceConfig``; the two forms of JSON are those of
Kafka Connect's ``PUT /connectors/x/config`` and ``POST /connectors``.
"""

from dataclasses import replace

from airflow_mm2_offsets.config.entries import Entries, with_prefix_stripped
from airflow_mm2_offsets.config.keys import (
    CLUSTERS,
    INTERNAL_SEPARATOR,
    POLICY,
    SEPARATOR,
    SOURCE_ALIAS,
    SYNCS_LOCATION,
    TARGET_ALIAS,
)
from airflow_mm2_offsets.config.mirror_maker.client_layers import cluster_properties
from airflow_mm2_offsets.config.mirror_maker.config_providers import WORKER_PROVIDERS
from airflow_mm2_offsets.config.mirror_maker.flows import MirrorFlow, MirrorMakerFile
from airflow_mm2_offsets.config.mirror_maker.own_settings import own_settings
from airflow_mm2_offsets.errors import ConfigurationError

_CLASS = "connector.class"
_CLASSES = ("MirrorSourceConnector", "MirrorSource")
"""Connect also finds a class by its name without the package, and without ``Connector``."""
_SETTINGS = {
    "source.cluster.alias": SOURCE_ALIAS,
    "target.cluster.alias": TARGET_ALIAS,
    "replication.policy.class": POLICY,
    SEPARATOR: SEPARATOR,
    INTERNAL_SEPARATOR: INTERNAL_SEPARATOR,
    SYNCS_LOCATION: SYNCS_LOCATION,
}
_CONFIG = "config."
_NOT_TRIMMED = ("sasl.jaas.config", "password", ".key", ".pem", "certificates", "chain")
"""Kafka trims texts, but neither secrets (``ConfigDef.Type.PASSWORD``) nor what is in PEM."""


def is_connector(entries: Entries) -> bool:
    """Tell whether entries are a connector's, bare or as the field ``config``."""
    return _CLASS in entries or f"{_CONFIG}{_CLASS}" in entries


def read_connector(entries: Entries) -> MirrorMakerFile:
    """Return the one flow of a MirrorSourceConnector.

    Raises:
        ConfigurationError: The connector is another one, or lacks the source's alias.
    """
    bare = _CLASS in entries
    config = entries if bare else with_prefix_stripped(entries, _CONFIG)
    name = config[_CLASS]
    if name.value.strip().rpartition(".")[2] not in _CLASSES:
        raise ConfigurationError(
            f"is {name.value!r}; give the configuration of the MirrorSourceConnector",
            setting=name.origin,
        )
    source, target = config.get("source.cluster.alias"), config.get("target.cluster.alias")
    if source is None:
        raise ConfigurationError(
            f"{name.origin} stands without source.cluster.alias, which Kafka requires; add it"
        )
    flow = MirrorFlow(
        source=source.value.strip(),
        target=target.value.strip() if target else "target",
        enabled=True,
        connector=config,
    )
    return MirrorMakerFile(flows=[flow], providers=WORKER_PROVIDERS, settings=own_settings(entries))


def connector_settings(connector: Entries) -> Entries:
    """Return a connector's settings under this package's keys."""
    settings = {ours: connector[name] for name, ours in _SETTINGS.items() if name in connector}
    for side in CLUSTERS:
        properties = cluster_properties(connector, side)
        settings |= {f"{side}.{name}": entry for name, entry in properties.items()}
    return {
        key: entry
        if key.endswith(_NOT_TRIMMED) or key == SEPARATOR
        else replace(entry, value=entry.value.strip())
        for key, entry in settings.items()
    }
