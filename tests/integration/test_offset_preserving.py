"""Plans for a copy that keeps offsets, between two real brokers.

No product that copies so is to be had here. The copy is made by the test: what one producer does on
the source, another one does on the target, so that records, aborted transactions and markers get
the same offsets.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connection_check import check_connection
from airflow_mm2_offsets.core import (
    Basis,
    Naming,
    OffsetMapping,
    ReplicationPolicy,
    Status,
    TopicPartition,
    Translation,
)
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover, still_copying
from stack.mirror import Stack
from stack.topics import create_topic
from stack.waiting import wait_until

TIME = int(time.time() * 1000) - 1_000_000
"""Of the first record; brokers refuse times that lie in the future."""
WITHOUT_SOURCE = PlanOptions(read_source=False)


@dataclass
class Replay:
    """A producer that repeats a sequence on one broker."""

    servers: str
    topic: str
    number: int = 0
    cluster: KafkaCluster = field(init=False)
    plain: Producer = field(init=False)
    transactional: Producer = field(init=False)

    def __post_init__(self) -> None:
        servers = {"bootstrap.servers": self.servers}
        self.plain = Producer(servers | {"enable.idempotence": True})
        self.transactional = Producer(servers | {"transactional.id": self.topic})
        self.transactional.init_transactions(30)
        self.cluster = KafkaCluster(name=self.topic, config=servers)
        self.key = TopicPartition(self.topic, 0)

    def write(self, count: int, producer: Producer | None = None) -> None:
        """Write numbered records."""
        writer = producer or self.plain
        for _ in range(count):
            writer.produce(
                self.topic,
                b"%d" % self.number,
                b"key",
                0,
                timestamp=TIME + self.number,
                headers=[("number", b"%d" % self.number)],
            )
            self.number += 1
        assert writer.flush(30) == 0

    def begin(self, count: int) -> None:
        """Begin a transaction and write into it."""
        self.transactional.begin_transaction()
        self.write(count, self.transactional)

    def commit(self) -> None:
        end = self.end()
        self.transactional.commit_transaction(30)
        self._wait_for_marker(end)

    def abort(self) -> None:
        end = self.end()
        self.transactional.abort_transaction(30)
        self._wait_for_marker(end)

    def end(self) -> int:
        return self.cluster.watermarks([self.key])[self.key].high

    def _wait_for_marker(self, offset: int) -> None:
        """Wait for a transaction's end: the broker answers before it has written the marker."""
        wait_until(lambda: self.end() == offset + 1, "the marker")


Step = Callable[[Replay], None]


def _history() -> list[Step]:
    """Return 100 records, a committed and an aborted transaction, and more records."""
    steps: list[Step] = [lambda each: each.write(100)]
    for end in (Replay.commit, Replay.abort):
        steps += [lambda each: each.begin(10), end, lambda each: each.write(5)]
    return steps


@dataclass
class Pair:
    """A topic on both brokers."""

    stack: Stack
    topic: str
    source: Replay
    target: Replay

    def replay(self, steps: Sequence[Step], copied: int | None = None) -> "Pair":
        """Take steps on the source, and the first ``copied`` of them on the target."""
        for step in steps:
            step(self.source)
        for step in steps[:copied]:
            step(self.target)
        return self

    @property
    def pair(self) -> ClusterPair:
        return ClusterPair(
            source=KafkaCluster(name="source", config={"bootstrap.servers": self.stack.source}),
            target=KafkaCluster(name="target", config={"bootstrap.servers": self.stack.target}),
            naming=Naming(source_alias="a", target_alias="b", policy=ReplicationPolicy.IDENTITY),
            mapping=OffsetMapping.IDENTITY,
        )

    def translate(self, position: int, options: PlanOptions = DEFAULT_OPTIONS) -> Translation:
        plan = plan_failover(self.pair, {self.topic: {0: position}}, options=options)
        return plan.partitions[0].translation


@pytest.fixture
def copied(stack: Stack) -> Pair:
    topic = f"kept-{uuid4().hex[:8]}"
    for servers in (stack.source, stack.target):
        create_topic(servers, topic)
    return Pair(stack, topic, Replay(stack.source, topic), Replay(stack.target, topic))


def test_every_position_of_an_identical_copy_is_exact(copied: Pair) -> None:
    """Also beside and in transactions, at markers, and at the end."""
    copied.replay(_history())
    assert copied.target.end() == 100 + 11 + 5 + 11 + 5
    positions = (0, 1, 50, 99, 100, 105, 110, 111, 116, 120, 126, 127, 131, 132)
    answers = [copied.translate(position) for position in positions]
    assert [(each.status, each.target) for each in answers] == [
        (Status.EXACT, position) for position in positions
    ]
    assert {each.basis for each in answers} == {Basis.IDENTITY}
    assert still_copying(copied.pair, {copied.topic: {0: 132}}) == ()
    assert {each.part.split(":")[0] for each in check_connection(copied.pair)} == {
        "source",
        "target",
    }


def test_a_transaction_in_flight_is_waited_for(copied: Pair) -> None:
    """The copy ends before the marker: all before it may be read, nothing after its begin."""
    steps = [*_history(), lambda each: each.begin(10), Replay.commit]
    copied.replay(steps, copied=len(steps) - 1)
    assert copied.translate(132).target == 132
    refused = copied.translate(137)
    assert (refused.status, refused.basis) == (Status.REFUSED, Basis.OPEN_TRANSACTION)
    assert "a transaction is open on the target from 132 on" in refused.reason
    (waited,) = still_copying(copied.pair, {copied.topic: {0: 137}})
    assert waited.basis is Basis.OPEN_TRANSACTION
    lost = copied.translate(137, PlanOptions(read_source=False, sole_writer=True))
    assert (lost.status, lost.basis, lost.target) == (
        Status.BOUNDED,
        Basis.OPEN_TRANSACTION,
        137,
    )
    copied.target.commit()
    assert (copied.translate(137).status, copied.translate(137).target) == (Status.EXACT, 137)


def test_a_copy_that_lags(copied: Pair) -> None:
    """What is not copied yet is waited for; without the source, the copy's end is the answer."""
    copied.replay([lambda each: each.write(20), lambda each: each.write(20)], copied=1)
    assert copied.translate(15).target == 15
    assert copied.translate(20).target == 20
    assert copied.translate(30).basis is Basis.NOT_REPLICATED_YET
    assert copied.translate(30, WITHOUT_SOURCE).target == 0
    by_word = copied.translate(30, PlanOptions(read_source=False, sole_writer=True))
    assert (by_word.target, by_word.basis) == (20, Basis.BY_WORD)


def _lose_a_record(copy: Pair) -> None:
    copy.source.write(20)
    copy.target.number += 1
    copy.target.write(19)


def _drop_the_marker(copy: Pair) -> None:
    """Consume and produce, as MirrorMaker 2 and MSK Replicator do."""
    copy.source.begin(2)
    copy.source.commit()
    copy.source.write(5)
    copy.target.write(2)
    copy.target.write(5)


def _write_another_record(copy: Pair) -> None:
    copy.source.write(1)
    copy.target.plain.produce(copy.topic, b"secret", b"key", 0, timestamp=TIME + 20)
    assert copy.target.plain.flush(30) == 0


@pytest.mark.parametrize(
    ("lie", "offset", "words"),
    [
        (_lose_a_record, 20, "value, timestamp, headers differ"),
        (_drop_the_marker, 22, "the target has a record and the source has none"),
        (_write_another_record, 20, "value, headers differ"),
    ],
)
def test_a_copy_that_is_none_is_refused_by_name(
    copied: Pair, lie: Callable[[Pair], None], offset: int, words: str
) -> None:
    """With the offset and what differs, wherever the position is; never with the contents."""
    copied.replay([lambda each: each.write(20)])
    lie(copied)
    for position in (5, 20, 21):
        refused = copied.translate(position)
        assert refused.basis is Basis.NOT_IDENTICAL
        assert f"at offset {offset} of {copied.topic}[0]" in refused.reason
        assert words in refused.reason
        assert "secret" not in refused.reason


def test_a_target_that_others_write_to_is_refused(copied: Pair) -> None:
    """It ends after its original."""
    copied.replay([lambda each: each.write(20)])
    copied.target.write(1)
    refused = copied.translate(5)
    assert refused.basis is Basis.NOT_IDENTICAL
    assert "the target ends at 21, after the source's end 20" in refused.reason
