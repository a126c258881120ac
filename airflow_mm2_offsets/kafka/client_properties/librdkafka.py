"""From a Java client's properties, or a mixture, to librdkafka's: the whole translation.

The hook calls it for the extra of a connection, the settings reader for files and variables.
"""

import logging
import re
from collections.abc import Callable, Mapping
from functools import cache, partial

from airflow_mm2_offsets.collected_errors import Problems
from airflow_mm2_offsets.kafka.client_properties import names
from airflow_mm2_offsets.kafka.client_properties.acceptance import drop_too_new, find_refused
from airflow_mm2_offsets.kafka.client_properties.login import translate_login
from airflow_mm2_offsets.kafka.client_properties.pem import translate_pem_texts
from airflow_mm2_offsets.kafka.client_properties.problem import Config, PropertyError
from airflow_mm2_offsets.kafka.client_properties.stores import check_trust, translate_stores
from airflow_mm2_offsets.kafka.client_properties.tls import translate_tls
from airflow_mm2_offsets.kafka.client_properties.values import translate_values
from airflow_mm2_offsets.kafka.config import Setting, settings_of

log = logging.getLogger(__name__)

_REFERENCE = re.compile(r"\$\{(env|file|dir|directory|vault|secrets|configmaps):[^}]+\}")
"""A value that is elsewhere (KIP-297), by the names that Kafka's docs and Strimzi's give to config
providers: no value to send."""

_STEPS: tuple[Callable[[Config], None], ...] = (
    translate_values,
    translate_tls,
    check_trust,
    translate_stores,
    translate_login,
    translate_pem_texts,
    drop_too_new,
)


def to_librdkafka(cluster: str, properties: Mapping[str, object]) -> dict[str, Setting]:
    """Return properties under librdkafka's names; their names may be Java's, librdkafka's, or both.

    Where one thing is given under both names, librdkafka's takes precedence. Properties without
    effect here are left out. Keystores and truststores are read; nothing is sent.

    Args:
        cluster: What messages call the cluster: ``source``, ``target``.
        properties: Texts, numbers and booleans; callbacks under confluent-kafka's names.

    Raises:
        ConfigurationError: Properties are unknown, wrong, or without a counterpart. One error
            names all of them, without a value that may be a secret.
    """
    settings = settings_of(cluster, properties)
    ignored = sorted(name for name in settings if names.is_ignored(name))
    _tell_ignored(cluster, tuple(ignored))
    problems = Problems()
    config: Config = {}
    for name, value in settings.items():
        if reference := _REFERENCE.search(value if isinstance(value, str) else ""):
            problems.add(PropertyError(name, _unresolved(reference[1])))
        elif name in names.REFUSED:
            problem = f"has no counterpart here: {names.REFUSED[name]}"
            problems.add(PropertyError(name, problem))
        elif name not in ignored:
            config[name] = value
    config = _rename(config)
    for step in _STEPS:
        problems.attempt(partial(step, config))
    problems.add(*find_refused(config))
    problems.raise_all(cluster=cluster)
    return config


def _unresolved(provider: str) -> str:
    return (
        f"holds a reference, ${{{provider}:...}}, that nothing resolves here; give the value "
        f"itself, by a secrets backend, a file or a variable, or declare {provider!r} in "
        f"config.providers of an mm2.properties"
    )


def _rename(config: Config) -> Config:
    librdkafkas = {name: value for name, value in config.items() if name not in names.RENAMED}
    renamed = {names.RENAMED.get(name, name): value for name, value in config.items()}
    return renamed | librdkafkas


@cache
def _tell_ignored(cluster: str, ignored: tuple[str, ...]) -> None:
    """Log the names once in the life of a process: connections are read for each request."""
    if ignored:
        log.info(
            "%s: these client properties have no effect here, and are ignored: %s",
            cluster,
            ", ".join(ignored),
        )
