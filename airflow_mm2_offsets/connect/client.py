"""Reads Kafka Connect's REST API (KIP-875 for offsets), for health checks and the planner."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from airflow_mm2_offsets.connect.worker import ConnectWorker, connector_path
from airflow_mm2_offsets.errors import ConnectError

CopiedOffsets: TypeAlias = dict[tuple[str, str, int], int]
"""The last copied source offset by source alias, source topic and partition."""

MIRROR_SOURCE = "MirrorSourceConnector"
_HEARTBEATS_TOPIC = "heartbeats"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """A task of a connector."""

    id: int
    state: str
    """``RUNNING``, ``FAILED``, ``PAUSED``, ``UNASSIGNED``, ``RESTARTING``."""
    trace: str | None = None
    """The first line of its stack trace, when it failed; without the connector's secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStatus:
    """A connector and its tasks."""

    name: str
    state: str
    """``RUNNING``, ``FAILED``, ``PAUSED``, ``STOPPED``, ``UNASSIGNED``, ``RESTARTING``."""
    tasks: tuple[TaskStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """What a worker tells of itself."""

    version: str
    """Kafka's."""
    cluster_id: str | None
    """Of the cluster that holds Connect's own topics. Connectors write there by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectClient(ConnectWorker):
    """Reads what a Kafka Connect worker knows; see ``ConnectWorker`` for the errors."""

    def check(self) -> str:
        """Return the worker's version."""
        return self.info().version

    def info(self) -> WorkerInfo:
        """Return what the worker tells of itself."""
        body = self.request("GET", "/", "the worker")
        if not isinstance(body, dict) or "version" not in body:
            raise ConnectError(f"{self.url} is not a Kafka Connect worker: it names no version")
        cluster = body.get("kafka_cluster_id")
        return WorkerInfo(version=str(body["version"]), cluster_id=cluster and str(cluster))

    def status(self, name: str) -> ConnectorStatus:
        """Return the state of a connector and of its tasks, without secrets."""
        body = self._of_connector(name, "status")
        with self.shape(f"connector {name}"):
            return ConnectorStatus(
                name=name,
                state=body["connector"]["state"],
                tasks=tuple(
                    TaskStatus(id=task["id"], state=task["state"], trace=self._reason(name, task))
                    for task in body["tasks"]
                ),
            )

    def offset_entries(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return a connector's offsets as Connect tells them: ``partition`` and ``offset`` each.

        They are what a request to alter offsets takes, so that they can be put back.
        """
        body = self._of_connector(name, "offsets")
        with self.shape(f"connector {name}"):
            return [
                {"partition": entry["partition"], "offset": entry["offset"]}
                for entry in body["offsets"]
            ]

    def offsets(self, name: str) -> CopiedOffsets:
        """Return how far a MirrorSourceConnector has committed its copying.

        The number is the offset of the LAST copied source record, not of the next: a position p
        has been copied past once it is p - 1 or more. It lags behind what is on the target by
        up to ``offset.flush.interval.ms``. Heartbeats, and entries that are not of a
        MirrorSourceConnector (``MirrorUtils.wrapPartition``), are left out.
        """
        return copied_offsets(self.offset_entries(name))

    def config(self, name: str) -> Mapping[str, str]:
        """Return the settings of a connector, without defaults.

        They may hold secrets.
        """
        body = self._of_connector(name, "config")
        with self.shape(f"connector {name}"):
            return {str(key): str(value) for key, value in body.items() if value is not None}

    def configs(self) -> Mapping[str, Mapping[str, str]]:
        """Return the settings of every connector by its name, without defaults.

        They may hold secrets.
        """
        body = self.request(
            "GET", "/connectors", "the list of connectors", params={"expand": "info"}
        )
        with self.shape("the list of connectors"):
            return {
                name: {
                    str(key): str(value)
                    for key, value in expanded["info"]["config"].items()
                    if value is not None
                }
                for name, expanded in body.items()
            }

    def mirror_sources(self) -> Mapping[str, Mapping[str, str]]:
        """Return the settings of each MirrorSourceConnector by its name; see ``configs``."""
        return {
            name: config
            for name, config in self.configs().items()
            if config.get("connector.class", "").endswith(MIRROR_SOURCE)
        }

    def find_mirror_sources(
        self, source_alias: str, target_alias: str
    ) -> Mapping[str, Mapping[str, str]]:
        """Return the settings of the MirrorSourceConnectors that may copy between two aliases.

        Several share a pair where its topics are split between them. Those count, too, whose
        aliases a config provider holds (KIP-297): Connect does not tell them, and what such a
        connector copies must not be overlooked. There is at least one, or ConnectError is raised.
        """
        configs = self.mirror_sources()
        pair = (source_alias, target_alias)
        if found := {name: each for name, each in configs.items() if may_copy_between(each, pair)}:
            return found
        listed = ", ".join(
            f"{name} ({'->'.join(aliases_of(each))})" for name, each in sorted(configs.items())
        )
        raise ConnectError(
            f"Connect at {self.url} has no MirrorSourceConnector for {source_alias}->"
            f"{target_alias}; it has {listed or 'none'}. Check the aliases and the Connect URL"
        )

    def _of_connector(self, name: str, what: str) -> Any:  # noqa: ANN401 - JSON
        path = connector_path(name, what)
        return self.request("GET", path, f"connector {name}", connector=name)

    def _reason(self, name: str, task: Mapping[str, str]) -> str | None:
        """Return the first line of a task's trace; a secret may go over several lines."""
        trace = task.get("trace")
        return self.hide(name, trace).partition("\n")[0] if trace else None


def aliases_of(config: Mapping[str, str]) -> tuple[str, str]:
    """Return the aliases of source and target in a connector's settings."""
    return (
        str(config.get("source.cluster.alias")),
        config.get("target.cluster.alias", "target"),
    )


def may_copy_between(config: Mapping[str, str], pair: tuple[str, str]) -> bool:
    """Tell whether a connector is of these aliases, as far as its settings tell its own."""
    aliases = zip(aliases_of(config), pair, strict=True)
    return all(alias == wanted or "${" in alias for alias, wanted in aliases)


def copied_offsets(entries: Iterable[Mapping[str, Any]]) -> CopiedOffsets:
    """Return the last copied offsets that entries name; see ``ConnectClient.offsets``."""
    return dict(filter(None, map(_copied, entries)))


def _copied(entry: Mapping[str, Any]) -> tuple[tuple[str, str, int], int] | None:
    match entry:
        case {
            "partition": {"cluster": str(cluster), "topic": str(topic), "partition": int(number)},
            "offset": {"offset": int(offset)},
        } if topic != _HEARTBEATS_TOPIC:
            return (cluster, topic, number), offset
    return None
