"""Rules about delivery: is each record copied once, in order, and only if it was committed?"""

from collections.abc import Iterator

from airflow_mm2_offsets.doctor.finding import Hit, Rule, Severity
from airflow_mm2_offsets.doctor.hits import CONNECTOR_CLASS, hit_of
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
_EXACTLY_ONCE = {
    "exactly.once.support": "required",
    "exactly.once.source.support": "enabled",
    "target.cluster.exactly.once.source.support": "enabled",
}
"""The connector's setting (KIP-618), and its worker's in the dedicated mode (KIP-710)."""


def _client_setting(connector: MirrorConnector, prefixes: tuple[str, ...], name: str) -> str:
    """Return the full name of a client's setting: the one that counts, or the one to set."""
    names = [f"{prefix}{name}" for prefix in prefixes]
    return next((each for each in names if each in connector.config), names[0])


def _producer_setting(connector: MirrorConnector, name: str) -> str:
    others = () if CONNECTOR_CLASS in connector.config else _WORKERS
    return _client_setting(connector, (_OVERRIDE, *others), name)


def _exactly_once(connector: MirrorConnector) -> Iterator[str]:
    for name, value in _EXACTLY_ONCE.items():
        if connector.text(name).lower() == value:
            yield name


def _reads_uncommitted(connector: MirrorConnector) -> bool:
    name = _client_setting(connector, _CONSUMER, _ISOLATION)
    return connector.tells(name) and connector.text(name).lower() != "read_committed"


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
    return not connector.tells(name) or bool(connector.flag(name)) or any(_exactly_once(connector))


def _skips_old_records(connector: MirrorConnector) -> Iterator[Hit]:
    name = _client_setting(connector, _CONSUMER, _RESET)
    if connector.text(name).lower() == "latest":
        yield hit_of(connector, name)


DELIVERY_RULES: tuple[Rule[MirrorConnector], ...] = (
    Rule(
        check="exactly_once_refused",
        severity=Severity.ERROR,
        why=(
            "MirrorMaker 2 offers exactly-once only to a consumer that reads committed records: "
            "where it is required, Connect refuses the connector."
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
