"""Plans of a failover with the source up, held against the truth on a real MirrorMaker 2."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random

import pytest
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.core import Basis, Status, Translation, Watermarks
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.service.planning import plan_failover, still_copying
from stack.mirror import Stack
from stack.waiting import wait_until
from tests.integration.mirrors import FILTER, Mirror, Writer, mirror, read

TRANSACTIONS, DELETED, FILTERED, ENDS_IN_MARKERS, EQUAL, SHORT, ENDS_ABORTED, UNUSED = range(8)
BUSY = (TRANSACTIONS, DELETED, FILTERED, ENDS_IN_MARKERS)
LAG_MAX = 100
PLANS = 40

Values = dict[int, bytes | None]


@dataclass(frozen=True, kw_only=True)
class History:
    """A topic that was copied to its end, and what became of its records."""

    mirror: Mirror
    topic: str
    held: dict[int, Watermarks]
    """What the source holds of each partition."""
    target_ends: dict[int, int]
    source: dict[int, Values]
    target: dict[int, Values]

    @classmethod
    def of(cls, mirror: Mirror, topic: str) -> "History":
        pair, places = mirror.pair, [(topic, number) for number in range(8)]
        target = pair.target.watermarks(places)
        return cls(
            mirror=mirror,
            topic=topic,
            held={number: each for (_, number), each in pair.source.watermarks(places).items()},
            target_ends={number: each.high for (_, number), each in target.items()},
            source=_values(pair.source, places),
            target=_values(pair.target, places),
        )

    @cached_property
    def copies(self) -> dict[int, dict[int, list[int]]]:
        """Where on the target each record of each partition is, by its source offset."""
        return {number: self._copies(number) for number in self.held}

    def _copies(self, partition: int) -> dict[int, list[int]]:
        source, target = self.source[partition], self.target[partition]
        if partition == EQUAL:
            return _in_order(source, target)
        places: dict[bytes | None, list[int]] = {}
        for offset, value in target.items():
            places.setdefault(value, []).append(offset)
        return {offset: places[value] for offset, value in source.items() if value in places}

    def truth(self, partition: int, position: int) -> int:
        """Return the largest target position that misses no record from ``position`` on."""
        copies = self.copies[partition].items()
        wanted = (max(places) for offset, places in copies if offset >= position)
        return min(wanted, default=self.target_ends[partition])

    def copied_again(self, answer: Translation) -> bool:
        """Tell whether a position is among the records that a restart copied again, or near."""
        twice = [at for at, places in self.copies[answer.partition].items() if len(places) > 1]
        return bool(twice) and twice[0] - LAG_MAX <= answer.position <= twice[-1]


def _values(cluster: KafkaCluster, places: list[tuple[str, int]]) -> dict[int, Values]:
    found: dict[int, Values] = {number: {} for _, number in places}
    for record in read(cluster, dict.fromkeys(places, 0)):
        found[record.partition()][record.offset()] = record.value()
    return found


def _in_order(source: Values, target: Values) -> dict[int, list[int]]:
    """Tell equal records apart by their order: all was copied, and all from one record on twice.

    Where several records can be that one it is the last, which makes for the lowest truth.
    """
    more = len(target) - len(source)
    values, copied, places = list(source.values()), list(target.values()), list(target)
    first = max(
        index
        for index in range(len(values) + 1)
        if copied == values[: index + more] + values[index:]
    )
    once = dict(zip(source, ([place] for place in places[: first + more]), strict=False))
    for offset, place in zip(list(source)[first:], places[first + more :], strict=True):
        once.setdefault(offset, []).append(place)
    return once


@pytest.fixture(scope="module")
def history(stack: Stack) -> Iterator[History]:
    """Return a history with all that makes offsets differ, MirrorMaker 2 killed in between."""
    with mirror(stack) as made:
        topic = made.create_topic(8)
        writer, random = Writer(made, topic), Random(5)  # noqa: S311 - repeatable, not secret
        _write(writer, random, rounds=15)
        writer.write({SHORT: 7})
        _delete(stack, Place(topic, DELETED, 100))
        made.configure(**FILTER, **{"offset.lag.max": LAG_MAX})
        # Nothing of it is copied again after the kill, and all that comes next is.
        wait_until(lambda: made.has_noted(writer), f"MirrorMaker 2 to note its copy of {topic}")
        _write(writer, random, rounds=15)
        wait_until(lambda: made.has_copied(writer), f"more of {topic} on the target")
        stack.kill_connect()
        _write(writer, random, rounds=5)
        stack.start_connect()
        # As far as MirrorMaker 2 may have been before, whatever its syncs show of that.
        _write(writer, random, rounds=20)
        _end(writer)
        wait_until(lambda: made.has_copied(writer), f"the rest of {topic} on the target")
        positions = {topic: made.ends(topic)}
        wait_until(lambda: not still_copying(made.pair, positions), "MirrorMaker 2 to be done")
        yield History.of(made, topic)


def _write(writer: Writer, random: Random, *, rounds: int) -> None:
    for _ in range(rounds):
        counts = {partition: random.randint(1, 20) for partition in BUSY}
        if random.random() < 0.3:
            writer.abort(counts)
        else:
            writer.begin(counts)
            writer.commit()
        writer.write({partition: random.randint(0, 15) for partition in BUSY})
        writer.write({FILTERED: random.randint(0, 12)}, drop=True)
        writer.write_equal(EQUAL, [random.randint(0, 3) for _ in range(random.randint(0, 10))])
        writer.write({EQUAL: random.randint(1, 4)})


def _end(writer: Writer) -> None:
    writer.begin({ENDS_ABORTED: 40, ENDS_IN_MARKERS: 5, FILTERED: 3, SHORT: 2})
    writer.commit()
    writer.abort({ENDS_ABORTED: 30})
    writer.abort({ENDS_ABORTED: 3})


def _delete(stack: Stack, before: Place) -> None:
    admin = AdminClient({"bootstrap.servers": stack.source})
    admin.delete_records([before])[before].result(timeout=30)


@pytest.fixture(scope="module")
def answers(history: History) -> list[Translation]:
    """Return answers for positions of every partition from its first offset to its end."""

    def plan(number: int) -> list[Translation]:
        wanted = {
            partition: marks.low + (marks.high - marks.low) * number // (PLANS - 1)
            for partition, marks in history.held.items()
        }
        plan = plan_failover(history.mirror.pair, {history.topic: wanted})
        return [each.translation for each in plan.partitions]

    with ThreadPoolExecutor(4) as pool:
        return [answer for answers in pool.map(plan, range(PLANS)) for answer in answers]


def test_the_history_is_no_easy_one(history: History) -> None:
    """Records were deleted, aborted, filtered, copied twice and are equal: offsets differ."""
    assert history.held[DELETED].low == 100
    assert max(map(len, history.copies[TRANSACTIONS].values())) == 2
    assert len(history.copies[FILTERED]) < len(history.source[FILTERED])
    assert len(set(history.source[EQUAL].values())) < len(history.source[EQUAL])
    for partition in BUSY:
        shifts = {places[0] - at for at, places in history.copies[partition].items()}
        assert len(shifts) > 5


def test_no_answer_loses_a_record(history: History, answers: list[Translation]) -> None:
    """Every position has an answer, and none is above the truth, nor bounds it too low."""
    assert {answer.status for answer in answers} <= {Status.EXACT, Status.BOUNDED}
    above = [
        answer
        for answer in answers
        if (answer.target or 0) > history.truth(answer.partition, answer.position)
    ]
    assert above == []


@pytest.mark.parametrize("partition", [each for each in range(8) if each != EQUAL])
def test_records_that_differ_are_found_exactly(
    history: History, answers: list[Translation], partition: int
) -> None:
    """Every position is EXACT and true, but for records that a restart copied again."""
    judged = [
        answer
        for answer in answers
        if answer.partition == partition and not history.copied_again(answer)
    ]
    assert len(judged) > PLANS / 2
    wrong = [
        answer
        for answer in judged
        if answer.status is not Status.EXACT
        or answer.target != history.truth(partition, answer.position)
    ]
    assert wrong == []


@pytest.mark.parametrize("asked", [True, False])
def test_ends_are_exact_when_all_is_copied(history: History, *, asked: bool) -> None:
    """Whatever a partition ends with, its end is the target's, with Connect asked or not."""
    pair = history.mirror.pair
    plan = plan_failover(
        pair if asked else replace(pair, connect=None),
        {history.topic: {number: marks.high for number, marks in history.held.items()}},
    )
    found = [each.translation for each in plan.partitions]
    assert {(each.status, each.basis) for each in found} == {(Status.EXACT, Basis.DRAINED)}
    assert {each.partition: each.target for each in found} == history.target_ends


def test_an_open_transaction_is_not_nothing(stack: Stack) -> None:
    """Where MM2 has copied records that are not committed yet, no answer lies behind them."""
    with mirror(stack) as made:
        topic = made.create_topic(1)
        made.configure(**{"consumer.isolation.level": "read_uncommitted"})
        writer = Writer(made, topic)
        writer.write({0: 10})
        wait_until(lambda: made.has_noted(writer), f"MirrorMaker 2 to note its copy of {topic}")
        writer.begin({0: 5})
        wait_until(lambda: made.has_copied(writer), "the open transaction on the target")
        plan = plan_failover(made.pair, {topic: {0: 10}})
        writer.commit()
    (answer,) = (each.translation for each in plan.partitions)
    assert answer.target is not None
    assert answer.target <= 10
