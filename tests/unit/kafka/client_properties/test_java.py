"""From librdkafka's properties to Java's, for the consumers of a Spark job."""

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.client_properties import (
    format_properties,
    kerberos,
    to_java,
    to_librdkafka,
)
from airflow_mm2_offsets.kafka.client_properties.msk_iam import MskIamToken
from tests.unit.kafka.client_properties.material import (
    IAM,
    KRB5,
    NEEDS_ENDPOINT_CA,
    OAUTH,
    PLAIN,
    SCRAM,
    SECRET,
    SERVERS,
    material,
)

SASL = SERVERS | {"security.protocol": "SASL_SSL"}
OIDC = SASL | {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": SECRET,
    "sasl.oauthbearer.token.endpoint.url": "https://login.invalid/token",
}
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


def test_a_cluster_without_a_login() -> None:
    """Properties that do not decide about address, login or TLS are left out."""
    config = SERVERS | {"group.id": "g", "socket.timeout.ms": 10, "security.protocol": "plaintext"}
    assert to_java("source", config) == SERVERS | {"security.protocol": "PLAINTEXT"}


@pytest.mark.parametrize(("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-512", SCRAM)])
def test_a_login_by_password(mechanism: str, module: str) -> None:
    """User and password become a JAAS text, quoted as Java reads it."""
    config = SERVERS | {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": mechanism,
        "sasl.username": "ann",
        "sasl.password": 'a"b\\c',
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert to_java("source", config) == SASL | {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="ann" password="a\\"b\\\\c";',
        "ssl.endpoint.identification.algorithm": "",
    }


@given(user=st.text(min_size=1), password=st.text(min_size=1))
def test_a_login_by_password_survives_both_ways(user: str, password: str) -> None:
    """Whatever characters a password has, Java's properties give the same login back."""
    config = SASL | {
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.pem": material().cert_pem,
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.cipher.suites": "ECDHE-RSA-AES128-GCM-SHA256:AES256-SHA:DHE-RSA-CHACHA20-POLY1305",
    }
    assert to_librdkafka("source", to_java("source", config)) == config


@pytest.mark.parametrize(
    ("config", "jaas"),
    [
        (
            {"sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "me@X"},
            f'{KRB5} required useKeyTab="true" storeKey="true" keyTab="/k" principal="me@X";',
        ),
        (
            {"sasl.kerberos.min.time.before.relogin": "0"},
            f'{KRB5} required useTicketCache="true";',
        ),
    ],
)
def test_kerberos(monkeypatch: pytest.MonkeyPatch, config: dict[str, str], jaas: str) -> None:
    """A keytab is named, not sent; without one Java takes the ticket of the cache. And back."""
    monkeypatch.setattr(kerberos, "has_gssapi", lambda: True)
    config |= SASL | {"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka-east"}
    java = to_java("source", config)
    assert java == SASL | {
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka-east",
        "sasl.jaas.config": jaas,
    }
    assert to_librdkafka("source", java) == config


@NEEDS_ENDPOINT_CA
def test_oauth() -> None:
    """Client credentials become Kafka's own handler's; and back."""
    config = OIDC | {
        "sasl.oauthbearer.scope": "a%20b",
        "sasl.oauthbearer.extensions": "cluster=lkc",
        "https.ca.pem": material().cert_pem,
    }
    java = to_java("source", config)
    assert java["sasl.login.callback.handler.class"] == HANDLER
    assert java["sasl.oauthbearer.token.endpoint.url"] == "https://login.invalid/token"
    jaas = java["sasl.jaas.config"]
    assert jaas.startswith(
        f'{OAUTH} required clientId="me" clientSecret="{SECRET}" scope="a b" '
        'extension_cluster="lkc" ssl.truststore.type="PEM" ssl.truststore.certificates="-----BEGIN'
    )
    assert to_librdkafka("source", java) == config


@pytest.mark.parametrize(
    ("callback", "options"),
    [
        (MskIamToken(region="r"), ""),
        (MskIamToken(region="r", profile="dev"), ' awsProfileName="dev"'),
        (
            MskIamToken(region="r", role_arn="a", session_name="s"),
            ' awsRoleArn="a" awsRoleSessionName="s"',
        ),
    ],
)
def test_amazons_iam(callback: MskIamToken, options: str) -> None:
    """Our callback becomes Amazon's login module, with the same credentials."""
    config = SASL | {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": callback}
    assert to_java("source", config) == SASL | {
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.client.callback.handler.class": (
            "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
        ),
        "sasl.jaas.config": f"{IAM} required{options};",
    }


def test_the_callback_of_airflows_hook_is_amazons_too() -> None:
    """Airflow's Kafka hook makes one of its own for brokers of Amazon MSK."""
    hooks = pytest.importorskip("airflow.providers.apache.kafka.hooks.base")
    if not hasattr(hooks, "_msk_iam_oauth_cb"):
        pytest.skip("before 1.15 the Kafka provider knows no Amazon MSK")
    callback = partial(hooks._msk_iam_oauth_cb, "eu-west-1")  # noqa: SLF001 - what the hook binds
    config = SASL | {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": callback}
    assert to_java("source", config)["sasl.mechanism"] == "AWS_MSK_IAM"


@pytest.mark.parametrize("password", [None, SECRET])
def test_keys_and_certificates_are_read(tmp_path: Path, password: str | None) -> None:
    """PEM files come along as text, the key as Java reads it: executors do not have the files."""
    made = material()
    key = made.encrypted_key_pem(password) if password else made.traditional_key_pem
    texts = {"ca": made.cert_pem, "certificate": made.cert_pem, "key": key}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    config = SERVERS | {f"ssl.{name}.location": str(tmp_path / name) for name in texts}
    if password:
        config["ssl.key.password"] = password
    assert to_java("source", config) == SERVERS | {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": made.cert_pem,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": made.cert_pem,
        "ssl.keystore.key": made.key_pem,
    }


def test_a_keystore_of_librdkafkas_is_read(tmp_path: Path) -> None:
    """A PKCS#12 file comes along as text, too."""
    (tmp_path / "me.p12").write_bytes(material().keystore(SECRET))
    config = SERVERS | {
        "ssl.keystore.location": str(tmp_path / "me.p12"),
        "ssl.keystore.password": SECRET,
    }
    assert to_java("source", config) == SERVERS | {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": material().cert_pem,
        "ssl.keystore.key": material().key_pem,
    }


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER"}, "by a callback"),
        (OIDC | {"oauth_cb": print}, "by a callback"),
        (OIDC | {"sasl.oauthbearer.grant.type": "urn:x"}, "grant.type: is urn:x, which can't"),
        (OIDC | {"https.ca.location": "/nowhere"}, "/nowhere, which can't be read"),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "X"}, "is X, which can't be"),
        ({"enable.ssl.certificate.verification": False}, "has no counterpart"),
        ({"ssl.ca.location": "/nowhere"}, "/nowhere, which can't be read"),
        ({"ssl.cipher.suites": "PSK-X"}, "PSK-X, which has a suite without a known name"),
        ({"sasl.oauthbearer.config": SECRET}, "has no counterpart"),
        ({"ssl.key.pem": SECRET, "ssl.certificate.pem": "x"}, "can't be read as a private key"),
    ],
)
def test_what_has_no_java_counterpart_is_refused(config: dict[str, object], message: str) -> None:
    """The property is named without its value and with the next step; none is dropped."""
    with pytest.raises(ConfigurationError, match=f"^source: .*{message}") as raised:
        to_java("source", SERVERS | config)
    assert SECRET not in str(raised.value)


def test_what_says_no_more_than_javas_default_is_left_out() -> None:
    """Java always verifies certificates, and has no switch for it."""
    config = SERVERS | {"enable.ssl.certificate.verification": True, "ssl.ca.location": "probe"}
    assert to_java("source", config) == SERVERS


def test_all_problems_come_at_once() -> None:
    """One error lists them."""
    config = SERVERS | {"ssl.crl.location": "/crl", "ssl.ca.location": "/nowhere"}
    with pytest.raises(ConfigurationError, match=r"2 settings .*ssl\.crl\.location.*ssl\.ca"):
        to_java("source", config)


def test_a_key_file_that_is_not_pem_is_not_shown(tmp_path: Path) -> None:
    """The decoding error behind the message would carry the whole file."""
    path = tmp_path / "key"
    path.write_bytes(SECRET.encode() + b"\xfe")
    with pytest.raises(ConfigurationError, match=r"ssl.key.location: is .* can't be") as raised:
        to_java("source", SERVERS | {"ssl.key.location": str(path)})
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_a_properties_file() -> None:
    """Line ends, backslashes, leading spaces and non-ASCII letters survive Java's escaping."""
    assert format_properties({"b": "1\n2\\", "a": " é=😀"}) == (
        "a=\\ \\u00e9\\=\\ud83d\\ude00\nb=1\\n2\\\\\n"
    )
