"""Wrong set-ups of a connection, and what is said of each; docs/security.md has the same table."""

from datetime import UTC, datetime, timedelta

from airflow_mm2_offsets.kafka.client_properties import to_librdkafka
from stack.certificates import Authority, Certificate
from tests.integration.explained import WrongSetup
from tests.integration.secured import Properties, plain
from tests.integration.wrong_setup_ground import Ground
from tests.support.mock_broker import free_address, silent_broker

_DAY = timedelta(days=1)
_JKS = bytes.fromhex("feedfeed00000002") + bytes(24)
"""How ``sun.security.provider.JavaKeyStore`` begins a file."""
KEY_PASSWORD = "the key's own s3cret"  # noqa: S105 - it opens nothing else


def _issue(ground: Ground) -> Certificate:
    return ground.cluster.authority.issue("client")


def _without_login(ground: Ground, protocol: str, servers: str) -> Properties:
    names = ("sasl_mechanism", "sasl_username", "sasl_password")
    return ground.scram(
        bootstrap_servers=servers, security_protocol=protocol, **dict.fromkeys(names)
    )


_USER = "check user, password, mechanism and security.protocol"
_TRUST = "give in ssl.ca.location (or ssl.ca.pem) the certificate of the CA"
_CLIENT_CERTIFICATE = "ssl.certificate.location"
_TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 - a property's name
_NOW = datetime.now(UTC)

WRONG_SETUPS: tuple[WrongSetup[Ground], ...] = (
    WrongSetup(
        "wrong password (SCRAM)",
        lambda ground: ground.scram(sasl_password="wr0ng s3cret"),  # noqa: S106 - a wrong one
        "sasl.username",
        "the broker does not accept user or password by SCRAM-SHA-512",
        _USER,
    ),
    WrongSetup(
        "unknown user",
        lambda ground: ground.scram(sasl_username="nobody"),
        "sasl.username",
        "the broker does not accept user or password by SCRAM-SHA-512",
        _USER,
    ),
    WrongSetup(
        "wrong password (PLAIN)",
        lambda ground: {**plain(ground.cluster), "sasl.password": "wr0ng s3cret"},
        "sasl.username",
        "the broker does not accept user or password by PLAIN",
        _USER,
    ),
    WrongSetup(
        "a mechanism that the broker lacks",
        lambda ground: ground.scram(sasl_mechanism="SCRAM-SHA-256"),
        "sasl.mechanism",
        "the broker does not offer the SASL mechanism SCRAM-SHA-256",
        "set sasl.mechanism to one of",
    ),
    WrongSetup(
        "no mechanism",
        lambda ground: ground.scram(sasl_mechanism=None),
        "sasl.mechanism",
        "sasl.mechanism is missing",
        "set sasl.mechanism",
    ),
    WrongSetup(
        "Kerberos without a build that has it",
        lambda ground: ground.scram(sasl_mechanism="GSSAPI"),
        "sasl.mechanism",
        "this build of confluent-kafka can't log in by Kerberos",
        "--no-binary confluent-kafka confluent-kafka==",
    ),
    WrongSetup(
        "no password",
        lambda ground: ground.scram(sasl_password=None),
        "sasl.password",
        "sasl.password missing",
        "set sasl.password",
    ),
    WrongSetup(
        "no login",
        lambda ground: _without_login(ground, "SSL", ground.cluster.sasl),
        "security.protocol",
        "closes the connection: it may demand a login",
        "set security.protocol to SASL_SSL",
    ),
    WrongSetup(
        "the broker's certificate has expired",
        lambda ground: ground.served(since=_NOW - 2 * _DAY, until=_NOW - _DAY),
        "",
        "expired at",
        "renew the broker's certificate",
    ),
    WrongSetup(
        "the broker's certificate is not valid yet, or this clock is wrong",
        lambda ground: ground.served(since=_NOW + _DAY / 2),
        "",
        "is not yet valid: it is from",
        "or correct the clock of this machine",
    ),
    WrongSetup(
        "the broker's certificate is for another host",
        lambda ground: ground.served(hosts=("broker-1.example",)),
        "bootstrap.servers",
        "is for broker-1.example",
        "name the broker in bootstrap.servers",
    ),
    WrongSetup(
        "another CA is trusted",
        lambda ground: ground.scram(ssl_ca_location=None, ssl_ca_pem=Authority("other").pem),
        "ssl.ca.location",
        "which is not among the CA certificates here",
        _TRUST,
    ),
    WrongSetup(
        "no CA is given",
        lambda ground: ground.scram(ssl_ca_location=None),
        "ssl.ca.location",
        "which is not among the CA certificates here",
        _TRUST,
    ),
    WrongSetup(
        "plaintext to a TLS port",
        lambda ground: {"bootstrap.servers": ground.cluster.ssl},
        "security.protocol",
        "security.protocol is PLAINTEXT, and",
        "set security.protocol to SSL or SASL_SSL",
    ),
    WrongSetup(
        "SASL_PLAINTEXT to a TLS port",
        lambda ground: ground.scram(security_protocol="SASL_PLAINTEXT"),
        "security.protocol",
        "security.protocol is SASL_PLAINTEXT, and",
        "set security.protocol to SASL_SSL",
    ),
    WrongSetup(
        "TLS to a plaintext port",
        lambda ground: ground.scram(bootstrap_servers=ground.stack.source),
        "security.protocol",
        "does not speak TLS",
        "give the address of a TLS listener",
    ),
    WrongSetup(
        "no client certificate",
        lambda ground: ground.mtls(ssl_certificate_location=None, ssl_key_location=None),
        _CLIENT_CERTIFICATE,
        "the broker demands a client certificate, and none is set",
        "set ssl.certificate.location and ssl.key.location",
    ),
    WrongSetup(
        "a client certificate without its key",
        lambda ground: ground.mtls(ssl_key_location=None),
        "ssl.key.location",
        "the one that is set has no key",
        "set ssl.key.location or ssl.key.pem",
    ),
    WrongSetup(
        "a client certificate of another CA",
        lambda ground: ground.client(Authority("other").issue("client")),
        _CLIENT_CERTIFICATE,
        "the broker does not accept the client's certificate",
        "that a CA in the broker's truststore signed",
    ),
    WrongSetup(
        "an expired client certificate",
        lambda ground: ground.client(
            ground.cluster.authority.issue("client", since=_NOW - 2 * _DAY, until=_NOW - _DAY)
        ),
        _CLIENT_CERTIFICATE,
        "the broker does not accept the client's certificate",
        "give one that is valid now",
    ),
    WrongSetup(
        "the key of another certificate",
        lambda ground: ground.client(_issue(ground), key=_issue(ground).key),
        "ssl.key.pem",
        "the private key does not belong to the client's certificate",
        "the key that the certificate was made for",
    ),
    WrongSetup(
        "wrong password of the key",
        lambda ground: ground.client(
            made := _issue(ground),
            key=made.encrypted_key(KEY_PASSWORD),
            ssl_key_password="wr0ng s3cret",  # noqa: S106 - a wrong one
        ),
        "ssl.key.password",
        "the private key is encrypted, and ssl.key.password is wrong",
        "correct ssl.key.password",
    ),
    WrongSetup(
        "no password of the key",
        lambda ground: ground.client(made := _issue(ground), key=made.encrypted_key(KEY_PASSWORD)),
        "ssl.key.password",
        "the private key is encrypted, and ssl.key.password is missing",
        "correct ssl.key.password",
    ),
    WrongSetup(
        "a PEM file that does not exist",
        lambda ground: ground.scram(ssl_ca_location="/nowhere/ca.pem"),
        "ssl.ca.location",
        "ssl.ca.location is /nowhere/ca.pem, which does not exist here",
        "correct ssl.ca.location",
    ),
    WrongSetup(
        "a PEM file without PEM",
        lambda ground: ground.scram(ssl_ca_location=ground.file("junk.pem", "junk")),
        "ssl.ca.location",
        "which holds no usable PEM text",
        "correct ssl.ca.location",
    ),
    WrongSetup(
        "a truststore of type JKS",
        lambda ground: to_librdkafka(
            "source",
            ground.scram(ssl_ca_location=None)
            | {
                "ssl.truststore.location": ground.file("trust.jks", _JKS),
                "ssl.truststore.password": "x",
            },
        ),
        "ssl.truststore.location",
        "a keystore in Java's own format JKS",
        "convert it (keytool -importkeystore",
    ),
    WrongSetup(
        "wrong secret of the OAuth client",
        lambda ground: ground.oauth(sasl_oauthbearer_client_secret="wr0ng"),  # noqa: S106
        "sasl.oauthbearer.client.id",
        "the token endpoint does not accept the client",
        "check sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret",
    ),
    WrongSetup(
        "a scope that the token endpoint does not grant",
        lambda ground: ground.oauth(sasl_oauthbearer_scope="kafka.everything"),
        "sasl.oauthbearer.scope",
        "the token endpoint does not grant the scope",
        "check sasl.oauthbearer.scope",
    ),
    WrongSetup(
        "the token endpoint is down",
        lambda ground: ground.oauth(
            sasl_oauthbearer_token_endpoint_url=f"http://{free_address()}/token"
        ),
        _TOKEN_URL,
        "the token endpoint gives no token",
        f"check {_TOKEN_URL}",
    ),
    WrongSetup(
        "the token endpoint's certificate is not trusted",
        lambda ground: ground.oauth(
            sasl_oauthbearer_token_endpoint_url=ground.other_tokens(tls=True)
        ),
        "https.ca.location",
        "the token endpoint's certificate can't be verified",
        "check https.ca.location",
    ),
    WrongSetup(
        "tokens of another issuer",
        lambda ground: ground.oauth(sasl_oauthbearer_token_endpoint_url=ground.other_tokens()),
        "sasl.oauthbearer.scope",
        "the broker does not accept the token",
        "compare issuer, audience and scope",
    ),
    WrongSetup(
        "OAUTHBEARER without a way to get tokens",
        lambda ground: ground.oauth(sasl_oauthbearer_method=None),
        "sasl.oauthbearer.method",
        "nothing is set that gets a token",
        "set sasl.oauthbearer.method=oidc",
    ),
    WrongSetup(
        "a host that is not known",
        lambda ground: ground.scram(bootstrap_servers="no-such-host.invalid:9092"),
        "bootstrap.servers",
        "the name of no-such-host.invalid:9092 is not known here",
        "correct bootstrap.servers",
    ),
    WrongSetup(
        "a closed port",
        lambda ground: ground.scram(bootstrap_servers=free_address()),
        "",
        "Connection refused",
        "check that the brokers run",
    ),
    WrongSetup(
        "a port that takes connections and says nothing",
        lambda ground: {"bootstrap.servers": ground.undo.enter_context(silent_broker())},
        "bootstrap.servers",
        "takes connections and answers nothing",
        "check that it is a Kafka broker",
    ),
    WrongSetup(
        "a broker that advertises an address out of reach",
        lambda ground: {"bootstrap.servers": ground.cluster.lost},
        "",
        "broker 1 advertises 127.0.0.1:1, which can't be reached from here",
        "correct advertised.listeners",
    ),
    WrongSetup(
        "a misspelt property",
        lambda ground: ground.scram(sasl_pasword="s3cret-typo"),  # noqa: S106 - a wrong one
        "",
        "sasl.pasword",
        "correct",
    ),
)
