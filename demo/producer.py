"""Writes uniquely numbered records in transactions, some of which it aborts."""

import json
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from uuid import uuid4

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # exported, but not said so
    AdminClient,
    OffsetSpec,
)

_SILENT = logging.getLogger(__name__)
"""A lost cluster would fill the terminal with failed connections. Errors are raised anyway."""
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
PARTITIONS = 3
BATCH = 30
"""Records of one transaction."""
PAUSE_SECONDS = 0.2
OPEN_SECONDS = 3.0
"""How long a transaction stays open before it is aborted. Meanwhile no consumer reads past its
beginning, so that the job often stops at a gap of the source."""


@dataclass(eq=False, slots=True)
class _Writing:
    """What writes to one cluster, from start to stop."""

    stopping: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)
    error: BaseException | None = None


class NumberedProducer:
    """Writes numbers 0, 1, 2, ... at a steady rate; number n goes to partition n mod 3.

    A second writer opens one transaction after the other and aborts each: consumers never get
    its records, and their offsets have no copy.
    """

    def __init__(self, topic: str) -> None:
        """Prepare a producer without starting it."""
        self._topic = topic
        self._next = 0
        self._counting = threading.Lock()
        self._writing = _Writing()
        self._abandoned: list[threading.Thread] = []
        self._transactional_ids: list[str] = []
        self._first_due = 0

    @property
    def produced(self) -> int:
        """The number after the last committed one.

        All below are committed, except that a lost cluster may not hold its last transaction.
        """
        return self._next

    @property
    def due(self) -> range:
        """The numbers that no cluster was lost with: the job must deliver each."""
        return range(self._first_due, self._next)

    def start(self, servers: str) -> None:
        """Write to a cluster from now on."""
        self._writing = writing = _Writing()
        for write in (self._write_numbers, self._write_aborted):
            producer = self._open(servers)
            writing.threads.append(
                threading.Thread(target=_run, args=(write, producer, writing), daemon=True)
            )
        for thread in writing.threads:
            thread.start()

    def stop(self) -> None:
        """Stop writing; what was written is committed.

        Raises:
            KafkaException: Writing had failed.
        """
        self._writing.stopping.set()
        for thread in self._writing.threads:
            thread.join()
        if self._writing.error is not None:
            raise self._writing.error

    def abandon(self) -> None:
        """Stop writing to a cluster that is lost, without waiting for its answers.

        The transaction that was open is uncertain: its numbers are not written again.
        """
        with self._counting:
            self._writing.stopping.set()
            self._abandoned += self._writing.threads
            self._writing = _Writing()
            self._next += BATCH
            self._first_due = self._next

    def wait_abandoned(self) -> None:
        """Wait until nothing tries to write to a lost cluster any more: it may come back then."""
        for thread in self._abandoned:
            thread.join()

    def abort_open(self, servers: str) -> None:
        """Abort the transactions that were left open on a cluster which is back.

        Until then no committed record after their beginning is delivered.
        """
        for each in self._transactional_ids:
            _make_producer(servers, each)

    def _open(self, servers: str) -> Producer:
        self._transactional_ids.append(f"demo-{uuid4()}")
        return _make_producer(servers, self._transactional_ids[-1])

    def _write_numbers(self, producer: Producer, writing: _Writing) -> None:
        while not writing.stopping.wait(PAUSE_SECONDS):
            with self._counting:
                if writing is not self._writing:
                    return
                numbers = range(self._next, self._next + BATCH)
            _begin(producer, self._topic, numbers)
            producer.commit_transaction(30)
            with self._counting:
                if writing is not self._writing:
                    return  # The cluster was given up meanwhile.
                self._next = numbers.stop

    def _write_aborted(self, producer: Producer, writing: _Writing) -> None:
        while not writing.stopping.wait(PAUSE_SECONDS):
            _begin(producer, self._topic, range(-BATCH, 0))
            writing.stopping.wait(OPEN_SECONDS)
            producer.abort_transaction(30)


def write_deleted_history(servers: str, topic: str) -> None:
    """Write records, some in aborted transactions, and delete them all.

    The source's offsets then start well above those that the target will have.
    """
    producer = _make_producer(servers, f"demo-{uuid4()}")
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


def _run(
    write: Callable[[Producer, _Writing], None], producer: Producer, writing: _Writing
) -> None:
    try:
        write(producer, writing)
    except BaseException as error:  # noqa: BLE001 - stop() raises it in the caller's thread
        writing.error = error


def _make_producer(servers: str, transactional_id: str) -> Producer:
    """Return a producer whose id has no open transaction."""
    producer = Producer(
        {"bootstrap.servers": servers, "transactional.id": transactional_id, "linger.ms": 5},
        logger=_SILENT,
    )
    producer.init_transactions(30)
    return producer


def _begin(producer: Producer, topic: str, numbers: Iterable[int]) -> None:
    producer.begin_transaction()
    for number in numbers:
        value = json.dumps({"number": number})
        producer.produce(topic, value, key=str(number), partition=number % PARTITIONS)
    producer.flush(30)
