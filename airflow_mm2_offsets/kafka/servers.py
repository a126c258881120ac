"""The addresses of ``bootstrap.servers``."""

from dataclasses import dataclass

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS

DEFAULT_PORT = 9092
"""librdkafka's, for a server without a port."""


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return host:port, as in ``bootstrap.servers``."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_servers(cluster: str, text: str) -> tuple[Server, ...]:
    """Return the addresses of ``bootstrap.servers``.

    librdkafka takes ``host``, ``host:port``, ``[IPv6]:port`` and ``PROTOCOL://host:port``.

    Raises:
        ConfigurationError: A port is not a number from 1 to 65,535; ``cluster`` is named.
    """
    return tuple(_parse(cluster, each.strip()) for each in text.split(",") if each.strip())


def _parse(cluster: str, text: str) -> Server:
    address = text.rpartition("://")[2]
    if address.startswith("["):
        host, _, port = address.removeprefix("[").partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = address.partition(":")
    number = _port(port)
    if not host or number is None:
        raise ConfigurationError(
            f"{BOOTSTRAP_SERVERS} has {text!r}; give host:port, with a port from 1 to 65535",
            cluster=cluster,
        )
    return Server(host, number)


def _port(text: str) -> int | None:
    """Return a port; None if the text is not one."""
    if not text:
        return DEFAULT_PORT
    number = int(text) if text.isdecimal() else 0
    return number if 0 < number < 1 << 16 else None
