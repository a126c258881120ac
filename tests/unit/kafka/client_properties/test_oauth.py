"""OAuth client credentials, in Kafka's words and in Strimzi's."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.client_properties import to_librdkafka
from tests.unit.kafka.client_properties.material import (
    NEEDS_ENDPOINT_CA,
    OAUTH,
    SECRET,
    SERVERS,
    material,
)

URL = "https://login.invalid/token"
KAFKA_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
OLD_HANDLER = KAFKA_HANDLER.replace("oauthbearer.O", "oauthbearer.secured.O")
STRIMZI_HANDLER = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
JAVA = SERVERS | {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
OIDC = JAVA | {
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": SECRET,
    "sasl.oauthbearer.token.endpoint.url": URL,
}
CREDENTIALS = f"clientId=me clientSecret='{SECRET}'"
STRIMZI = f"oauth.client.id=me oauth.client.secret='{SECRET}' oauth.token.endpoint.uri='{URL}'"


def _kafka(options: str = CREDENTIALS, handler: str = KAFKA_HANDLER) -> dict[str, str]:
    return JAVA | {
        "sasl.jaas.config": f"{OAUTH} required {options};",
        "sasl.login.callback.handler.class": handler,
        "sasl.oauthbearer.token.endpoint.url": URL,
    }


def _strimzi(options: str) -> dict[str, str]:
    return JAVA | {
        "sasl.jaas.config": f"{OAUTH} required {options};",
        "sasl.login.callback.handler.class": STRIMZI_HANDLER,
    }


@pytest.mark.parametrize(
    "java",
    [
        _kafka(),
        _kafka(handler=OLD_HANDLER),
        _strimzi(STRIMZI),
        # KIP-1139: without JAAS options, from Kafka 4.1 on.
        JAVA
        | {
            "sasl.login.callback.handler.class": KAFKA_HANDLER,
            "sasl.oauthbearer.client.credentials.client.id": "me",
            "sasl.oauthbearer.client.credentials.client.secret": SECRET,
            "sasl.oauthbearer.token.endpoint.url": URL,
        },
    ],
)
def test_client_credentials(java: dict[str, str]) -> None:
    """Each way to say it becomes librdkafka's method oidc."""
    assert to_librdkafka("source", java) == OIDC


@pytest.mark.parametrize(
    ("java", "added"),
    [
        (
            _kafka(f"{CREDENTIALS} scope='a b&c' extension_cluster=lkc extension_pool=p"),
            {
                # librdkafka puts it into the form as it is.
                "sasl.oauthbearer.scope": "a%20b%26c",
                "sasl.oauthbearer.extensions": "cluster=lkc,pool=p",
            },
        ),
        (
            _strimzi(f"{STRIMZI} oauth.scope='https://x/.default' oauth.access.token.is.jwt=true"),
            {"sasl.oauthbearer.scope": "https://x/.default"},
        ),
        (
            _kafka() | {"sasl.oauthbearer.header.urlencode": "true"},
            {"sasl.oauthbearer.client.secret": SECRET},
        ),
        (
            _kafka(f"clientId='m/e' clientSecret='{SECRET}+'")
            | {"sasl.oauthbearer.header.urlencode": "true"},
            {
                "sasl.oauthbearer.client.id": "m%2Fe",
                "sasl.oauthbearer.client.secret": f"{SECRET}%2B",
            },
        ),
    ],
)
def test_what_may_stand_beside_them(java: dict[str, str], added: dict[str, str]) -> None:
    """Scope, extensions and the header's encoding (KIP-768, KIP-1025) are kept."""
    assert to_librdkafka("source", java) == OIDC | added


@NEEDS_ENDPOINT_CA
def test_the_endpoints_certificates(tmp_path: Path) -> None:
    """Both have options for the token endpoint's CA: a PEM text, a PEM file, a PKCS#12 file."""
    pem = material().cert_pem
    text = pem.replace("\n", " ")
    config = to_librdkafka("source", _kafka(f"{CREDENTIALS} ssl.truststore.certificates='{text}'"))
    assert config["https.ca.pem"] == pem
    path = tmp_path / "ca.p12"
    path.write_bytes(material().truststore(SECRET))
    options = f"oauth.ssl.truststore.location='{path}' oauth.ssl.truststore.password='{SECRET}'"
    config = to_librdkafka("source", _strimzi(f"{STRIMZI} {options}"))
    assert config["https.ca.pem"] == pem
    path.write_text(pem)
    config = to_librdkafka("source", _strimzi(f"{STRIMZI} {options}"))
    assert config["https.ca.location"] == str(path)


@pytest.mark.parametrize(
    ("java", "message"),
    [
        (_kafka("clientId=me"), r"lacks clientSecret \(Strimzi"),
        (_kafka(""), "lacks clientId .* and clientSecret"),
        (_strimzi("oauth.client.id=me"), "lacks sasl.oauthbearer.token.endpoint.url"),
        (_strimzi(f"{STRIMZI} oauth.audience=x"), "has oauth.audience, which librdkafka"),
        (_strimzi(f"oauth.access.token='{SECRET}'"), "has oauth.access.token, which"),
        (
            _strimzi(f"{STRIMZI} oauth.ssl.endpoint.identification.algorithm=''"),
            "has oauth.ssl.endpoint.identification.algorithm",
        ),
        (
            _kafka() | {"sasl.oauthbearer.token.endpoint.url": "file:///run/token"},
            "names a file, .*oauth_cb",
        ),
        (
            _kafka() | {"sasl.oauthbearer.jwt.retriever.class": "org.x.FileJwtRetriever"},
            "FileJwtRetriever, a Java class",
        ),
        (
            _kafka(f"{CREDENTIALS} ssl.truststore.certificates='{SECRET}'"),
            "ssl.truststore.certificates: is not a whole PEM",
        ),
        (_kafka("unsecuredLoginStringClaim_sub=me"), "lacks clientId"),
    ],
)
def test_what_librdkafka_can_not_do(java: dict[str, str], message: str) -> None:
    """The one error says what is missing or what to give instead, without a secret."""
    with pytest.raises(ConfigurationError, match=message) as raised:
        to_librdkafka("source", java)
    assert SECRET not in str(raised.value)


def test_a_callback_of_ones_own_is_kept() -> None:
    """Where Airflow's connection has an oauth_cb, the JAAS text needs no credentials."""
    java = _kafka("") | {"oauth_cb": "my.module.token"}
    del java["sasl.oauthbearer.token.endpoint.url"]
    assert to_librdkafka("source", java) == JAVA | {"oauth_cb": "my.module.token"}


def test_googles_handler_is_airflows_to_replace() -> None:
    """Airflow's Kafka hook adds the token of Google's brokers; nothing is missing before that."""
    servers = {"bootstrap.servers": "bootstrap.c.europe-west1.managedkafka.p.cloud.goog:9092"}
    handler = "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler"
    java = _kafka("", handler) | servers
    del java["sasl.oauthbearer.token.endpoint.url"]
    assert to_librdkafka("source", java) == JAVA | servers
