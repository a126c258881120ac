"""Rules about how this package logs in to a cluster, by its librdkafka properties."""

from collections.abc import Iterator

from airflow_mm2_offsets.doctor.finding import Hit, Rule, Severity
from airflow_mm2_offsets.kafka.advice import protocol, uses_tls
from airflow_mm2_offsets.kafka.cluster import KafkaCluster

_PROTOCOL = "security.protocol"
_IDENTIFICATION = "ssl.endpoint.identification.algorithm"
_VERIFICATION = "enable.ssl.certificate.verification"


def _text(cluster: KafkaCluster, name: str) -> str:
    return str(cluster.config.get(name, "")).strip()


def _hit(cluster: KafkaCluster, name: str) -> Hit:
    return Hit(f"{name} = {_text(cluster, name)} for the {cluster.name}")


def _plaintext_login(cluster: KafkaCluster) -> Iterator[Hit]:
    if protocol(cluster.config) == "SASL_PLAINTEXT":
        yield _hit(cluster, _PROTOCOL)


def _login_unused(cluster: KafkaCluster) -> Iterator[Hit]:
    """Yield what Kafka's clients leave unused, without a word."""
    without_login = not protocol(cluster.config).startswith("SASL")
    for prefix, is_unused in (("sasl.", without_login), ("ssl.", not uses_tls(cluster.config))):
        if is_unused and (names := [name for name in cluster.config if name.startswith(prefix)]):
            text = f"{', '.join(sorted(names))} with {_PROTOCOL} = {protocol(cluster.config)}"
            yield Hit(f"{text} for the {cluster.name}")


def _certificate_unchecked(cluster: KafkaCluster) -> Iterator[Hit]:
    if uses_tls(cluster.config) and _text(cluster, _VERIFICATION).lower() == "false":
        yield _hit(cluster, _VERIFICATION)


def _host_name_unchecked(cluster: KafkaCluster) -> Iterator[Hit]:
    if uses_tls(cluster.config) and _text(cluster, _IDENTIFICATION).lower() == "none":
        yield _hit(cluster, _IDENTIFICATION)


CLIENT_RULES: tuple[Rule[KafkaCluster], ...] = (
    Rule(
        check="plaintext_login",
        severity=Severity.ERROR,
        why=(
            "The login and all records cross the network unencrypted: who listens can read "
            "them, and with mechanism PLAIN the password."
        ),
        remedy="security.protocol = SASL_SSL, and a listener of the brokers for it",
        find=_plaintext_login,
    ),
    Rule(
        check="login_unused",
        severity=Severity.WARNING,
        why=(
            "security.protocol, which is PLAINTEXT unless it is given, leaves these properties "
            "unused: the login is another one than was meant, or none."
        ),
        remedy="security.protocol = SASL_SSL, or take the properties out",
        find=_login_unused,
    ),
    Rule(
        check="certificate_unchecked",
        severity=Severity.ERROR,
        why=(
            "Any machine can pose as a broker: it takes the login, and its answers decide where "
            "a job continues."
        ),
        remedy="enable.ssl.certificate.verification = true, and ssl.ca.location or ssl.ca.pem",
        find=_certificate_unchecked,
    ),
    Rule(
        check="host_name_unchecked",
        severity=Severity.WARNING,
        why=(
            "A certificate of the same CA for any other machine is taken for the broker's, the "
            "other cluster's too."
        ),
        remedy=(
            "ssl.endpoint.identification.algorithm = https, and certificates that name the "
            "advertised hosts"
        ),
        find=_host_name_unchecked,
    ),
)
