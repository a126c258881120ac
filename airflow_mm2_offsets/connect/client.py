"""A reader of Kafka Connect's REST API (KIP-875 for offsets)."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import quote

import httpx

from airflow_mm2_offsets.errors import ClusterUnreachableError, ConfigurationError, ConnectError

CopiedOffsets: TypeAlias = dict[tuple[str, str, int], int]
"""The last copied source offset by source alias, source topic and partition."""

_RETRY_SECONDS = 0.5
_MIRROR_SOURCE = "MirrorSourceConnector"
_HEARTBEATS_TOPIC = "heartbeats"
_EXAMPLE = "give one like http://connect:8083"

_NEXT_STEP: Mapping[int, str] = {
    httpx.codes.UNAUTHORIZED: "check the login of the Connect connection",
    httpx.codes.FORBIDDEN: "check the rights of the Connect connection's user",
    httpx.codes.NOT_FOUND: "check the connector's name, and that Connect is 3.5 or newer",
    httpx.codes.CONFLICT: "the workers are still rebalancing: try again later",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """A task of a connector."""

    id: int
    state: str
    """``RUNNING``, ``FAILED``, ``PAUSED``, ``UNASSIGNED``, ``RESTARTING``."""
    trace: str | None = None
    """The first line of its stack trace, when it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStatus:
    """A connector and its tasks."""

    name: str
    state: str
    """``RUNNING``, ``FAILED``, ``PAUSED``, ``STOPPED``, ``UNASSIGNED``, ``RESTARTING``."""
    tasks: tuple[TaskStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectClient:
    """A Kafka Connect worker and how to reach it.

    Every method raises ClusterUnreachableError when the worker did not answer, and ConnectError
    when it answered with an error. While the workers rebalance it asks again until ``timeout``.
    """

    url: str
    """Of the worker, such as ``http://connect:8083``; without the login."""
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    """Seconds until an answer must be there."""
    transport: httpx.BaseTransport | None = field(default=None, repr=False)
    """Another way to send requests, such as ``httpx.MockTransport``."""

    def __post_init__(self) -> None:
        """Refuse what cannot work before anything is asked.

        Raises:
            ConfigurationError: ``url`` is not one, or holds a login, which messages would show.
        """
        # No message shows the URL before it is known to hold no login.
        try:
            url = httpx.URL(self.url)
        except httpx.InvalidURL:
            raise ConfigurationError(f"the Connect URL is malformed; {_EXAMPLE}") from None
        if url.userinfo:
            raise ConfigurationError(
                f"the Connect URL of {url.host} holds a login; give username and password apart"
            )
        if url.scheme not in {"http", "https"} or not url.host:
            raise ConfigurationError(f"the Connect URL lacks http:// or a host; {_EXAMPLE}")

    def check(self) -> str:
        """Return the worker's version."""
        body = self._get("/", "the worker")
        if not isinstance(body, dict) or "version" not in body:
            raise ConnectError(f"{self.url} is not a Kafka Connect worker: it names no version")
        return str(body["version"])

    def connectors(self) -> tuple[str, ...]:
        """Return the names of the connectors."""
        return tuple(self._get("/connectors", "the list of connectors"))

    def status(self, name: str) -> ConnectorStatus:
        """Return the state of a connector and of its tasks."""
        body = self._get(f"/connectors/{quote(name, safe='')}/status", f"connector {name}")
        return ConnectorStatus(
            name=name,
            state=body["connector"]["state"],
            tasks=tuple(
                TaskStatus(id=task["id"], state=task["state"], trace=_first_line(task))
                for task in body["tasks"]
            ),
        )

    def offsets(self, name: str) -> CopiedOffsets:
        """Return how far a MirrorSourceConnector has committed its copying.

        The number is the offset of the LAST copied source record, not of the next: a position p
        has been copied past once it is p - 1 or more. It lags behind what is on the target by
        up to ``offset.flush.interval.ms``. Heartbeats, and entries that are not of a
        MirrorSourceConnector (``MirrorUtils.wrapPartition``), are left out.
        """
        body = self._get(f"/connectors/{quote(name, safe='')}/offsets", f"connector {name}")
        return dict(filter(None, map(_copied, body["offsets"])))

    def find_mirror_source(self, source_alias: str, target_alias: str) -> str:
        """Return the name of the MirrorSourceConnector that copies between two aliases."""
        found = {
            name: (config.get("source.cluster.alias"), config.get("target.cluster.alias", "target"))
            for name, config in self._configs().items()
            if config.get("connector.class", "").endswith(_MIRROR_SOURCE)
        }
        wanted = (source_alias, target_alias)
        names = [name for name, aliases in found.items() if aliases == wanted]
        if len(names) == 1:
            return names[0]
        listed = ", ".join(f"{name} ({a}->{b})" for name, (a, b) in sorted(found.items()))
        raise ConnectError(
            f"Connect at {self.url} has {len(names)} MirrorSourceConnectors for "
            f"{source_alias}->{target_alias} where one is needed; it has {listed or 'none'}. "
            "Check the aliases and the Connect URL"
        )

    def _configs(self) -> Mapping[str, Mapping[str, str]]:
        body = self._get("/connectors", "the list of connectors", expand="info")
        return {name: expanded["info"]["config"] for name, expanded in body.items()}

    def _get(self, path: str, about: str, **params: str) -> Any:  # noqa: ANN401 - JSON
        started = time.monotonic()
        with self._http() as http:
            while True:
                try:
                    response = http.get(path, params=params)
                except httpx.TransportError as error:
                    raise self._unreachable(time.monotonic() - started, error) from error
                left = started + self.timeout - time.monotonic()
                if response.status_code != httpx.codes.CONFLICT or left <= 0:
                    return self._body(response, about)
                time.sleep(min(_RETRY_SECONDS, left))

    def _http(self) -> httpx.Client:
        login = None if self.username is None else (self.username, self.password or "")
        return httpx.Client(
            base_url=self.url, auth=login, timeout=self.timeout, transport=self.transport
        )

    def _unreachable(self, seconds: float, error: httpx.TransportError) -> ClusterUnreachableError:
        return ClusterUnreachableError(
            f"Connect at {self.url} did not answer, tried for {seconds:.1f} s: "
            f"{str(error) or type(error).__name__}; check that the worker runs and the Connect URL"
        )

    def _body(self, response: httpx.Response, about: str) -> Any:  # noqa: ANN401 - JSON
        try:
            body = response.json()
        except ValueError as error:
            raise ConnectError(
                f"Connect at {self.url}, {about}: HTTP {response.status_code} and no JSON; check "
                "that the URL is a Connect worker's"
            ) from error
        if response.is_success:
            return body
        message = body.get("message") if isinstance(body, dict) else None
        step = _NEXT_STEP.get(response.status_code, "look into the worker's log")
        raise ConnectError(
            f"Connect at {self.url}, {about}: HTTP {response.status_code}: "
            f"{message or response.reason_phrase}; {step}"
        )


def _first_line(task: Mapping[str, str]) -> str | None:
    return task["trace"].partition("\n")[0] if task.get("trace") else None


def _copied(entry: Mapping[str, Any]) -> tuple[tuple[str, str, int], int] | None:
    match entry:
        case {
            "partition": {"cluster": str(cluster), "topic": str(topic), "partition": int(number)},
            "offset": {"offset": int(offset)},
        } if topic != _HEARTBEATS_TOPIC:
            return (cluster, topic, number), offset
    return None
