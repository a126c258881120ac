"""Topics whose records a comparison easily confuses, and what a reader gets of them."""

from collections.abc import Sequence
from typing import Any

from confluent_kafka import Producer

from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from tests.integration.mirrors import DROP, read, wait_ended

PARTITIONS = 2
Row = dict[str, Any]
CONTENTS: tuple[tuple[bytes | None, bytes | None], ...] = (
    (b"null value", None),
    (b"null value", b""),
    (None, None),
    (None, b""),
    (b"", None),
    (b"", b""),
    (b"twice", b"equal"),
    (b"twice", b"equal"),
    (None, None),
)
"""What a comparison easily confuses: some twice, some null, some empty."""


def write(cluster: KafkaCluster, topic: str, *, dropped: Sequence[int] = ()) -> None:
    """Write 40 records to each partition, amid aborted ones; ``dropped`` go to partition 0."""
    servers = cluster.config["bootstrap.servers"]
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic, "linger.ms": 5})
    producer.init_transactions(30)
    for first in (0, 20):
        producer.begin_transaction()
        for number in range(first, first + 20):
            for partition in range(PARTITIONS):
                key, value = _content(number, partition)
                headers: dict[str, str | bytes | None] = {}
                if number > 9:
                    is_dropped = partition == 0 and number in dropped
                    headers = {DROP: b""} if is_dropped else {"n": b"%d" % number}
                producer.produce(topic, value, key, partition, headers=headers)
        assert producer.flush(30) == 0
        producer.commit_transaction(30)
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(topic, b"aborted", b"key", partition)
        producer.flush(30)
        producer.abort_transaction(30)
    wait_ended(cluster, topic)


def _content(number: int, partition: int) -> tuple[bytes | None, bytes | None]:
    """Return key and value of a record."""
    if number < len(CONTENTS):
        return CONTENTS[number]
    if 24 <= number < 27:
        return b"thrice", b"equal"
    return b"key", b"%d of %d" % (number, partition)


def read_rows(cluster: KafkaCluster, topic: str) -> dict[int, list[Row]]:
    """Return what a reader of committed records gets of each partition."""
    records = read(cluster, topic, range(PARTITIONS))
    rows: dict[int, list[Row]] = {number: [] for number in range(PARTITIONS)}
    for each in records:
        key, value = each.key(), each.value()
        rows[each.partition()].append(
            {
                "key": key if key is None else key.decode(),
                "value": value if value is None else value.decode(),
                "topic": each.topic(),
                "partition": each.partition(),
                "offset": each.offset(),
                "timestamp": each.timestamp()[1] * 1000,
                "batch_id": each.offset() // 10,
            }
        )
    return rows


def number_of(row: Row) -> int | None:
    """Return the number that a record bears, of those that differ from all others."""
    number, _, partition = (row["value"] or "").partition(" of ")
    return int(number) if partition else None


def numbered(rows: Sequence[Row], *numbers: int) -> list[Row]:
    return [row for row in rows if number_of(row) in numbers]
