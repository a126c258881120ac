"""The whole translation: names, values, TLS, and one error for all that is wrong."""

import logging

import pytest

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.client_properties import to_librdkafka
from stack.certificates import Authority
from tests.unit.kafka.client_properties.material import PLAIN, SECRET, SERVERS


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        ({"fetch.max.wait.ms": "100"}, {"fetch.wait.max.ms": "100"}),
        ({"request.timeout.ms": "30000"}, {"socket.timeout.ms": "30000"}),
        ({"request.timeout.ms": "600000"}, {"socket.timeout.ms": "300000"}),
        ({"socket.timeout.ms": 10, "request.timeout.ms": 20}, {"socket.timeout.ms": "10"}),
        ({"request.timeout.ms": 20, "socket.timeout.ms": 10}, {"socket.timeout.ms": "10"}),
        ({"send.buffer.bytes": "-1"}, {"socket.send.buffer.bytes": "0"}),
        ({"receive.buffer.bytes": -1}, {"socket.receive.buffer.bytes": "0"}),
        ({"connections.max.idle.ms": "-1"}, {"connections.max.idle.ms": "0"}),
        ({"metadata.max.age.ms": str(2**63 - 1)}, {"metadata.max.age.ms": "86400000"}),
        ({"retry.backoff.ms": "0"}, {"retry.backoff.ms": "1"}),
        ({"client.dns.lookup": "default"}, {"client.dns.lookup": "use_all_dns_ips"}),
        ({"security.protocol": " SSL "}, {"security.protocol": "SSL"}),
        ({"client.id": "x"}, {"client.id": "x"}),
        ({"bootstrap.servers": "a:1, b:2 ,"}, {"bootstrap.servers": "a:1,b:2"}),
        (
            {"sasl.username": "u", "sasl.password": " p "},
            {"sasl.username": "u", "sasl.password": " p "},
        ),
        (
            {"enable.ssl.certificate.verification": True},
            {"enable.ssl.certificate.verification": True},
        ),
        # Java's empty text switches the check of host names off; the default of both is https.
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
        (
            {"ssl.endpoint.identification.algorithm": "HTTPS"},
            {"ssl.endpoint.identification.algorithm": "https"},
        ),
        ({"ssl.protocol": "TLSv1.3", "ssl.enabled.protocols": "TLSv1.2,TLSv1.3"}, {}),
        ({"ssl.enabled.protocols": "TLSv1.2"}, {}),
        (
            {
                "ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "
                "TLS_RSA_WITH_AES_128_CBC_SHA"
            },
            {"ssl.cipher.suites": "ECDHE-ECDSA-AES256-GCM-SHA384:AES128-SHA"},
        ),
        (
            {"ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"},
            {"ssl.cipher.suites": "ECDHE-RSA-CHACHA20-POLY1305"},
        ),
        (
            {"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_128_CBC_SHA"},
            {"ssl.cipher.suites": "AES128-SHA"},
        ),
        (
            {"ssl.cipher.suites": "ECDHE-RSA-AES128-SHA"},
            {"ssl.cipher.suites": "ECDHE-RSA-AES128-SHA"},
        ),
        ({"ssl.truststore.location": "", "ssl.keystore.location": "", "ssl.key.pem": ""}, {}),
    ],
)
def test_names_and_values(java: dict[str, object], librdkafka: dict[str, object]) -> None:
    """What means the same gets librdkafka's name and a value in its range; its own name wins."""
    assert to_librdkafka("source", java) == librdkafka


@pytest.mark.parametrize("off", ["0", 0, "f", "F", "false", False])
def test_a_check_that_is_switched_off_has_one_spelling(off: object) -> None:
    """All are taken by librdkafka: the doctor and ``check-connection`` must see each."""
    name = "enable.ssl.certificate.verification"
    assert str(to_librdkafka("source", SERVERS | {name: off})[name]).lower() == "false"


IGNORED = {
    "acks": "all",
    "auto.offset.reset": "none",
    "basic.auth.user.info": f"u:{SECRET}",
    "default.api.timeout.ms": "60000",
    "group.id": "mine",
    "interceptor.classes": "com.acme.X",
    "isolation.level": "read_uncommitted",
    "key.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
    "key.deserializer.encoding": "UTF8",
    "metric.reporters": "com.acme.Y",
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor",
    "schema.registry.url": "https://registry.invalid",
    "ssl.provider": "SunJSSE",
    "value.serializer": "com.acme.Z",
}


def test_what_has_no_effect_is_ignored_with_a_word(caplog: pytest.LogCaptureFixture) -> None:
    """The names are logged once in a process's life, whatever is read how often; no values."""
    caplog.set_level(logging.INFO)
    for _ in range(3):
        assert to_librdkafka("ignored once", SERVERS | IGNORED) == SERVERS
    lines = [line for line in caplog.messages if "ignored once" in line]
    assert len(lines) == 1
    assert all(name in lines[0] for name in IGNORED)
    assert SECRET not in lines[0]


@pytest.mark.parametrize(
    ("java", "message"),
    [
        ({"ssl.engine.factory.class": "x.Y"}, "ssl.engine.factory.class: .*give the certificates"),
        ({"sasl.login.class": "x.Y"}, "can't run a Java class: give sasl.jaas.config"),
        ({"security.providers": "x.Y"}, "ssl.providers"),
        ({"bootstrap.controllers": "x:1"}, "give bootstrap.servers"),
        ({"ssl.enabled.protocols": "TLSv1.3"}, "is TLSv1.3, which can't be enforced; remove it"),
        ({"ssl.enabled.protocols": "TLSv1,TLSv1.1"}, "TLSv1,TLSv1.1, which is too old"),
        ({"ssl.cipher.suites": "TLS_PSK_WITH_X"}, "TLS_PSK_WITH_X; give OpenSSL's names"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "has suites of TLS 1.3 alone, which"),
        ({"metadata.broker.list": "x:1"}, "metadata.broker.list: .*another name of bootstrap"),
        (
            {"bootstrap.servers": f"u:{SECRET}@a:1"},
            "bootstrap.servers: contains a login; give host",
        ),
        ({"security.protcol": "SSL"}, "security.protcol: .*neither .*; did you mean security.pro"),
        ({"ssl.truststore.lokation": "x"}, "did you mean ssl.truststore.location"),
        (
            {"sasl.password": "${env:KPW}"},
            r"sasl.password: holds a reference, \$\{env:...\}, that nothing resolves here; give",
        ),
        ({"gibberish": "x"}, "gibberish: .*; remove it"),
        ({"security.protocol": "TLS"}, "security.protocol: is 'TLS', which librdkafka refuses"),
        ({"socket.timeout.ms": "soon"}, "socket.timeout.ms: is 'soon', which"),
        ({"security.protocol": f"{SECRET} {SECRET}"}, r"has a value .* \(29 characters\); give"),
        ({"ssl.key.pem": SECRET}, "ssl.key.pem: is not a whole PEM text"),
    ],
)
def test_a_wrong_property_is_named_with_the_next_step(
    java: dict[str, object], message: str
) -> None:
    """Before any client is made, the error names cluster, property and what to give."""
    with pytest.raises(ConfigurationError, match=f"^source: .*{message}") as raised:
        to_librdkafka("source", SERVERS | java)
    assert raised.value.fields["setting"] == next(iter(java))
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("protocol", ["SSL", "sasl_ssl"])
@pytest.mark.parametrize(
    "name",
    ["ssl.truststore.location", "ssl.truststore.certificates", "ssl.ca.location", "ssl.ca.pem"],
)
def test_empty_ca_certificates_are_not_those_of_the_system(protocol: str, name: str) -> None:
    """A variable or secret that was not filled in; Java refuses it, and librdkafka trusts all CAs.

    Another property may say which CA is trusted, and without TLS none is.
    """
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": SECRET}
    wanted = SERVERS | login | {"security.protocol": protocol, name: ""}
    with pytest.raises(ConfigurationError, match=r"is empty, so any CA of this system would"):
        to_librdkafka("source", wanted)
    other = "ssl.ca.location" if name == "ssl.ca.pem" else "ssl.ca.pem"
    trusted = {other: Authority("ca").pem if other == "ssl.ca.pem" else "/ca.pem"}
    assert to_librdkafka("source", wanted | trusted)[other] == trusted[other]
    assert to_librdkafka("source", wanted | {"security.protocol": "SASL_PLAINTEXT"})


def test_all_wrong_properties_come_at_once() -> None:
    """One error lists them, each with its step; one that could be translated hides none."""
    java = {
        "securty.protocol": "SSL",
        "ssl.engine.factory.class": "x.Y",
        "sasl.jaas.config": f"{PLAIN} required username={SECRET};",
        "socket.timeout.ms": "soon",
        "ssl.truststore.location": "/nowhere",
        "client.id": "fine",
    }
    with pytest.raises(ConfigurationError) as raised:
        to_librdkafka("source", java)
    text = str(raised.value)
    assert text.startswith("source: 5 settings are wrong: ")
    assert all(f"{name}: " in text for name in java if name != "client.id")
    assert SECRET not in text
    assert "setting" not in raised.value.fields


@pytest.mark.parametrize(
    "line",
    [
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7",
        "q7xk+1Zt/8aaQ",
        "-----END PRIVATE KEY-----",
        "a" * 24,
    ],
)
def test_a_line_of_a_key_is_not_shown_as_a_name(line: str) -> None:
    """A PEM pasted without continuations makes properties of its lines; none is quoted."""
    with pytest.raises(ConfigurationError, match="looks like a line of a key") as raised:
        to_librdkafka("source", SERVERS | {line: ""})
    assert line not in str(raised.value)
    assert line not in str(raised.value.fields)


@pytest.mark.parametrize("value", [{"a": SECRET}, [SECRET], None])
def test_a_value_that_no_client_takes(value: object) -> None:
    """An extra is JSON, which has more than texts; the value is not shown."""
    with pytest.raises(ConfigurationError, match=r"^source: sasl\.password is a ") as raised:
        to_librdkafka("source", {"sasl.password": value})
    assert SECRET not in str(raised.value)


def test_what_was_given_stays_as_it_is() -> None:
    """The caller's properties are not modified."""
    java = SERVERS | {"sasl.jaas.config": f"{PLAIN} required username=u password=p;"}
    given = dict(java)
    to_librdkafka("source", java)
    assert java == given


def test_what_an_older_librdkafka_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What only tunes is left out; what a login needs is refused, with the remedy."""

    def older(asked: dict[str, object]) -> str | None:
        newer = asked.keys() & {"metadata.recovery.strategy", "https.ca.pem", "https.ca.location"}
        return f'No such configuration property: "{newer.pop()}"' if newer else None

    monkeypatch.setattr("airflow_mm2_offsets.kafka.client_properties.acceptance._refusal", older)
    assert to_librdkafka("source", SERVERS | {"metadata.recovery.strategy": "none"}) == SERVERS
    with pytest.raises(ConfigurationError, match=r"https\.ca\.location: needs a newer confluent-"):
        to_librdkafka("source", SERVERS | {"https.ca.location": "/ca"})
