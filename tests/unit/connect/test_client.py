"""Reading Kafka Connect's REST API: the answers are those of a Kafka 4.3.1 worker."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from airflow_mm2_offsets.connect.client import ConnectClient, ConnectorStatus, TaskStatus
from airflow_mm2_offsets.errors import ClusterUnreachableError, ConfigurationError, ConnectError

MIRROR_SOURCE = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
TRACE = "org.apache.kafka.connect.errors.ConnectException: no\n\tat org.apache.kafka.Worker.run"


def _client(answers: dict[str, Any], timeout: float = 5.0) -> ConnectClient:
    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode().removesuffix("?")
        if path in answers:
            return httpx.Response(200, json=answers[path])
        missing = {"error_code": 404, "message": f"Nothing found for {path}"}
        return httpx.Response(404, json=missing)

    return _served(answer, timeout)


def _served(
    answer: Callable[[httpx.Request], httpx.Response], timeout: float = 5.0
) -> ConnectClient:
    return ConnectClient(
        url="http://connect:8083",
        username="airflow",
        password="hunter2",  # noqa: S106 - to see that it is never shown
        timeout=timeout,
        transport=httpx.MockTransport(answer),
    )


def test_check_returns_the_version() -> None:
    """The worker's root names its version."""
    root = {"version": "4.3.1", "commit": "1ab4c1c3dd0af8a9", "kafka_cluster_id": "x5"}
    assert _client({"/": root}).check() == "4.3.1"


def test_status_keeps_the_first_line_of_a_trace() -> None:
    """A connector's state and its tasks' come back, a failed one's with its reason."""
    worker = {"worker_id": "127.0.0.1:8083", "version": "4.3.1"}
    body = {
        "name": "mirror a",
        "connector": {"state": "RUNNING", **worker},
        "tasks": [
            {"id": 0, "state": "RUNNING", **worker},
            {"id": 1, "state": "FAILED", **worker, "trace": TRACE},
        ],
        "type": "source",
    }
    assert _client({"/connectors/mirror%20a/status": body}).status("mirror a") == ConnectorStatus(
        name="mirror a",
        state="RUNNING",
        tasks=(
            TaskStatus(id=0, state="RUNNING"),
            TaskStatus(id=1, state="FAILED", trace=TRACE.partition("\n")[0]),
        ),
    )


def test_offsets_are_those_of_topics() -> None:
    """Heartbeats, entries of another form and reset offsets are left out."""

    def entry(partition: object, offset: object) -> dict[str, object]:
        return {"partition": partition, "offset": offset}

    body = {
        "offsets": [
            entry({"cluster": "source", "partition": 0, "topic": "orders"}, {"offset": 999}),
            entry({"cluster": "source", "partition": 1, "topic": "orders"}, {"offset": 0}),
            entry({"cluster": "source", "partition": 0, "topic": "heartbeats"}, {"offset": 7}),
            entry({"cluster": "source", "partition": 2, "topic": "orders"}, None),
            entry({"sourceClusterAlias": "a", "targetClusterAlias": "b"}, {"offset": 0}),
            entry({"filename": "/tmp/x"}, {"position": 5}),  # noqa: S108 - FileStreamSource
        ]
    }
    assert _client({"/connectors/mirror/offsets": body}).offsets("mirror") == {
        ("source", "orders", 0): 999,
        ("source", "orders", 1): 0,
    }


def _expanded(**configs: dict[str, str]) -> dict[str, object]:
    return {
        "/connectors?expand=info": {
            name: {"info": {"name": name, "config": config, "tasks": [], "type": "source"}}
            for name, config in configs.items()
        }
    }


def _mirror(source: str, target: str, kind: str = MIRROR_SOURCE) -> dict[str, str]:
    return {
        "connector.class": kind,
        "source.cluster.alias": source,
        "target.cluster.alias": target,
        "source.cluster.sasl.jaas.config": "hunter2",
    }


def test_the_mirror_of_two_aliases_is_found() -> None:
    """Class and aliases decide, not the name; the short class name counts too."""
    configs = _expanded(
        checkpoint=_mirror("a", "b", MIRROR_SOURCE.replace("Source", "Checkpoint")),
        back=_mirror("b", "a"),
        forth=_mirror("a", "b", "MirrorSourceConnector"),
    )
    assert [*_client(configs).find_mirror_sources("a", "b")] == ["forth"]


def test_a_mirror_whose_aliases_can_not_be_read_counts_beside_others() -> None:
    """A config provider holds them (KIP-297); the alias that is told must be the pair's."""
    configs = _expanded(
        told=_mirror("a", "b"),
        hidden=_mirror("${env:SOURCE}", "${env:TARGET}"),
        half=_mirror("${env:SOURCE}", "b"),
        back=_mirror("b", "${env:TARGET}"),
    )
    assert {*_client(configs).find_mirror_sources("a", "b")} == {"told", "hidden", "half"}


def test_an_absent_target_alias_is_the_default() -> None:
    """MM2 calls the target "target" when nothing else is said (MirrorConnectorConfig)."""
    config = {"connector.class": MIRROR_SOURCE, "source.cluster.alias": "a"}
    assert [*_client(_expanded(mm=config)).find_mirror_sources("a", "target")] == ["mm"]


@pytest.mark.parametrize(
    ("configs", "said"),
    [
        ({}, r"has no MirrorSourceConnector for a->b; it has none"),
        ({"back": _mirror("b", "a")}, r"has no .* it has back \(b->a\)"),
    ],
)
def test_no_mirror_is_an_error(configs: dict[str, dict[str, str]], said: str) -> None:
    """The error lists the connectors that exist, without the rest of their configuration."""
    with pytest.raises(ConnectError, match=said) as caught:
        _client(_expanded(**configs)).find_mirror_sources("a", "b")
    assert "hunter2" not in str(caught.value)


def test_an_error_names_connector_status_and_message() -> None:
    """The error contains Connect's message and the next step."""
    with pytest.raises(
        ConnectError,
        match=r"http://connect:8083, connector nope: HTTP 404: Nothing found for .*; check the con",
    ):
        _client({}).status("nope")


@pytest.mark.parametrize("status", [401, 403, 500])
def test_an_error_without_json_is_one_too(status: int) -> None:
    """A proxy's answer is an error with its status, and never shows the password."""
    client = _served(lambda _: httpx.Response(status, text="<html>no</html>"))
    with pytest.raises(ConnectError, match=f"HTTP {status}") as caught:
        client.mirror_sources()
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "username", "words"),
    [
        (
            401,
            "airflow",
            "HTTP 401, asked as user airflow: .*; check the username and the password",
        ),
        (401, None, "HTTP 401, asked without a login: .*; check the username and the password"),
        (403, "airflow", "HTTP 403, asked as user airflow: .*; give the user the right, or "),
    ],
)
@pytest.mark.parametrize("text", ["User cannot access the resource.", '{"message": "no"}', ""])
def test_a_refused_login_names_host_and_user(
    status: int, username: str | None, words: str, text: str
) -> None:
    """Connect's own refusal is a line of text; that of a proxy may be JSON, or nothing."""
    client = replace(_served(lambda _: httpx.Response(status, text=text)), username=username)
    with pytest.raises(ConnectError, match=words) as caught:
        client.check()
    assert "Connect at http://connect:8083, the worker: " in str(caught.value)
    assert "hunter2" not in f"{caught.value} {caught.value!r}"


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (401, False), (403, False), (404, True), (500, True)],
)
def test_a_refused_request_or_login_is_final(status: int, *, retryable: bool) -> None:
    """A wait ends with it, and Airflow does not retry it: somebody has to correct it first."""
    client = _served(lambda _: httpx.Response(status, json={"message": "no"}))
    with pytest.raises(ConnectError) as caught:
        client.status("mirror")
    assert caught.value.retryable is retryable


def test_another_server_is_not_taken_for_connect() -> None:
    """A server that is not a Connect worker is reported as such."""
    with pytest.raises(ConnectError, match="is not a Kafka Connect worker"):
        _client({"/": {"hello": "world"}}).check()


def test_a_rebalance_is_waited_for() -> None:
    """409 means that the workers rebalance: the request is sent again."""
    answers = iter([409, 200])

    def answer(_: httpx.Request) -> httpx.Response:
        status = next(answers)
        body = json.dumps(
            {"version": "4"} if status == 200 else {"message": "rebalance is expected"}
        )
        return httpx.Response(status, text=body)

    assert _served(answer).check() == "4"


def test_a_rebalance_that_does_not_end_is_an_error() -> None:
    """After the timeout the error contains Connect's message."""
    body = {"error_code": 409, "message": "a rebalance is in process"}
    client = _served(lambda _: httpx.Response(409, json=body), timeout=0.2)
    with pytest.raises(ConnectError, match=r"HTTP 409: a rebalance is in process; .* try again"):
        client.mirror_sources()


def test_the_login_is_sent() -> None:
    """Basic authentication carries the login."""
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return httpx.Response(200, json={})

    _served(answer).mirror_sources()
    assert seen == [httpx.BasicAuth("airflow", "hunter2")._auth_header]  # noqa: SLF001


def test_a_silent_worker_is_given_up() -> None:
    """A time-out without a message is named by its class."""

    def answer(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("")

    with pytest.raises(ClusterUnreachableError, match=r"s: ReadTimeout; check"):
        _served(answer).check()


def test_the_repr_holds_no_login() -> None:
    """A client can be logged."""
    assert "hunter2" not in repr(_client({}))
    assert "airflow" not in repr(_client({}))


@pytest.mark.parametrize("url", ["http://airflow:hunter2", "airflow:hunter2@connect:8083"])
def test_a_malformed_url_does_not_show_its_login(url: str) -> None:
    """A malformed URL may hold a password: the error does not show the URL."""
    with pytest.raises(ConfigurationError, match="URL") as caught:
        ConnectClient(url=url)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("url", ["connect:8083", "", "ftp://connect", "http://", "http://x:y"])
def test_a_malformed_url_is_refused(url: str) -> None:
    """A malformed address is a configuration error before anything is sent."""
    with pytest.raises(ConfigurationError, match="URL"):
        ConnectClient(url=url)


def test_a_login_in_the_url_is_refused_unseen() -> None:
    """A URL appears in messages, so it must not hold the password; nor does this error."""
    with pytest.raises(ConfigurationError, match="holds a login") as caught:
        ConnectClient(url="http://airflow:hunter2@connect:8083")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("answer", [5, [], {}, {"offsets": 5}, {"connector": []}, {"a": {}}])
def test_json_of_another_form_is_one_clear_error(answer: object) -> None:
    """A gateway's JSON with status 200 is not mistaken for Connect's."""
    client = _served(lambda _: httpx.Response(200, json=answer))
    asked = [client.status, client.offsets]
    for ask in asked:
        with pytest.raises(ConnectError, match="connector mirror: the answer is JSON of another"):
            ask("mirror")


def test_the_configuration_of_a_connector() -> None:
    """The settings come back; one that is null is left out."""
    config = {"name": "mirror", "replication.policy.separator": "_", "topics": None}
    client = _client({"/connectors/mirror/config": config})
    assert client.config("mirror") == {"name": "mirror", "replication.policy.separator": "_"}


@pytest.mark.parametrize(
    "url", ["http://connect:8083?token=hunter2", "http://connect:8083#hunter2"]
)
def test_a_url_with_a_token_is_refused(url: str) -> None:
    """Messages show the URL, and Connect reads neither query nor fragment."""
    with pytest.raises(ConfigurationError, match="of connect has a query or a fragment") as caught:
        ConnectClient(url=url)
    assert "hunter2" not in str(caught.value)
