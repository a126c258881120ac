"""Keys, certificates and stores, made once; and what tests of this folder share."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

from airflow_mm2_offsets.kafka.client_properties.acceptance import find_refused

SERVERS = {"bootstrap.servers": "broker.invalid:9092"}
SECRET = "hunter2-canary"  # noqa: S105 - what must not be seen
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KRB5 = "com.sun.security.auth.module.Krb5LoginModule"
IAM = "software.amazon.msk.auth.iam.IAMLoginModule"


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A key and its self-signed certificate."""

    private_key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def cert_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        return self._key(PrivateFormat.PKCS8)

    @property
    def traditional_key_pem(self) -> str:
        """As OpenSSL wrote keys before PKCS#8."""
        return self._key(PrivateFormat.TraditionalOpenSSL)

    def encrypted_key_pem(self, password: str) -> str:
        encryption = BestAvailableEncryption(password.encode())
        return self.private_key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, encryption
        ).decode()

    def keystore(self, password: str) -> bytes:
        encryption = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            b"me", self.private_key, self.certificate, None, encryption
        )

    def truststore(self, password: str) -> bytes:
        encryption = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            None, None, None, [self.certificate], encryption
        )

    def _key(self, form: PrivateFormat) -> str:
        return self.private_key.private_bytes(Encoding.PEM, form, NoEncryption()).decode()


@cache
def material() -> Material:
    """Return a key and a certificate that is valid for a day."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "broker.invalid")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Material(private_key=key, certificate=certificate)


NEEDS_ENDPOINT_CA = pytest.mark.skipif(
    bool(find_refused({"https.ca.pem": material().cert_pem})),
    reason="the installed librdkafka has no https.ca.pem, which a user of it is told",
)
