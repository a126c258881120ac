"""Two brokers that demand logins, as local JVMs, and MirrorMaker 2 between them.

Each cluster has a certificate authority and users of its own. Its listeners: SASL_SSL (SCRAM, PLAIN
and OAUTHBEARER), SSL with a client certificate (mTLS), and a plain one on loopback, whose anonymous
user may do everything: for the brokers themselves, and for what tests prepare.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from stack.certificates import Authority
from stack.local import LocalStack
from stack.mirror import CONFIG, Broker
from stack.process import free_ports
from stack.token_server import AUDIENCE, TokenServer
from stack.waiting import Progress, quiet

_SECURITY = "org.apache.kafka.common.security"
_MIRROR_USER = "mm2"
_MIRROR_PASSWORD = "mm2's own, {name}"  # noqa: S105 - it opens nothing else
_UNREACHABLE = "127.0.0.1:1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureCluster:
    """What a client must know of a cluster, beside what it must not.

    Attributes:
        sasl: HOST:PORT of the listener for users, by TLS.
        ssl: The one for client certificates.
        lost: A plain one that advertises an address where nobody listens.
        user: Who logs in by SASL; by certificate, it is ``CN=user``.
        password: By SCRAM and by PLAIN.
        secret: Of the OAuth client, whose id is the user.
        folder: Holds ca.pem; client.pem, mm2.pem and broker.pem with certificate and key.
    """

    name: Broker
    sasl: str
    ssl: str
    lost: str
    user: str
    password: str
    secret: str
    authority: Authority
    folder: Path

    @classmethod
    def make(cls, name: Broker, folder: Path) -> Self:
        """Choose ports and passwords, and write the certificates."""
        sasl, ssl, lost = (f"127.0.0.1:{port}" for port in free_ports(3))
        made = cls(
            name=name,
            sasl=sasl,
            ssl=ssl,
            lost=lost,
            user=f"airflow-{name}",
            password=f'{name} "p=\\ss";',  # what JAAS must quote
            secret=f"{name}-client-s3cret",
            authority=Authority(f"{name} CA"),
            folder=folder,
        )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ca.pem").write_text(made.authority.pem)
        names = {"broker": "broker", "client": made.user, "mm2": _MIRROR_USER}
        for file, common_name in names.items():
            issued = made.authority.issue(common_name)
            (folder / f"{file}.pem").write_text(issued.key + issued.chain)
        return made

    @property
    def principals(self) -> tuple[str, str]:
        """The user as the broker names it: by SASL, and by certificate."""
        return f"User:{self.user}", f"User:CN={self.user}"

    def truststore(self) -> dict[str, str]:
        """Return Java's properties of the authority to trust."""
        location = str(self.folder / "ca.pem")
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": location}

    def keystore(self, file: str) -> dict[str, str]:
        """Return Java's properties of a certificate with its key."""
        location = str(self.folder / f"{file}.pem")
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": location}

    def mirror_login(self) -> dict[str, str]:
        """Return how MirrorMaker 2 logs in, in Java's properties: each cluster another way."""
        if self.name == "target":
            return {"security.protocol": "SSL", **self.truststore(), **self.keystore("mm2")}
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": (
                f"{_SECURITY}.scram.ScramLoginModule required "
                f'username="{_MIRROR_USER}" password="{self.mirror_password}";'
            ),
            **self.truststore(),
        }

    @property
    def mirror_password(self) -> str:
        """MirrorMaker 2's password."""
        return _MIRROR_PASSWORD.format(name=self.name)

    def broker_properties(self, tokens: TokenServer) -> dict[str, str]:
        """Return what the broker has beside its plain listeners."""
        listener = "listener.name.sasl_ssl"
        user = f"user_{self.user}={java_quoted(self.password)}"
        login_modules = {
            "scram-sha-512": f"{_SECURITY}.scram.ScramLoginModule required;",
            "plain": f"{_SECURITY}.plain.PlainLoginModule required {user};",
            "oauthbearer": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;",
        }
        validator = f"{_SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        return {
            "listener.security.protocol.map": (
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL,LOST:PLAINTEXT"
            ),
            **self.truststore(),
            **self.keystore("broker"),
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,OAUTHBEARER",
            **{
                f"{listener}.{mechanism}.sasl.jaas.config": module
                for mechanism, module in login_modules.items()
            },
            f"{listener}.oauthbearer.sasl.server.callback.handler.class": validator,
            "sasl.oauthbearer.jwks.endpoint.url": tokens.keys_url,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": tokens.url,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": f"User:ANONYMOUS;User:{_MIRROR_USER};User:CN={_MIRROR_USER}",
        }


class SecureStack(LocalStack):
    """Two brokers that demand logins and rights, and a Connect worker that has both.

    ``source`` and ``target`` are the plain listeners of the user who may do everything.

    Args:
        folder: Holds data, logs, certificates and configuration.
        jars: The folder of Kafka's jars (see stack.jars).
        progress: Told what is being waited for.
    """

    def __init__(self, folder: Path, jars: Path, *, progress: Progress = quiet) -> None:
        """Choose ports, make certificates and bind the token server; nothing answers yet."""
        self.clusters: dict[Broker, SecureCluster] = {
            "source": SecureCluster.make("source", folder / "source-files"),
            "target": SecureCluster.make("target", folder / "target-files"),
        }
        self.tokens = TokenServer({each.user: each.secret for each in self.clusters.values()})
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.tokens.keys_url}"
        self.jvm_options = (*self.jvm_options, allowed)
        super().__init__(folder, jars, progress=progress)

    def start(self) -> None:
        """Start the token server, both brokers and Connect, and wait until all answer."""
        self.tokens.__enter__()
        super().start()

    def stop(self) -> None:
        """Stop all; the data stays in the folder."""
        super().stop()
        self.tokens.__exit__(None, None, None)

    def broker_properties(self, name: Broker, port: int, controller: int) -> dict[str, str]:
        """Add the listeners that demand a login."""
        cluster = self.clusters[name]
        clients = {
            "PLAINTEXT": f"127.0.0.1:{port}",
            "SASL_SSL": cluster.sasl,
            "SSL": cluster.ssl,
            "LOST": cluster.lost,
        }
        listeners = ",".join(f"{kind}://{address}" for kind, address in clients.items())
        advertised = listeners.replace(f"LOST://{cluster.lost}", f"LOST://{_UNREACHABLE}")
        return {
            **super().broker_properties(name, port, controller),
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": advertised,
            **{
                # A properties file reads a backslash as the start of an escape.
                key: value.replace("\\", "\\\\")
                for key, value in cluster.broker_properties(self.tokens).items()
            },
        }

    def start_connect(self) -> None:
        """Make the users that log in by SCRAM, as the worker does, and start it."""
        for name, cluster in self.clusters.items():
            users = {cluster.user: cluster.password, _MIRROR_USER: cluster.mirror_password}
            make_scram_users({"source": self.source, "target": self.target}[name], users)
        super().start_connect()

    def worker_properties(self) -> Path:
        """Return a file with the worker's login, for itself and for what it hands to connectors."""
        login = self.clusters["target"].mirror_login()
        lines = [
            f"{prefix}{key}={value}\n"
            for prefix in ("", "producer.", "consumer.", "admin.")
            for key, value in login.items()
        ]
        path = self.folder / "connect-distributed.properties"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((CONFIG / path.name).read_text() + "".join(lines))
        return path

    def mirror_addresses(self) -> tuple[str, str]:
        """Return the listeners that MirrorMaker 2 logs in to."""
        return self.clusters["source"].sasl, self.clusters["target"].ssl

    def connector_logins(self, name: str) -> dict[str, str]:
        """Return a connector's logins; the heartbeat connector writes to the source."""
        source = self.clusters["source"].mirror_login()
        target = self.clusters["target"].mirror_login()
        if name == "mm2-heartbeat":
            return _prefixed("target.cluster.", source) | _prefixed("producer.override.", source)
        return _prefixed("source.cluster.", source) | _prefixed("target.cluster.", target)


def _prefixed(prefix: str, properties: dict[str, str]) -> dict[str, str]:
    return {f"{prefix}{key}": value for key, value in properties.items()}


def make_scram_users(servers: str, passwords: Mapping[str, str]) -> None:
    """Make users, or set their passwords."""
    admin = AdminClient({"bootstrap.servers": servers})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    changes: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(user, info, password.encode())
        for user, password in passwords.items()
    ]
    for future in admin.alter_user_scram_credentials(changes).values():
        future.result(timeout=30)


def java_quoted(text: str) -> str:
    """Return a text as a quoted string of JAAS."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
