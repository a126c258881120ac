"""Asks librdkafka whether it takes each property, without making a client.

librdkafka reads properties in their order and stops at the first that it refuses. With a property
that it refuses for certain at the end, no client is made, whatever stands before it.
"""

import re
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaException

from airflow_mm2_offsets.errors import did_you_mean
from airflow_mm2_offsets.kafka.client_properties.names import (
    CALLBACKS,
    KNOWN,
    NEEDS_NEWER,
    TUNING_OF_NEWER,
)
from airflow_mm2_offsets.kafka.client_properties.problem import Config, PropertyError
from airflow_mm2_offsets.kafka.client_properties.secret_names import is_secret
from airflow_mm2_offsets.kafka.config import Setting

_STEPS = {"security.protocol": "give PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"}
_LAST = "no.such.property"
_UNKNOWN = "No such configuration property"
_NAME = re.compile(r"[A-Za-z][\w.-]{0,63}")
_PLAIN_VALUE = re.compile(r"[\w.,:-]{1,32}")


def find_refused(config: Mapping[str, Setting]) -> list[PropertyError]:
    """Return what librdkafka refuses, property by property."""
    properties = {name: value for name, value in config.items() if name not in CALLBACKS}
    if _refusal(properties) is None:
        return []
    return list(_one_by_one(properties))


def drop_too_new(config: Config) -> None:
    """Leave out, in place, what only tunes and the installed librdkafka is too old for."""
    for name in TUNING_OF_NEWER & config.keys():
        if _UNKNOWN in (_refusal({name: config[name]}) or ""):
            del config[name]


def shown_name(name: str) -> str:
    """Return the name of a property as it may be shown.

    Of a PEM that was pasted without continuations, each line becomes a property of that name.
    """
    if _NAME.fullmatch(name) and ("." in name or "_" in name or len(name) < 24):  # noqa: PLR2004 - of words, not of keys
        return name
    return "a property whose name looks like a line of a key or certificate"


def _one_by_one(properties: Mapping[str, Setting]) -> Iterator[PropertyError]:
    for name, value in properties.items():
        refusal = _refusal({name: value})
        if refusal is None:
            continue
        if _UNKNOWN in refusal:
            yield PropertyError(shown_name(name), _unknown(name))
        else:
            step = _STEPS.get(name, "correct it")
            yield PropertyError(name, f"{_reason(name, value, refusal)}; {step}")


def _refusal(properties: Mapping[str, Setting]) -> str | None:
    """Return librdkafka's words; None if it takes all properties."""
    probe = {"group.id": _LAST, **properties, _LAST: ""}
    try:
        Consumer(probe)
    except KafkaException as error:
        text = error.args[0].str().strip()
        return None if _LAST in text else text
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: the value has the wrong type"
    raise AssertionError("librdkafka took a property that does not exist")


def _unknown(name: str) -> str:
    if name.startswith(NEEDS_NEWER):
        return "needs a newer confluent-kafka than the installed one; upgrade it"
    problem = "is a property of neither Kafka's Java client nor librdkafka"
    return f"{problem}; {did_you_mean(name, KNOWN, otherwise='remove it')}"


def _reason(name: str, value: Setting, refusal: str) -> str:
    text = str(value)
    if is_secret(name) or not _PLAIN_VALUE.fullmatch(text):
        return f"has a value that librdkafka refuses ({len(text)} characters)"
    return f"is {text!r}, which librdkafka refuses ({refusal})"
