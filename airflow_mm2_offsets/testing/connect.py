"""A Kafka Connect worker in memory that runs a MirrorSourceConnector, and others if told to."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from unittest.mock import patch
from weakref import WeakValueDictionary

import httpx

from airflow_mm2_offsets.connect import worker as connect_worker
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.connect.exchange import Server
from airflow_mm2_offsets.core import Naming, SyncsLocation, TopicPartition
from airflow_mm2_offsets.testing.connectors import Reply, SimulatedConnector

CONNECTOR = "mirror"

_MIRROR = "org.apache.kafka.connect.mirror"
_numbers = count(1)
_workers: WeakValueDictionary[str, "SimulatedConnect"] = WeakValueDictionary()
"""By URL, so that a client finds its worker."""


@dataclass(slots=True, kw_only=True, weakref_slot=True, eq=False)
class SimulatedConnect:
    """A Connect worker; a client sees each change in its next answer."""

    config: Mapping[str, str]
    """The connector's configuration."""
    committed_offsets: Callable[[], Mapping[TopicPartition, int]] = field(default=dict, repr=False)
    """Returns the last copied source offset of each topic-partition."""
    state: str = "RUNNING"
    """The connector's."""
    tasks: Sequence[Mapping[str, Any]] = ({"id": 0, "state": "RUNNING"},)
    """The status of each task, as Connect's REST API gives it."""
    others: dict[str, SimulatedConnector] = field(default_factory=dict)
    """Connectors beside that one, by their names; a request creates, changes or deletes them."""
    cluster_id: str | None = None
    """Of the cluster that holds Connect's own topics."""
    is_running: bool = True
    """Set to False for an outage: a client raises ClusterUnreachableError."""
    url: str = field(default_factory=lambda: f"http://in-memory-connect-{next(_numbers)}:8083")
    """Only ``in_memory_connect`` resolves it."""

    def __post_init__(self) -> None:
        """Let clients find the worker."""
        _workers[self.url] = self

    def client(self) -> ConnectClient:
        """Return a client that needs no ``in_memory_connect``."""
        return ConnectClient(url=self.url, transport=self.transport)

    @property
    def transport(self) -> httpx.MockTransport:
        """Sends requests to this worker."""
        return httpx.MockTransport(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if not self.is_running:
            raise httpx.ConnectError("the in-memory Connect does not run", request=request)
        match request.url.path.split("/")[1:]:
            case [""]:
                root = {"version": "4.1.0", "kafka_cluster_id": self.cluster_id}
                return httpx.Response(200, json=root)
            case ["connectors"]:
                configs = {name: each.config for name, each in self.others.items()}
                configs = {CONNECTOR: self.config, **configs}
                listed = {name: {"info": {"config": each}} for name, each in configs.items()}
                return httpx.Response(200, json=listed)
            case ["connectors", name, *rest]:
                reply = self._of_connector(request, name, "".join(rest))
            case _:
                reply = None
        status, body = reply or (404, {"message": f"{request.url.path} not found"})
        return httpx.Response(status) if body is None else httpx.Response(status, json=body)

    def _of_connector(self, request: httpx.Request, name: str, what: str) -> Reply | None:
        if name == CONNECTOR:
            connector = SimulatedConnector(
                name=name,
                config=self.config,
                state=self.state,
                tasks=self.tasks,
                offsets=self._offsets(),
            )
            reply = connector.answer(request.method, what, request.content)
            self.state, self.tasks = connector.state, connector.tasks
            return reply
        if (request.method, what) == ("PUT", "config"):
            return self._put(name, json.loads(request.content))
        other = self.others.get(name)
        if other is not None and (request.method, what) == ("DELETE", ""):
            del self.others[name]
            return 204, None
        return other.answer(request.method, what, request.content) if other else None

    def _put(self, name: str, config: Mapping[str, str]) -> Reply:
        is_new = name not in self.others
        if is_new:
            self.others[name] = SimulatedConnector(name=name, config=config)
        self.others[name].config = config
        return (201 if is_new else 200), {"name": name, "config": config, "tasks": []}

    def _offsets(self) -> list[dict[str, Any]]:
        cluster = self.config["source.cluster.alias"]
        return [
            {
                "partition": {"cluster": cluster, "topic": topic, "partition": partition},
                "offset": {"offset": offset},
            }
            for (topic, partition), offset in self.committed_offsets().items()
        ]


def mirror_config(naming: Naming, location: SyncsLocation) -> dict[str, str]:
    """Return the configuration of a MirrorSourceConnector with these names."""
    return {
        "connector.class": f"{_MIRROR}.MirrorSourceConnector",
        "source.cluster.alias": naming.source_alias,
        "target.cluster.alias": naming.target_alias,
        "replication.policy.class": f"{_MIRROR}.{naming.policy.value.title()}ReplicationPolicy",
        "replication.policy.separator": naming.separator,
        "replication.policy.internal.topic.separator.enabled": str(
            naming.internal_separator
        ).lower(),
        "offset-syncs.topic.location": location.value,
    }


@contextmanager
def in_memory_connect() -> Iterator[None]:
    """Let Connect clients find the workers in memory by their URL; other URLs stay real."""

    def server(
        *, url: str, login: tuple[str, str] | None, transport: httpx.AsyncBaseTransport | None
    ) -> Server:
        worker = _workers.get(url)
        if worker is not None and transport is None:
            transport = worker.transport
        return Server(url=url, login=login, transport=transport)

    with patch.object(connect_worker, "Server", server):
        yield
