"""Rules about the content of records: are they copied byte for byte, and to the right topic?"""

from collections.abc import Iterator

from airflow_mm2_offsets.doctor.finding import Hit, Rule, Severity
from airflow_mm2_offsets.doctor.hits import CONNECTOR_CLASS, hit_of
from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector

_TOLERANCE = "errors.tolerance"
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_CONVERTERS = ("key.converter", "value.converter", "header.converter")
_ROUTERS = ("Router", "ExtractTopic")
"""How the classes of transforms end that send records to another topic."""


def _errors_tolerated(connector: MirrorConnector) -> Iterator[Hit]:
    if connector.text(_TOLERANCE).lower() == "all":
        yield hit_of(connector, _TOLERANCE)


def _is_router(kind: str) -> bool:
    return kind.endswith(_ROUTERS)


def _routed(connector: MirrorConnector) -> Iterator[Hit]:
    for name, kind in connector.transforms.items():
        if _is_router(kind):
            yield hit_of(connector, f"transforms.{name}.type")


def _changed(connector: MirrorConnector) -> Iterator[Hit]:
    if connector.changes_records:
        for name, kind in connector.transforms.items():
            if not kind.endswith(".Filter") and not _is_router(kind):
                yield hit_of(connector, f"transforms.{name}.type")


def _filtered(connector: MirrorConnector) -> Iterator[Hit]:
    for name, kind in connector.transforms.items():
        if kind.endswith(".Filter"):
            yield hit_of(connector, f"transforms.{name}.type")


def _converted(connector: MirrorConnector) -> Iterator[Hit]:
    for name in _CONVERTERS:
        kind = connector.text(name)
        if kind and kind.rpartition(".")[2] not in {"ByteArrayConverter", "ByteArray"}:
            yield hit_of(connector, name, subject=name)


def _workers_converter(connector: MirrorConnector) -> Iterator[Hit]:
    # MirrorMaker 2's dedicated mode and Strimzi give their workers the right converters.
    if CONNECTOR_CLASS in connector.config:
        for name in _CONVERTERS:
            if name not in connector.config:
                yield Hit(f"{name} is not set in {connector.name}", name)


RECORD_RULES: tuple[Rule[MirrorConnector], ...] = (
    Rule(
        check="errors_tolerated",
        severity=Severity.ERROR,
        why=(
            "A record that can't be converted or written is dropped without a sign, and "
            "MirrorMaker 2 goes on: the target lacks it, and no check can tell."
        ),
        remedy="errors.tolerance = none",
        find=_errors_tolerated,
    ),
    Rule(
        check="topic_routed",
        severity=Severity.ERROR,
        why=(
            "The transform writes to topics that the replication policy does not name: a position "
            "would be translated into another topic, or into an empty one."
        ),
        remedy="take the transform out; rename topics by replication.policy.class alone",
        find=_routed,
    ),
    Rule(
        check="records_converted",
        severity=Severity.ERROR,
        why=(
            "Keys, values or headers are not copied byte for byte: jobs read other bytes, and a "
            "record can't be found on the target by its content."
        ),
        remedy=f"{{subject}} = {_BYTES}",
        find=_converted,
    ),
    Rule(
        check="converter_of_worker",
        severity=Severity.WARNING,
        why=(
            "The Connect worker's converter counts, often one for JSON or Avro: then copies are "
            "not byte for byte, and a record can't be found on the target by its content."
        ),
        remedy=f"{{subject}} = {_BYTES}",
        find=_workers_converter,
    ),
    Rule(
        check="records_changed",
        severity=Severity.WARNING,
        why=(
            "A transform may change records: they can't be found on the target by their content, "
            "so more answers are BOUNDED and more records are read again."
        ),
        remedy="take the transform out, and change records in the job",
        find=_changed,
    ),
    Rule(
        check="records_filtered",
        severity=Severity.NOTE,
        why=(
            "Dropped records leave gaps between offset syncs: answers are BOUNDED more often, and "
            "a position at the end is proven only after the next copied record."
        ),
        remedy="nothing; set quiet_after, so that a wait for a last dropped record ends",
        find=_filtered,
    ),
)
