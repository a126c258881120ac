"""What advice on a failed connection is made of; ``login_advice`` and ``tls_advice`` give it.

Others ask it for a configuration's protocol and mechanism, which have defaults and two names.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS
from airflow_mm2_offsets.kafka.servers import Server, parse_servers

Config: TypeAlias = Mapping[str, object]
"""A client's librdkafka properties. No value of a secret one is quoted in advice."""


class Advice(NamedTuple):
    """What a report of librdkafka means."""

    settings: tuple[str, ...]
    """librdkafka's names of the properties to look at; empty if it is not about one."""
    cause: str
    """What is wrong; empty if the report itself says it."""
    step: str
    """What to do next."""
    blames_settings: bool = False
    """Whether a broker answered, and these settings can't work with it."""


class Rule(NamedTuple):
    """Which reports are advised on, and how; None declines one."""

    pattern: re.Pattern[str]
    advise: Callable[[re.Match[str], Config], Advice | None]


_REPORTED = re.compile(r"(?:\w+://)?(?P<server>[^\s/]+:\d+)/(?:bootstrap|\d+)")


def server_of(report: str, config: Config) -> Server:
    """Return the address that a report is about; the first configured one if it names none."""
    match = _REPORTED.search(report)
    return parse_servers("", match["server"] if match else str(config[BOOTSTRAP_SERVERS]))[0]


def mechanism(config: Config) -> str:
    """Return the SASL mechanism that is set, or an empty text."""
    return str(config.get("sasl.mechanism") or config.get("sasl.mechanisms") or "")


def protocol(config: Config) -> str:
    """Return ``security.protocol`` as Kafka writes it."""
    return str(config.get("security.protocol") or "PLAINTEXT").upper()


def uses_tls(config: Config) -> bool:
    """Tell whether the client speaks TLS."""
    return protocol(config).endswith("SSL")
