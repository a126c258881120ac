"""A Kafka Connect worker and how to reach it: each request, its repetition and its errors.

``client`` and ``admin`` send their requests through it.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal
from urllib.parse import quote

import httpx

from airflow_mm2_offsets.connect.exchange import Answer, ExchangeError, Server, TooLargeError
from airflow_mm2_offsets.connect.redaction import redacted
from airflow_mm2_offsets.errors import ClusterUnreachableError, ConfigurationError, ConnectError

Method = Literal["GET", "PUT", "POST", "PATCH", "DELETE"]

_RETRY_SECONDS = 0.5
_MESSAGE_LENGTH = 1000
"""Of a worker's message or trace, so many characters are shown."""
_READ_LENGTH = 16 * 1024
"""So many are searched for secrets: more than are shown, for a secret that is cut is not found."""
_SETTINGS_SECONDS = 5.0
"""So long at most, beyond the timeout, a connector's settings are asked for before it is shown."""
_CHECK_URL = "check that the URL is a Connect worker's"
_EXAMPLE = "give one like http://connect:8083"

_EMPTY = frozenset({httpx.codes.ACCEPTED, httpx.codes.NO_CONTENT})
"""The answers without a body: to a new state, and to a deletion."""
_LOGIN_REFUSALS = frozenset({httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN})
_FINAL = _LOGIN_REFUSALS | {httpx.codes.BAD_REQUEST}
"""The refusals that stay until somebody changes the request, a login or a right."""
_NOT_SHOWN = "(not shown: the settings that it may quote can't be read)"
_NEXT_STEP: Mapping[int, str] = {
    httpx.codes.BAD_REQUEST: "correct what the message names",
    httpx.codes.UNAUTHORIZED: "check the username and the password for Connect",
    httpx.codes.FORBIDDEN: "give the user the right, or give another user for Connect",
    httpx.codes.NOT_FOUND: (
        "check the connector's name, and that Connect is new enough (its offsets are read from 3.5 "
        "on, and written from 3.6 on)"
    ),
    httpx.codes.METHOD_NOT_ALLOWED: "check that Connect is 3.6 or newer",
    httpx.codes.CONFLICT: "the workers are still rebalancing: try again later",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectWorker:
    """A Kafka Connect worker and how to reach it.

    Every method of it and of its subclasses raises ClusterUnreachableError when the worker did not
    answer whole within ``timeout``, and ConnectError when it answered with an error or with too
    much. While the workers rebalance, it repeats the request until ``timeout``: Connect has then
    not begun with it (``HerderRequestHandler``).
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

    def request(
        self,
        method: Method,
        path: str,
        about: str,
        *,
        body: object = None,
        params: dict[str, str] | None = None,
        connector: str | None = None,
    ) -> Any:  # noqa: ANN401 - JSON
        """Send a request, and return the answer's JSON; None for an answer without a body.

        Args:
            method: The HTTP method.
            path: Below the worker's URL.
            about: What is requested, for messages.
            body: Sent as JSON; None sends none.
            params: The query.
            connector: The connector that it is about: an error's message may quote its settings.
        """
        started = time.monotonic()
        server = self._server()
        left = self.timeout
        while True:
            with self._reported(about, started):
                answer = server.ask(path, params, seconds=left, method=method, body=body)
            left = started + self.timeout - time.monotonic() - _RETRY_SECONDS
            # A request without the time for an answer would hide what the last answer said.
            if answer.status != httpx.codes.CONFLICT or left < _RETRY_SECONDS:
                return self._body(answer, about, partial(self.hide, connector, sent=body))
            time.sleep(_RETRY_SECONDS)

    @contextmanager
    def _reported(self, about: str, started: float) -> Iterator[None]:
        """Raise our errors for those of an exchange that was begun at ``started``."""
        try:
            yield
        except TooLargeError as error:
            raise ConnectError(f"Connect at {self.url}, {about}: {error}; {_CHECK_URL}") from error
        except ExchangeError as error:
            raise ClusterUnreachableError(
                f"Connect at {self.url} did not answer, tried for "
                f"{time.monotonic() - started:.1f} s: {error}; check that the worker runs and the "
                f"Connect URL"
            ) from error

    def hide(self, connector: str | None, text: str, *, sent: object = None) -> str:
        """Return the beginning of a text of Connect's without a connector's secrets.

        Nothing of the text is left if the connector's settings can't be read.

        Args:
            connector: The connector that the text is about; None: of none.
            text: A message or a trace, whole.
            sent: What was sent; new settings may be quoted, too.
        """
        current = {} if connector is None else self._settings(connector)
        new = sent if isinstance(sent, Mapping) else {}
        return _NOT_SHOWN if current is None else _beginning(text, current, new)

    def _settings(self, connector: str) -> dict[str, str] | None:
        """Return a connector's settings, empty if it does not exist; None if Connect fails."""
        seconds = min(self.timeout, _SETTINGS_SECONDS)
        path = connector_path(connector, "config")
        try:
            answer = self._server().ask(path, None, seconds=seconds, method="GET", body=None)
            body = json.loads(answer.body)
        except (ExchangeError, ValueError, RecursionError):
            return None
        if answer.status == httpx.codes.NOT_FOUND:
            return {}
        if answer.status != httpx.codes.OK or not isinstance(body, dict):
            return None
        return {str(name): str(value) for name, value in body.items() if value is not None}

    def _server(self) -> Server:
        login = None if self.username is None else (self.username, self.password or "")
        return Server(url=self.url, login=login, transport=self.transport)

    @contextmanager
    def shape(self, about: str) -> Iterator[None]:
        """Raise ConnectError for JSON of another form: the server is not Connect."""
        try:
            yield
        except (KeyError, TypeError, AttributeError) as error:
            raise ConnectError(
                f"Connect at {self.url}, {about}: the answer is JSON of another form than Kafka "
                f"Connect's ({type(error).__name__}); {_CHECK_URL}"
            ) from error

    def _body(self, answer: Answer, about: str, hide: Callable[[str], str]) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON of an answer; raise if it is an error, a redirect or not JSON."""
        answered = f"Connect at {self.url}, {about}: HTTP {answer.status}"
        if httpx.codes.is_redirect(answer.status):
            raise ConnectError(f"{answered}, which is a redirect; give the URL that it leads to")
        if answer.status in _EMPTY and not answer.body:
            return None
        try:
            body = json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            # Connect's refusal of a login (``BasicAuthSecurityRestExtension``) is no JSON.
            if answer.status not in _LOGIN_REFUSALS:
                raise ConnectError(f"{answered} and no JSON; {_CHECK_URL}") from error
            body = None
        if httpx.codes.is_success(answer.status):
            return body
        message = hide(str((isinstance(body, dict) and body.get("message")) or answer.reason))
        if answer.status in _LOGIN_REFUSALS:
            user = "without a login" if self.username is None else f"as user {self.username}"
            answered = f"{answered}, asked {user}"
        next_step = _NEXT_STEP.get(answer.status, "look into the worker's log")
        refusal = ConnectError(f"{answered}: {message}; {next_step}")
        refusal.retryable = answer.status not in _FINAL
        raise refusal


def _beginning(text: str, *configs: Mapping[str, object]) -> str:
    return redacted(text[:_READ_LENGTH], *configs)[:_MESSAGE_LENGTH]


def connector_path(name: str, what: str) -> str:
    """Return the path of a connector's resource, such as ``status``."""
    return f"/connectors/{quote(name, safe='')}/{what}".removesuffix("/")
