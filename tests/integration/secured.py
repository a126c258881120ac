"""The ways to log in to the secured brokers, in librdkafka's words and in Java's."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan, Status
from airflow_mm2_offsets.kafka.client_properties import format_properties
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.planning.acls import acls_of
from stack.acls import grant, revoke_all
from stack.mirror import Broker
from stack.secure import SecureStack
from stack.secure_cluster import SecureCluster, java_quoted
from stack.token_server import SCOPE, TokenServer
from tests.integration.mirrored_topics import MirroredTopic, holds, is_true, mirror_topic
from tests.integration.mirrors import mirror

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
            connect=open_pair.connect,
        )

    @property
    def positions(self) -> dict[str, dict[int, int]]:
        """A position in the middle of each partition, where most answers need records."""
        middle = {
            number: (each.low + each.high) // 2 for number, each in self.mirrored.watermarks.items()
        }
        return {self.mirrored.topic: middle}


def grant_translation(secured: Secured, principals: Mapping[Broker, Collection[str]]) -> None:
    """Let principals of each cluster translate, and do no more; nobody else may do anything."""
    rights = acls_of(secured.open_pair, "translate", [secured.mirrored.topic])
    for name, users in principals.items():
        servers = getattr(secured.stack, name)
        revoke_all(servers)
        grant(servers, users, [each.acl for each in rights if each.side == name])


def settings_file(secured: Secured, logins: Mapping[Broker, Properties], folder: Path) -> Path:
    """Return a file that describes the pair, with these logins."""
    settings = _names(secured.open_pair)
    for name, login in logins.items():
        settings |= {f"{name}.{key}": value for key, value in login.items()}
    path = folder / "mm2-offsets.properties"
    path.write_text(format_properties(settings))
    return path


def connections(secured: Secured, logins: Mapping[Broker, Properties]) -> dict[str, str]:
    """Return Airflow's connections of the pair, as variables, with these logins."""
    kafka = {
        f"AIRFLOW_CONN_KAFKA_{name.upper()}": {"conn_type": "kafka", "extra": login}
        for name, login in logins.items()
    }
    names = _names(secured.open_pair)
    login = {
        field: names.pop(f"connect.{name}")
        for field, name in (("login", "username"), ("password", "password"))
    }
    extra = {key.replace(".", "_").replace("-", "_"): value for key, value in names.items()}
    pair = {"AIRFLOW_CONN_MM2_DEFAULT": {"conn_type": "mm2", **login, "extra": extra}}
    return {name: json.dumps(connection) for name, connection in {**kafka, **pair}.items()}


def _names(pair: ClusterPair) -> dict[str, str]:
    naming, connect = pair.naming, pair.connect
    assert connect is not None
    return {
        "connect.url": connect.url,
        "connect.username": connect.username or "",
        "connect.password": connect.password or "",
        "source.alias": naming.source_alias,
        "target.alias": naming.target_alias,
        "replication.policy": naming.policy.value,
        "offset-syncs.topic.location": pair.syncs_location.value,
    }


def check_plan(plan: FailoverPlan, secured: Secured) -> None:
    """Compare with the truth, which comes from all records of both clusters."""
    answers = [each.translation for each in plan.partitions]
    assert all(holds(each, secured.mirrored) for each in answers)
    exact = [each for each in answers if each.status is Status.EXACT]
    assert exact
    assert all(is_true(each, secured.mirrored) for each in exact)
    assert any(each.target != each.position for each in answers)


@contextmanager
def run_secured(stack: SecureStack, topics: str) -> Iterator[Secured]:
    """Start a stack, and mirror a topic in it."""
    with stack:
        stack.create_mirror(topics)
        with mirror(stack) as made:
            # As by default, so that an archive holds syncs of the heartbeats.
            replicated = {"heartbeats.replication.enabled": "true"}
            yield Secured(stack=stack, mirrored=mirror_topic(made, settings=replicated))
