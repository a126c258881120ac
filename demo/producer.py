"""Writes uniquely numbered records in transactions, some of which it aborts."""

import json
import threading
from collections.abc import Callable, Iterable
from uuid import uuid4

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # exported, but not said so
    AdminClient,
    OffsetSpec,
)

PARTITIONS = 3
BATCH = 30
"""Records of one transaction."""
PAUSE_SECONDS = 0.2
OPEN_SECONDS = 3.0
"""How long a transaction stays open before it is aborted. Meanwhile no consumer reads past its
beginning, so that the job often stops at a gap of the source."""


class NumberedProducer:
    """Writes numbers 0, 1, 2, ... at a steady rate; number n goes to partition n mod 3.

    A second writer opens one transaction after the other and aborts each: consumers never get
    its records, and their offsets have no copy.
    """

    def __init__(self, topic: str) -> None:
        """Prepare a producer without starting it."""
        self._topic = topic
        self._next = 0
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._error: BaseException | None = None

    @property
    def produced(self) -> int:
        """How many numbers were committed: all below this one."""
        return self._next

    def start(self, servers: str) -> None:
        """Write to a cluster from now on."""
        self._stopping.clear()
        self._threads = [
            threading.Thread(target=self._run, args=(write, servers), daemon=True)
            for write in (self._write_numbers, self._write_aborted)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop writing; what was written is committed.

        Raises:
            KafkaException: Writing had failed.
        """
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        if self._error is not None:
            raise self._error

    def _run(self, write: Callable[[Producer], None], servers: str) -> None:
        try:
            write(_open(servers))
        except BaseException as error:  # noqa: BLE001 - stop() raises it in the caller's thread
            self._error = error

    def _write_numbers(self, producer: Producer) -> None:
        while not self._stopping.wait(PAUSE_SECONDS):
            numbers = range(self._next, self._next + BATCH)
            _begin(producer, self._topic, numbers)
            producer.commit_transaction(30)
            self._next = numbers.stop

    def _write_aborted(self, producer: Producer) -> None:
        while not self._stopping.wait(PAUSE_SECONDS):
            _begin(producer, self._topic, range(-BATCH, 0))
            self._stopping.wait(OPEN_SECONDS)
            producer.abort_transaction(30)


def write_deleted_history(servers: str, topic: str) -> None:
    """Write records, some in aborted transactions, and delete them all.

    The source's offsets then start well above those that the target will have.
    """
    producer = _open(servers)
    for number in range(12):
        _begin(producer, topic, range(-BATCH, 0))
        if number % 3:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    admin = AdminClient({"bootstrap.servers": servers})
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    ends = admin.list_offsets(dict.fromkeys(partitions, latest))
    deletions = admin.delete_records(
        [TopicPartition(topic, key.partition, end.result(30).offset) for key, end in ends.items()]
    )
    for deletion in deletions.values():
        deletion.result(30)


def _open(servers: str) -> Producer:
    producer = Producer(
        {"bootstrap.servers": servers, "transactional.id": f"demo-{uuid4()}", "linger.ms": 5}
    )
    producer.init_transactions(30)
    return producer


def _begin(producer: Producer, topic: str, numbers: Iterable[int]) -> None:
    producer.begin_transaction()
    for number in numbers:
        value = json.dumps({"number": number})
        producer.produce(topic, value, key=str(number), partition=number % PARTITIONS)
    producer.flush(30)
