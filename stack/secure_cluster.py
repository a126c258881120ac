"""A cluster that demands logins: its users, its certificates and its brokers' properties.

``stack.secure`` runs two of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from stack.certificates import Authority
from stack.mirror import Broker
from stack.process import free_ports
from stack.token_server import AUDIENCE, TokenServer

_SECURITY = "org.apache.kafka.common.security"
MIRROR_USER = "mm2"
_MIRROR_PASSWORD = "mm2's own, {name}"  # noqa: S105 - it opens nothing else


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
        job_user: A second user, for a Spark job.
        job_password: By SCRAM and by PLAIN.
        folder: Holds ca.pem; client.pem, mm2.pem and broker.pem with certificate and key.
    """

    name: Broker
    sasl: str
    ssl: str
    lost: str
    user: str
    password: str
    secret: str
    job_user: str
    job_password: str
    authority: Authority
    folder: Path

    @classmethod
    def make(cls, name: Broker, folder: Path, *, secret: Callable[[str], str]) -> Self:
        """Choose ports and passwords, and write the certificates.

        Args:
            name: The cluster.
            folder: Where the certificates are written.
            secret: Returns what is a part of a secret, by the secret's name.
        """
        sasl, ssl, lost = (f"127.0.0.1:{port}" for port in free_ports(3))
        made = cls(
            name=name,
            sasl=sasl,
            ssl=ssl,
            lost=lost,
            user=f"airflow-{name}",
            password=_quotable(name, secret(f"{name} password")),
            secret=f"{name}-client-s3cret{secret(f'{name} client secret')}",
            job_user=f"job-{name}",
            job_password=_quotable(name, secret(f"{name} job password")),
            authority=Authority(f"{name} CA"),
            folder=folder,
        )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ca.pem").write_text(made.authority.pem)
        names = {"broker": "broker", "client": made.user, "mm2": MIRROR_USER}
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
                f'username="{MIRROR_USER}" password="{self.mirror_password}";'
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
        passwords = {self.user: self.password, self.job_user: self.job_password}
        users = " ".join(f"user_{user}={java_quoted(to)}" for user, to in passwords.items())
        login_modules = {
            "scram-sha-512": f"{_SECURITY}.scram.ScramLoginModule required;",
            "plain": f"{_SECURITY}.plain.PlainLoginModule required {users};",
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
            "super.users": f"User:ANONYMOUS;User:{MIRROR_USER};User:CN={MIRROR_USER}",
        }


def java_quoted(text: str) -> str:
    """Return a text as a quoted string of JAAS."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _quotable(name: str, secret: str) -> str:
    """Return a password that JAAS must quote."""
    return f'{name} "p=\\ss";{secret}'
