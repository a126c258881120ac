"""A file of MirrorMaker 2's dedicated mode (``connect-mirror-maker.sh mm2.properties``).

Rules: ``MirrorMakerConfig.clusterProps`` and ``MirrorMakerConfig.connectorBaseConfig``.
"""

import re
from dataclasses import replace
from itertools import permutations

from airflow_mm2_offsets.config.entries import Entries, with_prefix_stripped
from airflow_mm2_offsets.config.keys import CLUSTERS, SYNCS_LOCATION
from airflow_mm2_offsets.config.mirror_maker.client_layers import is_connection_property
from airflow_mm2_offsets.config.mirror_maker.config_providers import declared_providers
from airflow_mm2_offsets.config.mirror_maker.flows import MirrorFlow, MirrorMakerFile
from airflow_mm2_offsets.config.mirror_maker.own_settings import own_settings
from airflow_mm2_offsets.errors import ConfigurationError

_CLUSTERS = "clusters"
_CLIENTS = ("consumer", "producer", "admin")
_CONNECTOR_KEYS = frozenset(
    {
        "source.cluster.alias",
        "target.cluster.alias",
        SYNCS_LOCATION,
        "config.properties.exclude",
        "emit.heartbeats.enabled",
        "emit.offset-syncs.enabled",
        "errors.tolerance",
        "header.converter",
        "heartbeats.replication.enabled",
        "key.converter",
        "offset-syncs.topic.replication.factor",
        "offset.lag.max",
        "refresh.topics.enabled",
        "replication.factor",
        "sync.group.offsets.enabled",
        "sync.topic.acls.enabled",
        "sync.topic.configs.enabled",
        "tasks.max",
        "topic.filter.class",
        "topics",
        "topics.exclude",
        "transforms",
        "value.converter",
    }
)
"""Of ``MirrorMakerConfig.allConfigNames``, those that count here: they may stand for all flows."""
_POLICY_PREFIX = "replication.policy"


def is_mirror_maker(entries: Entries) -> bool:
    """Tell whether entries are those of a dedicated MirrorMaker 2."""
    return _CLUSTERS in entries


def read_properties(entries: Entries) -> MirrorMakerFile:
    """Return the flows between each two clusters.

    Raises:
        ConfigurationError: There are fewer than two clusters.
    """
    clusters = [name for name in re.split(r"\s*,\s*", entries[_CLUSTERS].value.strip()) if name]
    if len(clusters) < 2:  # noqa: PLR2004 - a flow has two ends
        raise ConfigurationError(
            "names fewer than two clusters; give their aliases, as in: clusters = east, west",
            setting=entries[_CLUSTERS].origin,
        )
    flows = [
        MirrorFlow(
            source=source,
            target=target,
            enabled=_is_enabled(entries, source, target),
            connector=_connector_config(entries, source, target),
        )
        for source, target in permutations(clusters, 2)
    ]
    return MirrorMakerFile(
        flows=flows,
        providers=declared_providers(entries),
        settings=own_settings(entries, clusters),
    )


def _is_enabled(entries: Entries, source: str, target: str) -> bool:
    enabled = entries.get(f"{source}->{target}.enabled")
    # Java's parseBoolean, which MirrorMakerConfig calls, does not trim.
    return enabled is not None and enabled.value.lower() == "true"


def _connector_config(entries: Entries, source: str, target: str) -> Entries:
    config = {
        key: entry
        for key, entry in entries.items()
        if key in _CONNECTOR_KEYS or key.startswith(_POLICY_PREFIX)
    }
    for side, alias in (("source", source), ("target", target)):
        for name, entry in _cluster_config(entries, alias).items():
            if name == "alias" and alias in CLUSTERS:
                continue  # this package's own setting, which chooses the flow
            infix = "" if name.startswith(_CLIENTS) else "cluster."
            config[f"{side}.{infix}{name}"] = entry
        named = replace(entries[_CLUSTERS], value=alias)
        config.setdefault(f"{side}.cluster.alias", named)
    return config | with_prefix_stripped(entries, f"{source}->{target}.")


def _cluster_config(entries: Entries, alias: str) -> Entries:
    """Return what a cluster's clients get: its own properties, then those for all clusters."""
    config = with_prefix_stripped(entries, f"{alias}.")
    for layer in ({**config}, entries):
        for name, entry in layer.items():
            if is_connection_property(name):
                for client in _CLIENTS:
                    config.setdefault(f"{client}.{name}", entry)
                config.setdefault(name, entry)
    return config
