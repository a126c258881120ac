"""The secured brokers with one more listener each, where clients log in by Kerberos."""

from pathlib import Path

from stack.kdc import Kdc
from stack.mirror import Broker
from stack.process import free_ports
from stack.secure import SecureStack
from stack.waiting import Progress, quiet

SERVICE = "kafka"
_LISTENER = "listener.name.kerberos"
_HOST = "localhost"
"""A ticket is for a service on a host: the name that brokers advertise, not an address."""


class KerberosStack(SecureStack):
    """Two brokers that take GSSAPI by TLS, beside all logins of ``SecureStack``.

    Args:
        folder: See ``SecureStack``.
        jars: See ``SecureStack``.
        connect_jars: See ``SecureStack``.
        kdc: The realm of brokers and users; it runs.
        progress: Told what is being waited for.

    Attributes:
        kerberos: HOST:PORT of each broker's listener.
    """

    def __init__(
        self,
        folder: Path,
        jars: Path,
        connect_jars: Path,
        kdc: Kdc,
        *,
        progress: Progress = quiet,
    ) -> None:
        """Choose ports, and make the brokers' principal; nothing answers yet."""
        self.kdc = kdc
        source, target = free_ports(2)
        self.kerberos: dict[Broker, str] = {
            "source": f"{_HOST}:{source}",
            "target": f"{_HOST}:{target}",
        }
        self._principal = f"{SERVICE}/{_HOST}"
        self._keytab = kdc.keytab(self._principal)
        self.jvm_options = (f"-Djava.security.krb5.conf={kdc.krb5_conf}",)
        super().__init__(folder, jars, connect_jars, progress=progress)

    def broker_properties(self, name: Broker, port: int, controller: int) -> dict[str, str]:
        """Add the listener."""
        properties = super().broker_properties(name, port, controller)
        address = self.kerberos[name]
        module = (
            "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
            f'keyTab="{self._keytab}" principal="{self.kdc.full_name(self._principal)}";'
        )
        added = {
            "listeners": f"KERBEROS://{address.replace(_HOST, '127.0.0.1')}",
            "advertised.listeners": f"KERBEROS://{address}",
            "listener.security.protocol.map": "KERBEROS:SASL_SSL",
        }
        return {
            **properties,
            **{key: f"{properties[key]},{value}" for key, value in added.items()},
            f"{_LISTENER}.sasl.enabled.mechanisms": "GSSAPI",
            f"{_LISTENER}.gssapi.sasl.jaas.config": module,
            f"{_LISTENER}.sasl.kerberos.service.name": SERVICE,
        }
