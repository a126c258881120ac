"""A Kafka Connect worker in memory that runs one MirrorSourceConnector."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from unittest.mock import patch
from weakref import WeakValueDictionary

import httpx

from airflow_mm2_offsets.connect import client
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.connect.exchange import Server
from airflow_mm2_offsets.core import Naming, SyncsLocation, TopicPartition

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
                return httpx.Response(200, json={"version": "4.1.0"})
            case ["connectors"]:
                body: object = {CONNECTOR: {"info": {"config": self.config}}}
            case ["connectors", name, what] if name == CONNECTOR and what in _RESOURCES:
                body = _RESOURCES[what](self)
            case _:
                return httpx.Response(404, json={"message": f"{request.url.path} not found"})
        return httpx.Response(200, json=body)

    def _status(self) -> object:
        return {"connector": {"state": self.state}, "tasks": list(self.tasks)}

    def _offsets(self) -> object:
        cluster = self.config["source.cluster.alias"]
        return {
            "offsets": [
                {
                    "partition": {"cluster": cluster, "topic": topic, "partition": partition},
                    "offset": {"offset": offset},
                }
                for (topic, partition), offset in self.committed_offsets().items()
            ]
        }


_RESOURCES: Mapping[str, Callable[[SimulatedConnect], object]] = {
    "config": lambda worker: dict(worker.config),
    "status": SimulatedConnect._status,  # noqa: SLF001 - of the class above
    "offsets": SimulatedConnect._offsets,  # noqa: SLF001
}


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

    with patch.object(client, "Server", server):
        yield
