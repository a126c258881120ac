"""Rules about copied records: are they all copied, once, in order, and unchanged?"""

from collections.abc import Iterator

from airflow_mm2_offsets.doctor.finding import Hit, Rule, Severity
from airflow_mm2_offsets.doctor.hits import hit_of
from airflow_mm2_offsets.planning.mirror_connector import MirrorConnector

_CONSUMER = ("source.consumer.", "consumer.")
"""Of ``MirrorConnectorConfig.sourceConsumerConfig``, the one that counts more first."""
_OVERRIDE = "producer.override."
_WORKERS = ("target.producer.", "target.cluster.producer.")
"""What the dedicated mode (``B.producer.*``) and Strimzi (``clusters.config``) give their worker.

To a connector on another Connect, these are settings of the producer of offset syncs alone.
"""
_ISOLATION, _RESET = "isolation.level", "auto.offset.reset"
_IDEMPOTENCE, _IN_FLIGHT = "enable.idempotence", "max.in.flight.requests.per.connection"
_TOLERANCE = "errors.tolerance"
_EXACTLY_ONCE = {
    "exactly.once.support": "required",
    "exactly.once.source.support": "enabled",
    "target.cluster.exactly.once.source.support": "enabled",
}
"""The connector's setting (KIP-618), and its worker's in the dedicated mode (KIP-710)."""
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_CONVERTERS = ("key.converter", "value.converter", "header.converter")
_CLASS = "connector.class"
_ROUTERS = ("Router", "ExtractTopic")
"""How the classes of transforms end that send records to another topic."""


def _client_setting(connector: MirrorConnector, prefixes: tuple[str, ...], name: str) -> str:
    """Return the full name of a client's setting: the one that counts, or the one to set."""
    names = [f"{prefix}{name}" for prefix in prefixes]
    return next((each for each in names if each in connector.config), names[0])


def _producer_setting(connector: MirrorConnector, name: str) -> str:
    others = () if _CLASS in connector.config else _WORKERS
    return _client_setting(connector, (_OVERRIDE, *others), name)


def _exactly_once(connector: MirrorConnector) -> Iterator[str]:
    for name, value in _EXACTLY_ONCE.items():
        if connector.text(name).lower() == value:
            yield name


def _errors_tolerated(connector: MirrorConnector) -> Iterator[Hit]:
    if connector.text(_TOLERANCE).lower() == "all":
        yield hit_of(connector, _TOLERANCE)


def _reads_uncommitted(connector: MirrorConnector) -> bool:
    name = _client_setting(connector, _CONSUMER, _ISOLATION)
    is_told = name not in connector.config or bool(connector.text(name))
    return is_told and connector.text(name).lower() != "read_committed"


def _exactly_once_refused(connector: MirrorConnector) -> Iterator[Hit]:
    if _reads_uncommitted(connector):
        for name in _exactly_once(connector):
            yield hit_of(connector, name)


def _aborted_copied(connector: MirrorConnector) -> Iterator[Hit]:
    if _reads_uncommitted(connector):
        name = _client_setting(connector, _CONSUMER, _ISOLATION)
        value = connector.text(name) or "read_uncommitted (the default)"
        yield Hit(f"{name} = {value} in {connector.name}")


def _transactions(connector: MirrorConnector) -> Iterator[Hit]:
    for name in _exactly_once(connector):
        yield hit_of(connector, name)


def _may_reorder(connector: MirrorConnector) -> Iterator[Hit]:
    name = _producer_setting(connector, _IN_FLIGHT)
    if (connector.number(name) or 1) > 1 and not _is_idempotent(connector):
        yield hit_of(connector, name)


def _may_duplicate(connector: MirrorConnector) -> Iterator[Hit]:
    if not _is_idempotent(connector):
        name = _producer_setting(connector, _IDEMPOTENCE)
        value = connector.text(name) or "false (Connect's default)"
        yield Hit(f"{name} = {value} in {connector.name}")


def _is_idempotent(connector: MirrorConnector) -> bool:
    name = _producer_setting(connector, _IDEMPOTENCE)
    is_elsewhere = name in connector.config and not connector.text(name)
    return is_elsewhere or bool(connector.flag(name)) or any(_exactly_once(connector))


def _skips_old_records(connector: MirrorConnector) -> Iterator[Hit]:
    name = _client_setting(connector, _CONSUMER, _RESET)
    if connector.text(name).lower() == "latest":
        yield hit_of(connector, name)


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
    if _CLASS in connector.config:
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
        check="exactly_once_refused",
        severity=Severity.ERROR,
        why=(
            "MirrorMaker 2 offers exactly-once only to a consumer that reads committed records: "
            "Connect refuses the connector, or copies without it."
        ),
        remedy="source.consumer.isolation.level = read_committed",
        find=_exactly_once_refused,
    ),
    Rule(
        check="records_reordered",
        severity=Severity.ERROR,
        why=(
            "A batch that is sent again lands behind a later one: a record at or after a job's "
            "position may lie before the translated one, and the job never reads it."
        ),
        remedy=(
            "producer.override.enable.idempotence = true, or "
            "producer.override.max.in.flight.requests.per.connection = 1 "
            "(in mm2.properties: B.producer... for the target B)"
        ),
        find=_may_reorder,
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
        check="aborted_copied",
        severity=Severity.WARNING,
        why=(
            "Records of aborted transactions are copied as if they were committed: a job that "
            "reads committed records on the source meets them on the target."
        ),
        remedy="source.consumer.isolation.level = read_committed",
        find=_aborted_copied,
    ),
    Rule(
        check="old_records_skipped",
        severity=Severity.WARNING,
        why=(
            "Where MirrorMaker 2 has no offset, or its offset has expired, it goes on at the end: "
            "what lies before is never copied."
        ),
        remedy="source.consumer.auto.offset.reset = earliest",
        find=_skips_old_records,
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
    Rule(
        check="transactions_on_target",
        severity=Severity.NOTE,
        why=(
            "Transaction markers take offsets of the target: equal steps of source and target "
            "prove nothing, and the planner reads the target's records to tell."
        ),
        remedy="nothing; let the planner's user read the target's topics",
        find=_transactions,
    ),
    Rule(
        check="duplicates_possible",
        severity=Severity.NOTE,
        why=(
            "A batch whose answer came too late is written twice: the planner counts with extra "
            "offsets on the target, and the job may read records twice."
        ),
        remedy=(
            "producer.override.enable.idempotence = true "
            "(in mm2.properties: B.producer.enable.idempotence for the target B)"
        ),
        find=_may_duplicate,
    ),
)
