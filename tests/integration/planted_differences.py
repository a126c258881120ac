"""The differences that a reconciliation has to find: planted in the topics and in the sinks."""

from collections.abc import Sequence
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from stack.process import free_ports
from stack.topics import create_topic
from stack.waiting import wait_until
from tests.integration.reconcile_suite import ReconcileSuite, Topic
from tests.integration.reconciled_topics import PARTITIONS, Row, numbered, read_rows, write

NO_LINEAGE = dict.fromkeys(("topic", "partition", "offset"))
SWITCH = 15
"""Which record of each partition the job on the target begins with."""


def plan_cases(suite: ReconcileSuite) -> None:
    clean, planted = copied_topic(suite, ()), copied_topic(suite, (12, 30, 31))
    swapped, expired = swapped_topic(suite), expired_topic(suite)
    suite.topics = {"clean": clean, "planted": planted, "swapped": swapped, "expired": expired}
    plan_with_differences(suite, clean, planted)
    plan_without_differences(suite, clean)
    suite.plan("clusters", [clean, swapped])
    suite.plan("keys alone", [clean], kafka={"key": "key"})
    plan_with_source_alone(suite, clean, expired)


def copied_topic(suite: ReconcileSuite, dropped: Sequence[int]) -> Topic:
    """Return a topic that MirrorMaker 2 has copied, except the records in ``dropped``."""
    name = suite.mirror.create_topic(PARTITIONS)
    write(suite.mirror.pair.source, name, dropped=dropped)
    source = read_rows(suite.mirror.pair.source, name)
    counts = {0: len(source[0]) - len(dropped), 1: len(source[1])}

    def is_copied() -> bool:
        if name not in suite.mirror.pair.target.topics([name]):
            return False
        target = read_rows(suite.mirror.pair.target, name)
        return {number: len(rows) for number, rows in target.items()} == counts

    wait_until(is_copied, f"the copy of {name}")
    return Topic(name=name, source=source, target=read_rows(suite.mirror.pair.target, name))


Ranges = dict[tuple[str, int], dict[str, Any]]


def ranges_of(topic: Topic, shifts: Sequence[int] = (0, 0)) -> Ranges:
    """Return the ranges of a switch before record 15; ``shifts`` move the start on the target."""
    ranges: Ranges = {}
    for number, shift in enumerate(shifts):
        (first,) = numbered(topic.source[number], SWITCH)
        (start,) = numbered(topic.target[number], SWITCH + shift)
        ranges[topic.name, number] = {
            "switch": str(first["offset"]),
            "target": [str(start["offset"]), None],
        }
    return ranges


def delivered_rows(topic: Topic, shifts: Sequence[int] = (0, 0)) -> tuple[list[Row], list[Row]]:
    """Return the rows that the job has written from the source, and from the target."""
    ranges = ranges_of(topic, shifts)
    before = [
        row
        for number, rows in topic.source.items()
        for row in rows
        if row["offset"] < int(ranges[topic.name, number]["switch"])
    ]
    after = [
        row
        for number, rows in topic.target.items()
        for row in rows
        if row["offset"] >= int(ranges[topic.name, number]["target"][0])
    ]
    return before, after


def sinks(
    suite: ReconcileSuite, name: str, rows: tuple[list[Row], list[Row]], **columns: str | None
) -> list[dict[str, Any]]:
    return [
        {"cluster": side, "path": suite.sink(f"{name}-{side}", mine), "columns": columns}
        for side, mine in zip(("source", "target"), rows, strict=True)
    ]


def plan_without_differences(suite: ReconcileSuite, topic: Topic) -> None:
    ranges = ranges_of(topic)
    before, after = delivered_rows(topic)
    both = sinks(suite, "nameless", (before, after), **NO_LINEAGE)
    suite.plan("clean without lineage", [topic], both, ranges=ranges)

    shifts = (-2, 1)
    shifted = sinks(suite, "shifted", delivered_rows(topic, shifts))
    suite.plan("shifted", [topic], shifted, ranges=ranges_of(topic, shifts))

    lossy = [row for row in before if row not in numbered(before, 11)]
    lossier = [row for row in after if row not in numbered(after, 28)]
    timed = sinks(suite, "timed", (lossy, lossier), timestamp="timestamp")
    begin = min(row["timestamp"] for row in numbered(after, 20)) // 1000
    suite.plan("timed", [topic], timed, ranges=ranges, time=(begin, begin + 10**9))

    suite.plan("no sink", [topic], [{"path": str(suite.folder / "nowhere")}])
    unreachable = {"bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}"}
    impatient = unreachable | {"default.api.timeout.ms": "1500", "request.timeout.ms": "1000"}
    suite.plan("no cluster", [topic], options=impatient)


def plan_with_differences(suite: ReconcileSuite, clean: Topic, topic: Topic) -> None:
    producer = Producer({"bootstrap.servers": suite.mirror.stack.target})
    producer.produce(topic.name, b"33 of 1", b"key", 1, headers={"n": b"33"})
    producer.produce(topic.name, b"equal", b"thrice", 0, headers={"n": b"26"})
    assert producer.flush(30) == 0
    topic.target = read_rows(suite.mirror.pair.target, topic.name)
    before, after = delivered_rows(topic)
    empty_values = (row for row in before if (row["key"], row["value"]) == (None, ""))
    lost = [
        next(row for row in empty_values if row["partition"] == 0),
        next(row for row in before if row["partition"] == 1 and row["key"] == "twice"),
        *numbered(topic.target[1], 20),
    ]
    before = [row for row in before if row not in lost]
    after = [row for row in after if row not in lost]
    before += [row | {"batch_id": 99} for row in numbered(topic.source[1], 11)]
    after += [row | {"batch_id": 99} for row in numbered(topic.target[0], 35)]
    before = exchange_values(before, *numbered(topic.source[1], 10, 13))
    after = exchange_values(after, *numbered(topic.target[0], 28, 36))
    clean_before, clean_after = delivered_rows(clean)
    both = sinks(suite, "planted", (before + clean_before, after + clean_after))
    ranges = ranges_of(topic)
    suite.plan("planted", [clean, topic], both, ranges={**ranges_of(clean), **ranges})
    suite.plan("source gone", [topic], both[1:], ranges=ranges, read_only=["target"])
    nameless = sinks(suite, "planted nameless", (before, after), **NO_LINEAGE)
    suite.plan("planted without lineage", [topic], nameless, ranges=ranges)


def exchange_values(rows: list[Row], one: Row, other: Row) -> list[Row]:
    """Return the rows, with the values of two of them exchanged."""
    values = {one["offset"]: other["value"], other["offset"]: one["value"]}
    return [row | {"value": values[row["offset"]]} if row in (one, other) else row for row in rows]


def swapped_topic(suite: ReconcileSuite) -> Topic:
    """Create an unmirrored topic on both clusters; on the target two records are exchanged."""
    name = f"swapped-{suite.mirror.name}"
    for side, order in (("source", (3, 4, 5, 6, 7, 8)), ("target", (3, 7, 5, 6, 4, 8))):
        servers = getattr(suite.mirror.stack, side)
        create_topic(servers, name, PARTITIONS)
        producer = Producer({"bootstrap.servers": servers})
        for number in order:
            producer.produce(name, b"%d of 0" % number, b"key", 0)
            header = side if number == 6 else "both"
            producer.produce(name, b"%d of 1" % number, b"key", 1, headers={"h": header})
            producer.produce(name, b"equal", b"key", 0)
        assert producer.flush(30) == 0
    clusters = (suite.mirror.pair.source, suite.mirror.pair.target)
    source, target = (read_rows(each, name) for each in clusters)
    return Topic(name=name, source=source, target=target)


def expired_topic(suite: ReconcileSuite) -> Topic:
    """Create a topic on the source, read it, and delete its beginning."""
    name = f"expired-{suite.mirror.name}"
    create_topic(suite.mirror.stack.source, name, PARTITIONS)
    write(suite.mirror.pair.source, name)
    source = read_rows(suite.mirror.pair.source, name)
    (first,) = numbered(source[0], 12)
    admin = AdminClient({"bootstrap.servers": suite.mirror.stack.source})
    for done in admin.delete_records([TopicPartition(name, 0, first["offset"])]).values():
        done.result(30)
    return Topic(name=name, source=source, target={})


def plan_with_source_alone(suite: ReconcileSuite, clean: Topic, expired: Topic) -> None:
    """A late record; and a range from 0 to beyond the end, whose beginning is deleted."""
    before, _ = delivered_rows(clean)
    rows = [row | {"batch_id": 77} if row in numbered(before, 13) else row for row in before]
    rows += [row for mine in expired.source.values() for row in mine]
    ranges = {
        partition: {"source": [None, each["switch"]]}
        for partition, each in ranges_of(clean).items()
    }
    ranges |= {(expired.name, number): {"source": ["0", "1000"]} for number in range(PARTITIONS)}
    (sink, _) = sinks(suite, "late", (rows, []), arrival="batch_id")
    suite.plan("source", [clean, expired], [sink], ranges=ranges, read_only=["source"])
