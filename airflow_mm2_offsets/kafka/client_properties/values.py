"""Values that Java's client takes and librdkafka does not, of properties that mean the same.

``librdkafka`` calls ``translate_values`` after the names were translated.
"""

from collections.abc import Mapping

from airflow_mm2_offsets.kafka.client_properties.problem import Config, PropertyError, as_text
from airflow_mm2_offsets.kafka.client_properties.secret_names import is_secret
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS

_REPLACED: Mapping[str, Mapping[str, str]] = {
    # The default until Kafka 2.5; 3.0 removed it.
    "client.dns.lookup": {"default": "use_all_dns_ips"},
    # In Java -1 leaves the size to the operating system, and never closes an idle connection.
    "connections.max.idle.ms": {"-1": "0"},
    # librdkafka takes all of these; who looks whether certificates are verified reads one.
    "enable.ssl.certificate.verification": {"0": "false", "f": "false", "F": "false"},
    "socket.receive.buffer.bytes": {"-1": "0"},
    "socket.send.buffer.bytes": {"-1": "0"},
}
_RANGES: Mapping[str, tuple[int, int]] = {
    "connections.max.idle.ms": (0, 2_147_483_647),
    "fetch.wait.max.ms": (0, 300_000),
    "metadata.max.age.ms": (1, 86_400_000),
    "metadata.recovery.rebootstrap.trigger.ms": (0, 2_147_483_647),
    "reconnect.backoff.max.ms": (0, 3_600_000),
    "reconnect.backoff.ms": (0, 3_600_000),
    "retry.backoff.max.ms": (1, 300_000),
    "retry.backoff.ms": (1, 300_000),
    "sasl.kerberos.min.time.before.relogin": (0, 86_400_000),
    "socket.connection.setup.timeout.ms": (1_000, 2_147_483_647),
    "socket.receive.buffer.bytes": (0, 100_000_000),
    "socket.send.buffer.bytes": (0, 100_000_000),
    "socket.timeout.ms": (10, 300_000),
}
"""librdkafka's ranges of times in ms and sizes in bytes; Java's are wider, and mean as much."""


def translate_values(config: Config) -> None:
    """Replace values, in place, by those that librdkafka takes for the same.

    Raises:
        PropertyError: A login stands in ``bootstrap.servers``.
    """
    for name, value in config.items():
        if isinstance(value, str) and not is_secret(name):
            # Java's ConfigDef trims each value.
            config[name] = value.strip()
    for name, replaced in _REPLACED.items():
        if name in config:
            config[name] = replaced.get(as_text(config[name]), config[name])
    for name, (low, high) in _RANGES.items():
        if name in config and _is_whole(as_text(config[name])):
            config[name] = str(min(max(int(as_text(config[name])), low), high))
    servers = config.get(BOOTSTRAP_SERVERS)
    if isinstance(servers, str):
        if "@" in servers:
            # Messages show the servers.
            raise PropertyError(
                BOOTSTRAP_SERVERS,
                "contains a login; give host:port alone, and the login as sasl.username and "
                "sasl.password",
            )
        config[BOOTSTRAP_SERVERS] = ",".join(filter(None, map(str.strip, servers.split(","))))


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit()
