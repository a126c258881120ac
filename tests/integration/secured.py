"""The ways to log in to the secured brokers, in librdkafka's words and in Java's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from stack.mirror import Broker
from stack.secure import SecureStack
from stack.secure_cluster import SecureCluster, java_quoted
from stack.token_server import SCOPE, TokenServer
from tests.integration.mirrored_topics import MirroredTopic

Properties = dict[str, str]
_SECURITY = "org.apache.kafka.common.security"


class Way(NamedTuple):
    """A way to log in."""

    name: str
    librdkafka: Callable[[SecureCluster, TokenServer], Properties]
    java: Callable[[SecureCluster, TokenServer], Properties]


def scram(cluster: SecureCluster, _: TokenServer | None = None) -> Properties:
    return _by_password(cluster, "SCRAM-SHA-512")


def plain(cluster: SecureCluster, _: TokenServer | None = None) -> Properties:
    return _by_password(cluster, "PLAIN")


def mtls(cluster: SecureCluster, _: TokenServer | None = None) -> Properties:
    client = str(cluster.folder / "client.pem")
    return {
        "bootstrap.servers": cluster.ssl,
        "security.protocol": "SSL",
        "ssl.ca.location": str(cluster.folder / "ca.pem"),
        "ssl.certificate.location": client,
        "ssl.key.location": client,
    }


def oauth(cluster: SecureCluster, tokens: TokenServer) -> Properties:
    return {
        "bootstrap.servers": cluster.sasl,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(cluster.folder / "ca.pem"),
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": tokens.token_url,
        "sasl.oauthbearer.client.id": cluster.user,
        "sasl.oauthbearer.client.secret": cluster.secret,
        "sasl.oauthbearer.scope": SCOPE,
    }


def _by_password(cluster: SecureCluster, mechanism: str) -> Properties:
    return {
        "bootstrap.servers": cluster.sasl,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(cluster.folder / "ca.pem"),
        "sasl.mechanism": mechanism,
        "sasl.username": cluster.user,
        "sasl.password": cluster.password,
    }


def _java_by_password(module: str, mechanism: str) -> Callable[..., Properties]:
    def properties(cluster: SecureCluster, _: TokenServer) -> Properties:
        return {
            "bootstrap.servers": cluster.sasl,
            "security.protocol": "SASL_SSL",
            **cluster.truststore(),
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": (
                f"{_SECURITY}.{module} required username={java_quoted(cluster.user)} "
                f"password={java_quoted(cluster.password)};"
            ),
        }

    return properties


def _java_mtls(cluster: SecureCluster, _: TokenServer) -> Properties:
    return {
        "bootstrap.servers": cluster.ssl,
        "security.protocol": "SSL",
        **cluster.truststore(),
        **cluster.keystore("client"),
    }


def _java_oauth(cluster: SecureCluster, tokens: TokenServer) -> Properties:
    handler = f"{_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler"
    return {
        "bootstrap.servers": cluster.sasl,
        "security.protocol": "SASL_SSL",
        **cluster.truststore(),
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": handler,
        "sasl.oauthbearer.token.endpoint.url": tokens.token_url,
        "sasl.jaas.config": (
            f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required clientId="
            f'"{cluster.user}" clientSecret="{cluster.secret}" scope="{SCOPE}";'
        ),
    }


WAYS = (
    Way(
        "SCRAM-SHA-512",
        scram,
        _java_by_password("scram.ScramLoginModule", "SCRAM-SHA-512"),
    ),
    Way("PLAIN", plain, _java_by_password("plain.PlainLoginModule", "PLAIN")),
    Way("mTLS", mtls, _java_mtls),
    Way("OAUTHBEARER", oauth, _java_oauth),
)


@dataclass(frozen=True, kw_only=True)
class Secured:
    """A topic that was mirrored between the secured brokers, and the pair of clusters."""

    stack: SecureStack
    mirrored: MirroredTopic

    @property
    def open_pair(self) -> ClusterPair:
        """The pair as the user sees it who may do everything."""
        return self.mirrored.mirror.pair

    def logins(self, login: Callable[..., Properties]) -> dict[Broker, Properties]:
        """Return the properties of both clusters."""
        tokens = self.stack.tokens
        return {name: login(each, tokens) for name, each in self.stack.clusters.items()}

    def pair(self, login: Callable[..., Properties]) -> ClusterPair:
        """Return the pair as a user sees it who logs in."""
        return self.pair_by(self.logins(login))

    def pair_by(self, logins: Mapping[Broker, Properties]) -> ClusterPair:
        """Return the pair by librdkafka's properties of both clusters."""
        open_pair = self.open_pair
        source, target = (
            KafkaCluster(name=name, config=logins[name], timeout=10) for name in logins
        )
        return ClusterPair(
            source=source,
            target=target,
            naming=open_pair.naming,
            syncs_location=open_pair.syncs_location,
        )

    @property
    def positions(self) -> dict[str, dict[int, int]]:
        """A position in the middle of each partition, where most answers need records."""
        middle = {
            number: (each.low + each.high) // 2 for number, each in self.mirrored.watermarks.items()
        }
        return {self.mirrored.topic: middle}
