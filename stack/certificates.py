"""Certificate authorities and certificates in PEM, for brokers, clients and the token server.

Keys are on the curve P-256: RSA keys take a second each.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

LOOPBACK = ("127.0.0.1", "localhost")
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate and its private key, both as PEM texts."""

    chain: str
    """The certificate; the authority's own is not in it."""
    key: str
    """PKCS#8, in clear."""
    private: EllipticCurvePrivateKey

    def encrypted_key(self, password: str) -> str:
        """Return the key as encrypted PKCS#8."""
        return _pem(self.private, password)


class Authority:
    """A certificate authority (CA) of its own; who trusts another one does not trust it."""

    def __init__(self, name: str) -> None:
        """Make its key and its self-signed certificate."""
        self._private = generate_private_key(SECP256R1())
        self._name = _name(name)
        now = datetime.now(UTC)
        self._certificate = (
            _builder(self._name, self._name, self._private, now - 3 * _DAY, now + _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_AUTHORITY_USAGE, critical=True)
            .add_extension(_key_id(self._private), critical=False)
            .sign(self._private, SHA256())
        )
        self.pem = self._certificate.public_bytes(Encoding.PEM).decode()

    def issue(
        self,
        common_name: str,
        *,
        hosts: tuple[str, ...] = LOOPBACK,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Certificate:
        """Return a certificate for servers and clients.

        Args:
            common_name: The subject is ``CN=common_name``: Kafka's principal of a client.
            hosts: Host names and addresses of a server.
            since: When it becomes valid; None: an hour ago.
            until: When it expires; None: in a day.
        """
        now = datetime.now(UTC)
        private = generate_private_key(SECP256R1())
        names = x509.SubjectAlternativeName([_host(each) for each in hosts])
        certificate = (
            _builder(
                _name(common_name), self._name, private, since or now - _HOUR, until or now + _DAY
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(names, critical=False)
            .add_extension(_key_id(self._private, authority=True), critical=False)
            .sign(self._private, SHA256())
        )
        chain = certificate.public_bytes(Encoding.PEM).decode()
        return Certificate(chain=chain, key=_pem(private), private=private)


_AUTHORITY_USAGE = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    private: EllipticCurvePrivateKey,
    since: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(until)
    )


def _key_id(
    private: EllipticCurvePrivateKey, *, authority: bool = False
) -> x509.SubjectKeyIdentifier | x509.AuthorityKeyIdentifier:
    if authority:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(private.public_key())
    return x509.SubjectKeyIdentifier.from_public_key(private.public_key())


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(private: EllipticCurvePrivateKey, password: str = "") -> str:
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()
