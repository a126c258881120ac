"""Says in a user's words what librdkafka reports: the property to correct, and the next step.

``kafka.session`` calls it for each error about a connection or a configuration.
"""

import re

from airflow_mm2_offsets.kafka.advice import Advice, Config, Rule, protocol, server_of
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS
from airflow_mm2_offsets.kafka.login_advice import LOGIN_RULES
from airflow_mm2_offsets.kafka.port_probe import takes_connections
from airflow_mm2_offsets.kafka.tls_advice import TLS_RULES

_DEFAULT = Advice((), "", "check that the brokers run, the address, and security.protocol")


def explain(report: str, config: Config) -> Advice:
    """Return what a report about a connection or a configuration means.

    It may ask the broker's port for TLS, which takes up to 4 s.

    Args:
        report: librdkafka's text; may be empty.
        config: The client's librdkafka properties.
    """
    for rule in (*LOGIN_RULES, *TLS_RULES, *_NETWORK_RULES):
        if (match := rule.pattern.search(report)) and (advice := rule.advise(match, config)):
            return advice
    return _DEFAULT


def _unknown_host(match: re.Match[str], _: Config) -> Advice:
    cause = f"the name of {match['server']} is not known here"
    return Advice((BOOTSTRAP_SERVERS,), cause, f"correct {BOOTSTRAP_SERVERS}, or the DNS")


def _advertised(match: re.Match[str], _: Config) -> Advice:
    cause = f"broker {match['id']} advertises {match['server']}, which can't be reached from here"
    step = "correct advertised.listeners of the broker, or open the network to that address"
    return Advice((), cause, step)


def _login_needed(match: re.Match[str], config: Config) -> Advice | None:
    if protocol(config).startswith("SASL"):
        return None
    server = server_of(match.string, config)
    cause = f"{server} closes the connection: it may demand a login"
    step = f"set security.protocol to SASL_{protocol(config)}, with sasl.mechanism and its login"
    return Advice(("security.protocol",), cause, step)


def _silent(match: re.Match[str], config: Config) -> Advice | None:
    server = server_of(match.string, config)
    if not takes_connections(server):
        return None
    cause = f"{server} takes connections and answers nothing"
    step = "check that it is a Kafka broker, and that no proxy or firewall stands in between"
    return Advice((BOOTSTRAP_SERVERS,), cause, step)


_NETWORK_RULES = (
    Rule(re.compile(r"Failed to resolve '(?P<server>[^']*)'"), _unknown_host),
    Rule(re.compile(r"(?P<server>[^\s/]+:\d+)/(?P<id>\d+): Connect to"), _advertised),
    # Over TLS a send may meet the end first.
    Rule(re.compile(r"Disconnected|Send failed: .*write"), _login_needed),
    Rule(re.compile(r"^$|^Failed to get metadata|[Tt]imed out"), _silent),
)
