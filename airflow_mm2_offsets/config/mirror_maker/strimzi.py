"""Strimzi's resource KafkaMirrorMaker2, of ``kafka.strimzi.io/v1beta2`` and ``v1``.

Rules: ``KafkaMirrorMaker2Connectors`` of Strimzi's operator, which makes connectors of it. The
resource only names the secrets of Kubernetes; their values must come by variables.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_mm2_offsets.config.entries import Entries, Entry, flatten
from airflow_mm2_offsets.config.mirror_maker.config_providers import ConfigProviders
from airflow_mm2_offsets.config.mirror_maker.flows import MirrorFlow, MirrorMakerFile
from airflow_mm2_offsets.config.mirror_maker.strimzi_login import login_properties
from airflow_mm2_offsets.errors import ConfigurationError

_KIND = "KafkaMirrorMaker2"
_NO_PROVIDERS = ConfigProviders(classes={})
_OF_MIRROR = {"topicsPattern": "topics", "topicsExcludePattern": "topics.exclude"}
"""Fields of a mirror that become settings of its connectors."""
_OF_CONNECTOR = {"tasksMax": "tasks.max"}


def is_strimzi(content: Mapping[str, Any]) -> bool:
    """Tell whether a document is a KafkaMirrorMaker2."""
    return content.get("kind") == _KIND


def read_strimzi(resources: Iterable[Mapping[str, Any]], file: Path) -> MirrorMakerFile:
    """Return a flow for each mirror of the resources.

    Raises:
        ConfigurationError: A resource lacks a mirror, a cluster or its address.
    """
    flows = [flow for resource in resources for flow in _flows(_Resource(resource, file))]
    return MirrorMakerFile(flows=flows, providers=_NO_PROVIDERS)


@dataclass(frozen=True, slots=True)
class _Resource:
    content: Mapping[str, Any]
    file: Path

    @property
    def spec(self) -> Mapping[str, Any]:
        return _table(self.content.get("spec"))

    def cluster(self, inline: object, alias: object) -> Mapping[str, Any]:
        """Return a cluster that stands in place (v1), or in the list of clusters (v1beta2)."""
        if inline is not None:
            return _table(inline)
        for cluster in map(_table, _list(self.spec.get("clusters"))):
            if cluster.get("alias") == alias:
                return cluster
        raise self.error(f"names the cluster {alias!r}, which is not in spec.clusters; add it")

    def error(self, problem: str) -> ConfigurationError:
        name = _table(self.content.get("metadata")).get("name", "without a name")
        return ConfigurationError(problem, file=str(self.file), setting=f"{_KIND} {name}")


def _flows(resource: _Resource) -> Iterator[MirrorFlow]:
    mirrors = [*map(_table, _list(resource.spec.get("mirrors")))]
    if not mirrors:
        raise resource.error("has no spec.mirrors; add the source cluster there")
    for mirror in mirrors:
        source = resource.cluster(mirror.get("source"), mirror.get("sourceCluster"))
        target = resource.cluster(resource.spec.get("target"), mirror.get("targetCluster"))
        connector = _table(mirror.get("sourceConnector"))
        config = _entries(_table(connector.get("config")), "sourceConnector.config", resource)
        yield MirrorFlow(
            source=_required(source, "alias", resource),
            target=_required(target, "alias", resource),
            enabled="sourceConnector" in mirror,
            connector=_connection("source", source, resource)
            | _connection("target", target, resource)
            | config
            | _fields(mirror, _OF_MIRROR, resource)
            | _fields(connector, _OF_CONNECTOR, resource),
        )


def _connection(side: str, cluster: Mapping[str, Any], resource: _Resource) -> Entries:
    alias = _required(cluster, "alias", resource)
    place = f"cluster {alias}"
    properties = {
        "alias": Entry(value=alias, origin=f"{place} in {resource.file}"),
        "bootstrap.servers": Entry(
            value=_required(cluster, "bootstrapServers", resource),
            origin=f"bootstrapServers of {place} in {resource.file}",
        ),
        **login_properties(cluster, f"{place} in {resource.file}"),
        **_entries(_table(cluster.get("config")), f"{place}: config", resource),
    }
    return {f"{side}.cluster.{name}": entry for name, entry in properties.items()}


def _entries(config: Mapping[str, Any], place: str, resource: _Resource) -> Entries:
    return {
        key: Entry(value=value, origin=f"{place}.{key} in {resource.file}")
        for key, value in flatten(config)
    }


def _fields(content: Mapping[str, Any], names: Mapping[str, str], resource: _Resource) -> Entries:
    return {
        setting: Entry(value=str(content[field]), origin=f"{field} in {resource.file}")
        for field, setting in names.items()
        if content.get(field) is not None
    }


def _required(cluster: Mapping[str, Any], field: str, resource: _Resource) -> str:
    value = cluster.get(field)
    if not isinstance(value, str) or not value:
        raise resource.error(f"has a cluster without {field}; add it")
    return value


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
