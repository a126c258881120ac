"""Logins by Kerberos to the secured brokers, in librdkafka's words and in Java's."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from stack.kerberos import SERVICE, KerberosStack
from stack.secure_cluster import SecureCluster
from stack.token_server import TokenServer
from tests.integration.secured import Properties, Secured

USER = "airflow"
PRINCIPALS = (f"User:{USER}",)
"""The user as the brokers name it: without the realm, which is their own."""
KRB5_MODULE = "com.sun.security.auth.module.Krb5LoginModule"


@dataclass(frozen=True, kw_only=True)
class Kerberized:
    """The secured brokers, and the keytab of a user; one user on both, as tickets are shared."""

    stack: KerberosStack
    secured: Secured
    keytab: Path

    @property
    def principal(self) -> str:
        return self.stack.kdc.full_name(USER)

    def librdkafka(self, cluster: SecureCluster, _: TokenServer | None = None) -> Properties:
        return self._listener(cluster) | {
            "ssl.ca.location": str(cluster.folder / "ca.pem"),
            "sasl.kerberos.keytab": str(self.keytab),
            "sasl.kerberos.principal": self.principal,
        }

    def java(self, cluster: SecureCluster, _: TokenServer | None = None) -> Properties:
        options = f'useKeyTab=true storeKey=true keyTab="{self.keytab}"'
        return self._java(cluster, f'{options} principal="{self.principal}"')

    def by_cache(self, cluster: SecureCluster, _: TokenServer | None = None) -> Properties:
        """In Java's words, the ticket that another program's ``kinit`` got."""
        return self._java(cluster, "useTicketCache=true")

    def _java(self, cluster: SecureCluster, options: str) -> Properties:
        jaas = {"sasl.jaas.config": f"{KRB5_MODULE} required {options};"}
        return self._listener(cluster) | cluster.truststore() | jaas

    def _listener(self, cluster: SecureCluster) -> Properties:
        return {
            "bootstrap.servers": self.stack.kerberos[cluster.name],
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": SERVICE,
        }


@dataclass(frozen=True, kw_only=True)
class KerberosGround:
    """What wrong logins by Kerberos are made of; ``undo`` makes the KDC right again."""

    kerberized: Kerberized
    undo: ExitStack

    @property
    def cluster(self) -> SecureCluster:
        return self.kerberized.stack.clusters["source"]

    def login(self, **changes: str | Path | None) -> Properties:
        """Return a right login with changes to ``sasl.kerberos.*``; None removes a property."""
        right = self.kerberized.librdkafka(self.cluster)
        names = {f"sasl.kerberos.{name.replace('_', '.')}": to for name, to in changes.items()}
        kept = {name: value for name, value in right.items() if name not in names}
        return kept | {name: str(to) for name, to in names.items() if to is not None}

    def by_address(self) -> Properties:
        servers = self.kerberized.stack.kerberos["source"].replace("localhost", "127.0.0.1")
        return self.login() | {"bootstrap.servers": servers}

    def other_user(self) -> Path:
        return self.kerberized.stack.kdc.keytab("another")

    def removed_user(self) -> Properties:
        kdc = self.kerberized.stack.kdc
        keytab = kdc.keytab("removed")
        kdc.remove("removed")
        return self.login(keytab=keytab, principal=kdc.full_name("removed"))

    def changed_key(self) -> Properties:
        kdc = self.kerberized.stack.kdc
        keytab = kdc.keytab("rekeyed")
        kdc.change_key("rekeyed")
        return self.login(keytab=keytab, principal=kdc.full_name("rekeyed"))

    def without_kdc(self) -> Properties:
        kdc = self.kerberized.stack.kdc
        kdc.stop()
        self.undo.callback(kdc.start)
        return self.login()

    def wrong_clock(self) -> Properties:
        kdc = self.kerberized.stack.kdc
        kdc.stop()
        self.undo.callback(kdc.start)
        self.undo.callback(kdc.stop)
        kdc.start(clock="+1h")
        return self.login()
