"""Reads Kafka Connect's REST API (KIP-875 for offsets), for health checks and the planner."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import quote

import httpx

from airflow_mm2_offsets.connect.exchange import Answer, ExchangeError, Server, TooLargeError
from airflow_mm2_offsets.errors import ClusterUnreachableError, ConfigurationError, ConnectError

CopiedOffsets: TypeAlias = dict[tuple[str, str, int], int]
"""The last copied source offset by source alias, source topic and partition."""

_RETRY_SECONDS = 0.5
_MESSAGE_LENGTH = 1000
"""Of a worker's error message, so much is shown."""
_MIRROR_SOURCE = "MirrorSourceConnector"
_HEARTBEATS_TOPIC = "heartbeats"
_CHECK_URL = "check that the URL is a Connect worker's"
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

    Every method raises ClusterUnreachableError when the worker did not answer whole within
    ``timeout``, and ConnectError when it answered with an error or with too much. While the workers
    rebalance, it repeats the request until ``timeout``.
    """

    url: str
    """Of the worker, such as ``http://connect:8083``; without the login."""
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    """Seconds until the last byte of an answer must be there."""
    transport: httpx.AsyncBaseTransport | None = field(default=None, repr=False)
    """Another way to send requests, such as ``httpx.MockTransport``."""

    def __post_init__(self) -> None:
        """Check the URL.

        Raises:
            ConfigurationError: It is malformed, or contains a login or a query, which messages
                would show.
        """
        # Messages must not show a URL that may hold a login.
        try:
            url = httpx.URL(self.url)
        except httpx.InvalidURL:
            raise ConfigurationError(f"the Connect URL is malformed; {_EXAMPLE}") from None
        if url.userinfo:
            raise ConfigurationError(
                f"the Connect URL of {url.host} holds a login; give username and password apart"
            )
        if url.query or url.fragment:
            raise ConfigurationError(
                f"the Connect URL of {url.host} has a query or a fragment, which may hold a token "
                f"and which Connect does not read; give the URL without it, and username and "
                f"password apart"
            )
        if url.scheme not in {"http", "https"} or not url.host:
            raise ConfigurationError(f"the Connect URL lacks http:// or a host; {_EXAMPLE}")

    def check(self) -> str:
        """Return the worker's version."""
        body = self._get("/", "the worker")
        if not isinstance(body, dict) or "version" not in body:
            raise ConnectError(f"{self.url} is not a Kafka Connect worker: it names no version")
        return str(body["version"])

    def status(self, name: str) -> ConnectorStatus:
        """Return the state of a connector and of its tasks."""
        body = self._of_connector(name, "status")
        with self._shape(f"connector {name}"):
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
        body = self._of_connector(name, "offsets")
        with self._shape(f"connector {name}"):
            return dict(filter(None, map(_copied, body["offsets"])))

    def config(self, name: str) -> Mapping[str, str]:
        """Return the settings of a connector, without defaults.

        They may hold secrets.
        """
        body = self._of_connector(name, "config")
        with self._shape(f"connector {name}"):
            return {str(key): str(value) for key, value in body.items() if value is not None}

    def mirror_sources(self) -> Mapping[str, tuple[str, str]]:
        """Return the aliases of source and target of each MirrorSourceConnector, by its name."""
        body = self._get("/connectors", "the list of connectors", expand="info")
        with self._shape("the list of connectors"):
            configs = {name: expanded["info"]["config"] for name, expanded in body.items()}
            return {
                name: (
                    str(config.get("source.cluster.alias")),
                    str(config.get("target.cluster.alias", "target")),
                )
                for name, config in configs.items()
                if config.get("connector.class", "").endswith(_MIRROR_SOURCE)
            }

    def find_mirror_source(self, source_alias: str, target_alias: str) -> str:
        """Return the name of the MirrorSourceConnector that copies between two aliases."""
        connectors = self.mirror_sources()
        pair = (source_alias, target_alias)
        names = [name for name, aliases in connectors.items() if aliases == pair]
        if len(names) == 1:
            return names[0]
        listed = ", ".join(f"{name} ({a}->{b})" for name, (a, b) in sorted(connectors.items()))
        raise ConnectError(
            f"Connect at {self.url} has {len(names)} MirrorSourceConnectors for "
            f"{source_alias}->{target_alias} where one is needed; it has {listed or 'none'}. "
            "Check the aliases and the Connect URL"
        )

    def _of_connector(self, name: str, what: str) -> Any:  # noqa: ANN401 - JSON
        return self._get(f"/connectors/{quote(name, safe='')}/{what}", f"connector {name}")

    @contextmanager
    def _shape(self, about: str) -> Iterator[None]:
        """Raise ConnectError for JSON of another form: the server is not Connect."""
        try:
            yield
        except (KeyError, TypeError, AttributeError) as error:
            raise ConnectError(
                f"Connect at {self.url}, {about}: the answer is JSON of another form than Kafka "
                f"Connect's ({type(error).__name__}); {_CHECK_URL}"
            ) from error

    def _get(self, path: str, about: str, **params: str) -> Any:  # noqa: ANN401 - JSON
        started = time.monotonic()
        login = None if self.username is None else (self.username, self.password or "")
        server = Server(url=self.url, login=login, transport=self.transport)
        left = self.timeout
        while True:
            try:
                answer = server.ask(path, params, seconds=left)
            except TooLargeError as error:
                raise ConnectError(
                    f"Connect at {self.url}, {about}: {error}; {_CHECK_URL}"
                ) from error
            except ExchangeError as error:
                raise ClusterUnreachableError(
                    f"Connect at {self.url} did not answer, tried for "
                    f"{time.monotonic() - started:.1f} s: {error}; check that the worker runs and "
                    f"the Connect URL"
                ) from error
            left = started + self.timeout - time.monotonic() - _RETRY_SECONDS
            if answer.status != httpx.codes.CONFLICT or left <= 0:
                return self._body(answer, about)
            time.sleep(_RETRY_SECONDS)

    def _body(self, answer: Answer, about: str) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON of an answer; raise if it is an error, a redirect or not JSON.

        ``about`` says for messages what was requested.
        """
        answered = f"Connect at {self.url}, {about}: HTTP {answer.status}"
        if httpx.codes.is_redirect(answer.status):
            raise ConnectError(f"{answered}, which is a redirect; give the URL that it leads to")
        try:
            body = json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise ConnectError(f"{answered} and no JSON; {_CHECK_URL}") from error
        if httpx.codes.is_success(answer.status):
            return body
        message = str((isinstance(body, dict) and body.get("message")) or answer.reason)
        next_step = _NEXT_STEP.get(answer.status, "look into the worker's log")
        raise ConnectError(f"{answered}: {message[:_MESSAGE_LENGTH]}; {next_step}")


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
