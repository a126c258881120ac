"""Two brokers that demand logins, as local JVMs, and MirrorMaker 2 between them.

Each cluster has a certificate authority and users of its own; Connect's REST API has a user too. A
cluster's listeners: SASL_SSL (SCRAM, PLAIN and OAUTHBEARER), SSL with a client certificate (mTLS),
and a plain one on loopback, whose anonymous user may do everything: for the brokers themselves, and
for what tests prepare.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from stack.local import LocalStack
from stack.mirror import CONFIG, Broker
from stack.secure_cluster import MIRROR_USER, SecureCluster
from stack.token_server import TokenServer
from stack.waiting import Progress, quiet

_CONNECT_LOGIN = "org.apache.kafka.connect.rest.basic.auth.extension"
_UNREACHABLE = "127.0.0.1:1"


class SecureStack(LocalStack):
    """Two brokers that demand logins and rights, and a Connect worker that has both.

    ``source`` and ``target`` are the plain listeners of the user who may do everything.

    Args:
        folder: Holds data, logs, certificates and configuration.
        jars: The folder of Kafka's jars (see stack.jars).
        connect_jars: The folder of what lets Connect demand a login.
        secret: Returns what is a part of a secret, by the secret's name: a test may look for it.
        progress: Told what is being waited for.
    """

    def __init__(
        self,
        folder: Path,
        jars: Path,
        connect_jars: Path,
        *,
        secret: Callable[[str], str] = lambda _: "",
        progress: Progress = quiet,
    ) -> None:
        """Choose ports, make certificates and bind the token server; nothing answers yet."""
        self.clusters: dict[Broker, SecureCluster] = {
            "source": SecureCluster.make("source", folder / "source-files", secret=secret),
            "target": SecureCluster.make("target", folder / "target-files", secret=secret),
        }
        self.connect_login = "airflow-connect", f"connect-password{secret('Connect password')}"
        self.more_jars = (connect_jars,)
        self.tokens = TokenServer({each.user: each.secret for each in self.clusters.values()})
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.tokens.keys_url}"
        login = _connect_login_option(folder, self.connect_login)
        self.jvm_options = (*self.jvm_options, allowed, login)
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
            users = {
                cluster.user: cluster.password,
                cluster.job_user: cluster.job_password,
                MIRROR_USER: cluster.mirror_password,
            }
            make_scram_users({"source": self.source, "target": self.target}[name], users)
        super().start_connect()

    def worker_properties(self) -> Path:
        """Return a file with the worker's login, for itself and for what it hands to connectors."""
        login = self.clusters["target"].mirror_login()
        lines = [f"rest.extension.classes={_CONNECT_LOGIN}.BasicAuthSecurityRestExtension\n"]
        lines += [
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


def _connect_login_option(folder: Path, login: tuple[str, str]) -> str:
    """Write the user of Connect's REST API, and return the JVM's option that names the file."""
    users, jaas = folder / "connect-users.properties", folder / "connect-jaas.conf"
    users.parent.mkdir(parents=True, exist_ok=True)
    users.write_text("=".join(login) + "\n")
    module = f'{_CONNECT_LOGIN}.PropertyFileLoginModule required file="{users}";'
    jaas.write_text(f"KafkaConnect {{ {module} }};\n")
    return f"-Djava.security.auth.login.config={jaas}"


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
