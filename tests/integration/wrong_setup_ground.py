"""What wrong set-ups are made of: right logins with changes, and servers that are not right."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from stack.certificates import Authority, Certificate
from stack.secure import SecureStack
from stack.secure_cluster import SecureCluster
from stack.token_server import TokenServer
from tests.integration.secured import Properties, mtls, oauth, scram


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What wrong set-ups are made of."""

    stack: SecureStack
    folder: Path
    undo: ExitStack

    @property
    def cluster(self) -> SecureCluster:
        return self.stack.clusters["source"]

    def scram(self, **changes: str | None) -> Properties:
        """Return a right login with changes; None removes a property, ``_`` stands for a dot."""
        return _changed(scram(self.cluster), changes)

    def mtls(self, **changes: str | None) -> Properties:
        return _changed(mtls(self.cluster), changes)

    def oauth(self, **changes: str | None) -> Properties:
        return _changed(oauth(self.cluster, self.stack.tokens), changes)

    def served(self, **options: object) -> Properties:
        """Return a right login to a server with another certificate."""
        certificate = self.cluster.authority.issue("broker", **options)  # type: ignore[arg-type]
        address = self.undo.enter_context(tls_server(certificate, self.folder))
        return self.scram(bootstrap_servers=address)

    def client(self, certificate: Certificate, key: str = "", **changes: str) -> Properties:
        """Return a login by another certificate."""
        pems = {"ssl_certificate_pem": certificate.chain, "ssl_key_pem": key or certificate.key}
        gone = {"ssl_certificate_location": None, "ssl_key_location": None}
        return self.mtls(**gone, **pems, **changes)

    def file(self, name: str, content: str | bytes) -> str:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def other_tokens(self, *, tls: bool = False) -> str:
        """Return the token endpoint of another issuer, which knows the same clients."""
        certificate = None
        if tls:
            made = Authority("elsewhere").issue("tokens")
            certificate = Path(self.file("tokens.pem", made.key + made.chain))
        clients = {self.cluster.user: self.cluster.secret}
        return self.undo.enter_context(TokenServer(clients, certificate=certificate)).token_url


def _changed(properties: Properties, changes: dict[str, str | None]) -> Properties:
    names = {name.replace("_", "."): value for name, value in changes.items()}
    kept = {name: value for name, value in properties.items() if name not in names}
    return kept | {name: value for name, value in names.items() if value is not None}


@contextmanager
def tls_server(certificate: Certificate, folder: Path) -> Iterator[str]:
    """Yield the address of a server that shakes hands with a certificate, and says no more."""
    pem = folder / "served.pem"
    pem.write_text(certificate.key + certificate.chain)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_shake_hands, args=(server, context), daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def _shake_hands(server: socket.socket, context: ssl.SSLContext) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.settimeout(5)
            try:
                with context.wrap_socket(connection, server_side=True) as shaken:
                    shaken.recv(1)
            except OSError:
                continue
