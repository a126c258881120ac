"""Secrets of a configuration never show in what librdkafka says."""

from base64 import b64encode

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.redaction import Redactor, secrets_of
from airflow_mm2_offsets.kafka.session import ClientSession
from tests.unit.kafka.client_properties.material import SECRET, SERVERS, material


@pytest.mark.parametrize(
    "name",
    [
        *("sasl.password", "ssl.key.password", "ssl.keystore.password", "sasl.jaas.config"),
        *("sasl.oauthbearer.client.secret", "sasl.oauthbearer.config", "ssl.key.pem"),
        *("sasl.oauthbearer.client.credentials.client.secret", "ssl.truststore.password"),
        *("sasl.oauthbearer.assertion.private.key.passphrase", "basic.auth.user.info"),
        *("sasl.oauthbearer.assertion.private.key.pem", "ssl.keystore.key"),
    ],
)
def test_each_secret_property_is_hidden(name: str) -> None:
    """These are Kafka's PASSWORD types, librdkafka's sensitive ones, and the registry's login."""
    assert Redactor({name: SECRET}).hide(f"a {SECRET}, b={SECRET};") == "a ***, b=***;"


def test_what_is_no_secret_stays() -> None:
    """Addresses, users and certificates are needed in messages."""
    properties = SERVERS | {"sasl.username": "ann", "ssl.ca.pem": "public", "oauth_cb": print}
    assert Redactor(properties).hide("broker.invalid:9092 ann public") == (
        "broker.invalid:9092 ann public"
    )
    assert not secrets_of(properties)


def test_a_key_is_hidden_line_by_line() -> None:
    """A log breaks a text into lines; each of them is a part of the key."""
    key = material().key_pem
    hide = Redactor({"ssl.key.pem": key}).hide
    assert all(hide(line) == "***" for line in key.splitlines()[1:-1])
    assert hide(key) == "***"


def test_the_forms_that_are_sent_are_hidden() -> None:
    """OAuth sends the secret percent-encoded, or with the client's id in base64."""
    properties = {
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "a+b/c d",
    }
    basic = b64encode(b"me:a+b/c d").decode()
    hide = Redactor(properties).hide
    assert hide(f"secret=a%2Bb%2Fc%20d Basic {basic}") == "secret=*** Basic ***"


def test_a_short_secret_is_hidden_as_a_word() -> None:
    """Every text would be riddled with stars otherwise."""
    assert Redactor({"sasl.password": "a"}).hide("a bad password 'a'") == "*** bad password '***'"


def test_one_secret_within_another() -> None:
    """The longer one is hidden whole."""
    properties = {"sasl.password": "hunter2", "ssl.key.password": "hunter2-and-more"}
    assert Redactor(properties).hide("hunter2-and-more") == "***"
    assert "hunter2" not in repr(Redactor(properties))


def test_an_error_of_librdkafkas_shows_no_secret() -> None:
    """A refused value is quoted by librdkafka; neither the error nor its cause does."""
    config = SERVERS | {"security.protocol": SECRET, "sasl.password": SECRET}
    with pytest.raises(ConfigurationError, match=r"source: .*\*\*\*.*; correct") as raised:
        ClientSession("source", 1, config, AdminClient)
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_a_text_in_the_place_of_a_callback_is_refused() -> None:
    """Airflow imports callbacks; a settings file's text can't be one."""
    config = SERVERS | {"group.id": "g", "oauth_cb": "os.system"}
    with pytest.raises(
        ConfigurationError, match=r"source: .*oauth_cb .*only Airflow's connections"
    ):
        ClientSession("source", 1, config, Consumer)
