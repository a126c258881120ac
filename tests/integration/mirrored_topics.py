"""Topics whose offsets differ after a copy by real MirrorMaker 2, and the true answers."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from random import Random

from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient

from airflow_mm2_offsets.core import Status, Translation, Watermarks
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.syncs import read_syncs
from airflow_mm2_offsets.planning.plan import plan_failover
from stack.mirror import Stack
from stack.waiting import wait_until
from tests.integration.mirrors import (
    FILTER,
    Mirror,
    Writer,
    read,
    topic_partitions,
    wait_copied,
)

TRANSACTIONS, DELETED, FILTERED, ENDS_IN_MARKERS, EQUAL, SHORT, ENDS_ABORTED, UNUSED = range(8)
PARTITIONS = 8
BUSY = (TRANSACTIONS, DELETED, FILTERED, ENDS_IN_MARKERS)
LAG_MAX = 100
PLANS = 40

Values = dict[int, bytes | None]


@dataclass(frozen=True, kw_only=True)
class MirroredTopic:
    """A topic that was copied to its end, with its records on both clusters."""

    mirror: Mirror
    topic: str
    watermarks: dict[int, Watermarks]
    """Of each partition, on the source."""
    target_ends: dict[int, int]
    source: dict[int, Values]
    target: dict[int, Values]
    syncs: dict[int, set[tuple[int, int]]]

    @classmethod
    def of(cls, mirror: Mirror, topic: str) -> "MirroredTopic":
        pair, partitions = mirror.pair, topic_partitions(topic, range(PARTITIONS))
        target = pair.target.watermarks(partitions)
        syncs: dict[int, set[tuple[int, int]]] = {number: set() for number in range(PARTITIONS)}
        for key, each in read_syncs(pair.syncs_cluster, pair.syncs_topic).index.partitions.items():
            if key.topic == topic:
                syncs[key.partition].update(zip(each.upstream, each.downstream, strict=True))
        return cls(
            mirror=mirror,
            topic=topic,
            watermarks={
                number: each for (_, number), each in pair.source.watermarks(partitions).items()
            },
            target_ends={number: each.high for (_, number), each in target.items()},
            source=_values(pair.source, topic),
            target=_values(pair.target, topic),
            syncs=syncs,
        )

    @cached_property
    def copies(self) -> dict[int, dict[int, list[int]]]:
        """The target offsets of each record, by partition and source offset."""
        return {number: self._copies(number) for number in self.watermarks}

    def _copies(self, partition: int) -> dict[int, list[int]]:
        source, target = self.source[partition], self.target[partition]
        if partition == EQUAL:
            return _in_order(source, target, self.syncs[partition])
        target_offsets: dict[bytes | None, list[int]] = {}
        for offset, value in target.items():
            target_offsets.setdefault(value, []).append(offset)
        return {
            offset: target_offsets[value]
            for offset, value in source.items()
            if value in target_offsets
        }

    def is_shown(self, partition: int, position: int) -> bool:
        """Tell whether a sync shows where the copying began that a position lies in.

        MirrorMaker 2 notes the first record that it copies after a start. On a busy machine many
        syncs wait to be sent, and a later one of the same partition takes the place of the first.
        """
        return not any(position in hidden for hidden in self._hidden(partition).values())

    def is_counted(self, partition: int, position: int) -> bool:
        """Tell whether the syncs' numbers show where a position's records were copied again.

        Where no sync shows that MirrorMaker 2 went back, the target must have grown by more than
        the source there. The source's markers and filtered records can outweigh the copies.
        """
        ends = self.watermarks[partition].high, self.target_ends[partition]
        syncs = sorted([*self.syncs[partition], ends], key=itemgetter(1))
        hidden = self._hidden(partition).items()
        begins = [to for to, positions in hidden if position in positions]
        return not any(
            next_down - down <= next_up - up and any(down < to < next_down for to in begins)
            for (up, down), (next_up, next_down) in pairwise(syncs)
        )

    def _hidden(self, partition: int) -> dict[int, range]:
        """Return the positions between each beginning without a sync and the next sync.

        The key is the target offset of the beginning.
        """
        syncs = self.syncs[partition]
        copied = sorted((to, at) for at, copies in self.copies[partition].items() for to in copies)
        hidden = {}
        for (_, before), (to, at) in pairwise([(-1, MAX_OFFSET), *copied]):
            if at <= before and (at, to) not in syncs:
                later = (upstream for upstream, downstream in syncs if downstream > to)
                # Before the first known sync any record may have been copied: no position is
                # exact until Connect has noted that MirrorMaker 2 has come past all of them.
                is_first = before == MAX_OFFSET
                hidden[to] = (
                    range(MAX_OFFSET) if is_first else range(at, min(later, default=MAX_OFFSET))
                )
        return hidden

    def truth(self, partition: int, position: int) -> int:
        """Return the largest target position that misses no record from ``position`` on."""
        copies = self.copies[partition].items()
        last_copies = (
            max(target_offsets) for offset, target_offsets in copies if offset >= position
        )
        return min(last_copies, default=self.target_ends[partition])


def _values(cluster: KafkaCluster, topic: str) -> dict[int, Values]:
    values: dict[int, Values] = {number: {} for number in range(PARTITIONS)}
    for record in read(cluster, topic, range(PARTITIONS)):
        values[record.partition()][record.offset()] = record.value()
    return values


def _in_order(source: Values, target: Values, syncs: set[tuple[int, int]]) -> dict[int, list[int]]:
    """Tell equal records apart by their order: from one record on, all were copied twice.

    Where several records can be that one, the syncs decide; where they leave several, take the
    last, which gives the lowest truth.
    """
    more = len(target) - len(source)
    values, copied = list(source.values()), list(target.values())
    candidates = []
    for first in range(len(values) + 1):
        if copied == values[: first + more] + values[first:]:
            originals = [*list(source)[: first + more], *list(source)[first:]]
            pairs = list(zip(originals, target, strict=True))
            if syncs <= set(pairs):
                candidates.append(pairs)
    copies: dict[int, list[int]] = {}
    for original, target_offset in candidates[-1]:
        copies.setdefault(original, []).append(target_offset)
    return copies


def plan_all(mirrored: MirroredTopic) -> list[Translation]:
    """Return answers for positions of every partition; half of them where it was copied twice."""
    positions_of = {partition: _positions(mirrored, partition) for partition in mirrored.watermarks}

    def plan(number: int) -> list[Translation]:
        positions = {partition: chosen[number] for partition, chosen in positions_of.items()}
        plan = plan_failover(mirrored.mirror.pair, {mirrored.topic: positions})
        return [each.translation for each in plan.partitions]

    with ThreadPoolExecutor(4) as pool:
        return [answer for answers in pool.map(plan, range(PLANS)) for answer in answers]


def _positions(mirrored: MirroredTopic, partition: int) -> list[int]:
    watermarks = mirrored.watermarks[partition]
    twice = [
        at for at, target_offsets in mirrored.copies[partition].items() if len(target_offsets) > 1
    ]
    low = max(watermarks.low, min(twice, default=watermarks.low) - LAG_MAX)
    return _spread(watermarks.low, watermarks.high) + _spread(
        low, max(twice, default=watermarks.high)
    )


def _spread(first: int, last: int) -> list[int]:
    half = PLANS // 2
    return [first + (last - first) * number // (half - 1) for number in range(half)]


def beside_truth(answer: Translation, mirrored: MirroredTopic) -> str:
    """Return an answer and the truth, for the message of a test that fails."""
    truth = mirrored.truth(answer.partition, answer.position)
    return (
        f"partition {answer.partition}, position {answer.position}: {answer.status} "
        f"{answer.target} ({answer.low} to {answer.high}, {answer.basis}); the truth is {truth}"
    )


def holds(answer: Translation, mirrored: MirroredTopic) -> bool:
    """Tell whether an answer loses nothing, and its bounds contain the truth where it is shown."""
    truth = mirrored.truth(answer.partition, answer.position)
    low, high = answer.target, answer.high
    if low is None or low > truth:
        return False
    is_within = high is None or truth <= high
    return is_within or not mirrored.is_counted(answer.partition, answer.position)


def is_true(answer: Translation, mirrored: MirroredTopic) -> bool:
    """Tell whether an answer is EXACT and the truth."""
    truth = mirrored.truth(answer.partition, answer.position)
    return (answer.status, answer.target) == (Status.EXACT, truth)


def mirror_topic(
    made: Mirror, *, copies_again: bool = True, settings: Mapping[str, str] | None = None
) -> MirroredTopic:
    """Mirror a topic with all that makes offsets differ; kill MirrorMaker 2 in between.

    Args:
        made: The mirror.
        copies_again: Whether MirrorMaker 2 copies again what it had not noted before the kill.
        settings: Of the connector, beside those of the other mirrors.
    """
    topic = made.create_topic(PARTITIONS)
    writer, random = Writer(made, topic), Random(5)  # noqa: S311 - repeatable, not secret
    _write(writer, random, rounds=15)
    writer.write({SHORT: 7})
    _delete(made.stack, KafkaTopicPartition(topic, DELETED, 100))
    made.configure(**FILTER, **{"offset.lag.max": LAG_MAX}, **(settings or {}))
    # After the kill nothing of this part is copied again; what follows is.
    wait_until(lambda: made.has_noted(writer), f"MirrorMaker 2 to note its copy of {topic}")
    _kill_while_copying(writer, random)
    while copies_again and not _is_copied_twice(made, topic):
        _kill_while_copying(writer, random)  # The last kill came after all had been noted.
    _end(writer)
    wait_until(lambda: made.has_copied(writer), f"the rest of {topic} on the target")
    wait_copied(made.pair, {topic: made.ends(topic)})
    return MirroredTopic.of(made, topic)


def _kill_while_copying(writer: Writer, random: Random) -> None:
    made = writer.mirror
    _write(writer, random, rounds=15)
    wait_until(lambda: made.has_copied(writer), f"more of {writer.topic} on the target")
    made.stack.kill_connect()
    _write(writer, random, rounds=5)
    made.stack.start_connect()
    # MirrorMaker 2 gets beyond the point where it was killed, whatever its syncs show.
    _write(writer, random, rounds=20)
    wait_until(lambda: made.has_copied(writer), f"what follows in {writer.topic} on the target")


def _is_copied_twice(made: Mirror, topic: str) -> bool:
    values = [each.value() for each in read(made.pair.target, topic, [TRANSACTIONS])]
    return len(values) > len(set(values))


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


def _delete(stack: Stack, before: KafkaTopicPartition) -> None:
    admin = AdminClient({"bootstrap.servers": stack.source})
    admin.delete_records([before])[before].result(timeout=30)
