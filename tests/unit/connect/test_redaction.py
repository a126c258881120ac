"""What Connect says and has, without secrets; names of Kafka's docs, messages of its classes."""

import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

import httpx
import pytest

from airflow_mm2_offsets.connect.admin import ConnectorAdmin
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.connect.redaction import redacted, shown
from airflow_mm2_offsets.errors import ConnectError

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="mm2" password="hunter2-long";'
)
SETTINGS = {"source.cluster.sasl.jaas.config": JAAS}
Answer: TypeAlias = Callable[[httpx.Request], httpx.Response]


def connect(config: httpx.Response, other: httpx.Response) -> ConnectClient:
    """Return a client whose Connect answers a request for settings, and every other one."""

    def answer(request: httpx.Request) -> httpx.Response:
        is_settings = request.method == "GET" and request.url.path.endswith("/config")
        return config if is_settings else other

    return ConnectClient(url="http://connect:8083", transport=httpx.MockTransport(answer))


def refusal(
    message: str, *, running: Mapping[str, str] | int = 404, new: Mapping[str, str] = SETTINGS
) -> str:
    """Return the error of a PUT of settings that Connect refuses."""
    config = httpx.Response(running) if isinstance(running, int) else None
    config = config or httpx.Response(200, json=running)
    if running == httpx.codes.NOT_FOUND:
        config = httpx.Response(404, json={"error_code": 404, "message": "Connector c not found"})
    client = connect(config, httpx.Response(400, json={"error_code": 400, "message": message}))
    with pytest.raises(ConnectError) as caught:
        ConnectorAdmin(connect=client, name="c").put_config(new)
    assert caught.value.__cause__ is None
    return str(caught.value)


@pytest.mark.parametrize(
    "message",
    [
        f"Invalid value {JAAS} for configuration sasl.jaas.config: it is wrong",
        "login failed for mm2 with hunter2-long",
        "Invalid value " + JAAS.replace(" required", "   required"),
        "login failed: password = 'another one'; hunter2-long",
        "x" * 925 + JAAS,
        "x" * 985 + "hunter2-long",
    ],
)
def test_a_refusal_quotes_no_part_of_new_settings(message: str) -> None:
    """Neither the JAAS text, nor its password alone, nor a half of it where the message is cut."""
    error = refusal(message)
    assert "hunter2" not in error
    assert "another one" not in error
    assert "***" in error


def test_a_refusal_quotes_no_settings_that_are_replaced() -> None:
    """The running connector has the secret as text, the new settings have a reference."""
    new = dict.fromkeys(SETTINGS, "${file:/x:y}")
    error = refusal(f"could not stop: {JAAS} hunter2-long", running=SETTINGS, new=new)
    assert "HTTP 400: could not stop: *** ***" in error


@pytest.mark.parametrize("running", [401, 500, 200])
def test_what_may_quote_unknown_settings_is_not_shown(running: int) -> None:
    """The settings can't be read: an error, or an answer that is no JSON."""
    error = refusal("could not stop: hunter2-of-before", running=running)
    assert "HTTP 400: (not shown: the settings that it may quote can't be read); corr" in error


def test_a_resolved_reference_is_hidden() -> None:
    """Connect quotes what a config provider gave; the settings only have the reference."""
    for quoted in ("org.x.Plain required password=hunter2;", "hunter2-\nand more"):
        error = refusal(
            f"Invalid value {quoted} for configuration sasl.jaas.config: no",
            new=dict.fromkeys(SETTINGS, "${file:/x:y}"),
        )
        assert "Invalid value *** for configuration sasl.jaas.config: no" in error
    said = "Invalid value nope for configuration topics: no"
    assert redacted(said, {"topics": "nope"}) == said


def test_a_trace_is_hidden_before_its_first_line_is_taken() -> None:
    """A secret of several lines is found whole."""
    key = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----"
    task = {"id": 0, "state": "FAILED", "trace": f"ConfigException: bad {key} here\n\tat x"}
    status = httpx.Response(200, json={"connector": {"state": "RUNNING"}, "tasks": [task]})
    config = httpx.Response(200, json={"target.cluster.ssl.keystore.key": key})
    (shown_task,) = connect(config, status).status("c").tasks
    assert shown_task.trace == "ConfigException: bad *** here"


@pytest.mark.parametrize("text", ["Invalid value ", "password=", "x", '"', "a="])
def test_a_long_message_is_searched_in_time(text: str) -> None:
    """Neither a message of a megabyte nor a long setting holds up the task."""
    began = time.monotonic()
    error = refusal(text * 2**17, running={"transforms.x.text": text * 2**10})
    assert time.monotonic() - began < 10
    assert len(error) < 1500


def test_values_that_say_nothing_riddle_no_message() -> None:
    """The arguments of a transform may be any text."""
    settings = {"transforms.x.all": "true", "transforms.x.most": "10", "topics": "orders"}
    said = "true: 10 records of orders"
    assert redacted(said, settings) == said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("value.converter.basic.auth.user.info", "u:hunter2"),
        ("transforms.x.auth.header", "Bearer hunter2"),
        ("transforms.x.authorization", "Basic hunter2"),
        ("transforms.x.aws_access_key_id", "hunter2"),
        ("transforms.x.accessKey", "hunter2"),
        ("transforms.x.privateKey", "hunter2"),
        ("transforms.x.encryption.key", "hunter2"),
        ("transforms.x.pass", "hunter2"),
        ("transforms.x.topics", "hunter2"),
        ("transforms.x.connection.string", "Endpoint=sb://ns/;SharedAccessKey=hunter2"),
        ("jdbc", "jdbc:sqlserver://h;user=a;password=hunter2"),
        ("errors.webhook", "https://hooks.example.com/services/T0/hunter2"),
        ("source.cluster.SSL.KEY.password", "hunter2"),
        ("source.cluster.ssl.key.password", "${hunter2}"),
        ("source.cluster.ssl.truststore.password", "hunter2"),
        ("target.cluster.ssl.keystore.certificate.chain", "hunter2"),
        ("target.consumer.ssl.truststore.certificates", "hunter2"),
        ("producer.override.ssl.keystore.key", "hunter2"),
        ("admin.sasl.jaas.config", "hunter2"),
        ("source.cluster.sasl.oauthbearer.client.credentials.client.secret", "hunter2"),
        ("source.cluster.sasl.oauthbearer.assertion.private.key.passphrase", "hunter2"),
        ("source.cluster.sasl.oauthbearer.extensions", "auth=hunter2"),
        ("source.cluster.bootstrap.servers", "u:hunter2@h:9092"),
        ("source.cluster.sasl.oauthbearer.token.endpoint.url", "https://h/?token=hunter2"),
    ],
)
def test_what_may_be_a_secret_is_not_shown(name: str, value: str) -> None:
    """Whatever another vendor calls it; Kafka's own are those of ``ConfigDef.Type.PASSWORD``."""
    assert "hunter2" not in shown(name, value)
    assert "***" in shown(name, value)


@pytest.mark.parametrize(
    "name",
    [
        *("topics", "groups.exclude", "offset.lag.max", "tasks.max", "connector.class"),
        *("replication.policy.separator", "sync.group.offsets.enabled", "transforms"),
        *("source.cluster.bootstrap.servers", "target.cluster.security.protocol"),
        *("source.cluster.sasl.mechanism", "source.cluster.ssl.truststore.location"),
        *("source.consumer.max.poll.records", "producer.override.acks", "producer.linger.ms"),
        *("target.cluster.producer.compression.type", "consumer.override.isolation.level"),
        *("source.admin.request.timeout.ms", "key.converter", "transforms.route.type"),
        *("predicates.p.type", "topic.creation.default.replication.factor"),
    ],
)
def test_kafkas_own_settings_are_shown(name: str) -> None:
    """Names of Kafka's docs: MirrorMaker 2, Connect, and clients with each prefix."""
    assert shown(name, "a value") == "a value"


def test_a_reference_is_shown() -> None:
    """It names a place, with its config provider (KIP-297)."""
    for value in ("${file:/x:y}", "${secrets:ns/name:key}", "${env:PASSWORD}"):
        assert shown("ssl.key.password", value) == value
    assert shown("ssl.key.password", "${file:/x:y}hunter2") == "***"
    assert shown("ssl.key.password", None) is None
