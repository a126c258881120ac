"""What is planted for a reconciliation to find: in the topics, and in the sinks."""

from collections.abc import Sequence
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from stack.process import free_ports
from stack.waiting import wait_until
from tests.integration.reconciled_topics import PARTITIONS, Row, create, held, numbered, write
from tests.integration.reconciling import Topic, World

NO_LINEAGE = dict.fromkeys(("topic", "partition", "offset"))
SWITCH = 15
"""Which record of each partition the job on the target begins with."""


def plant(world: World) -> None:
    clean, planted = copied(world, ()), copied(world, (12, 30, 31))
    swapped, expired = swap(world), expire(world)
    world.topics = {"clean": clean, "planted": planted, "swapped": swapped, "expired": expired}
    plan_planted(world, clean, planted)
    plan_clean(world, clean)
    world.plan("clusters", [clean, swapped])
    plan_source_alone(world, clean, expired)


def copied(world: World, dropped: Sequence[int]) -> Topic:
    """Return a topic that MirrorMaker 2 has copied, all but what it was told to drop."""
    name = world.mirror.create_topic(PARTITIONS)
    write(world.mirror.stack.source, name, dropped=dropped)
    source = held(world.mirror.pair.source, name)
    counts = {0: len(source[0]) - len(dropped), 1: len(source[1])}

    def is_copied() -> bool:
        if name not in world.mirror.pair.target.topics([name]):
            return False
        target = held(world.mirror.pair.target, name)
        return {number: len(rows) for number, rows in target.items()} == counts

    wait_until(is_copied, f"the copy of {name}", seconds=120)
    return Topic(name=name, source=source, target=held(world.mirror.pair.target, name))


Ranges = dict[tuple[str, int], dict[str, Any]]


def ranges_of(topic: Topic, shifts: Sequence[int] = (0, 0)) -> Ranges:
    """Return the ranges of a switch before record 15; a shift starts the target elsewhere."""
    found = {}
    for number, shift in enumerate(shifts):
        (first,) = numbered(topic.source[number], SWITCH)
        (start,) = numbered(topic.target[number], SWITCH + shift)
        found[topic.name, number] = {
            "switch": str(first["offset"]),
            "target": [str(start["offset"]), None],
        }
    return found


def delivered(topic: Topic, shifts: Sequence[int] = (0, 0)) -> tuple[list[Row], list[Row]]:
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
    world: World, name: str, rows: tuple[list[Row], list[Row]], **columns: str | None
) -> list[dict[str, Any]]:
    return [
        {"cluster": side, "path": world.sink(f"{name}-{side}", mine), "columns": columns}
        for side, mine in zip(("source", "target"), rows, strict=True)
    ]


def plan_clean(world: World, topic: Topic) -> None:
    ranges = ranges_of(topic)
    before, after = delivered(topic)
    both = sinks(world, "nameless", (before, after), **NO_LINEAGE)
    world.plan("clean without lineage", [topic], both, ranges=ranges)

    shifts = (-2, 1)
    shifted = sinks(world, "shifted", delivered(topic, shifts))
    world.plan("shifted", [topic], shifted, ranges=ranges_of(topic, shifts))

    lossy = [row for row in before if row not in numbered(before, 11)]
    lossier = [row for row in after if row not in numbered(after, 28)]
    timed = sinks(world, "timed", (lossy, lossier), timestamp="timestamp")
    begin = min(row["timestamp"] for row in numbered(after, 20)) // 1000
    world.plan("timed", [topic], timed, ranges=ranges, time=(begin, begin + 10**9))

    world.plan("no sink", [topic], [{"path": str(world.folder / "nowhere")}])
    unreachable = {"bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}"}
    impatient = unreachable | {"default.api.timeout.ms": "1500", "request.timeout.ms": "1000"}
    world.plan("no cluster", [topic], options=impatient)


def plan_planted(world: World, clean: Topic, topic: Topic) -> None:
    again = Producer({"bootstrap.servers": world.mirror.stack.target})
    again.produce(topic.name, b"33 of 1", b"key", 1, headers={"n": b"33"})
    again.produce(topic.name, b"equal", b"thrice", 0, headers={"n": b"26"})
    assert again.flush(30) == 0
    topic.target = held(world.mirror.pair.target, topic.name)
    before, after = delivered(topic)
    nothing = (row for row in before if (row["key"], row["value"]) == (None, ""))
    lost = [
        next(row for row in nothing if row["partition"] == 0),
        next(row for row in before if row["partition"] == 1 and row["key"] == "twice"),
        *numbered(topic.target[1], 20),
    ]
    before = [row for row in before if row not in lost]
    after = [row for row in after if row not in lost]
    before += [row | {"batch_id": 99} for row in numbered(topic.source[1], 11)]
    after += [row | {"batch_id": 99} for row in numbered(topic.target[0], 35)]
    before = exchanged(before, *numbered(topic.source[1], 10, 13))
    after = exchanged(after, *numbered(topic.target[0], 28, 36))
    clean_before, clean_after = delivered(clean)
    both = sinks(world, "planted", (before + clean_before, after + clean_after))
    ranges = ranges_of(topic)
    world.plan("planted", [clean, topic], both, ranges={**ranges_of(clean), **ranges})
    world.plan("source gone", [topic], both[1:], ranges=ranges, read_only=["target"])
    nameless = sinks(world, "planted nameless", (before, after), **NO_LINEAGE)
    world.plan("planted without lineage", [topic], nameless, ranges=ranges)


def exchanged(rows: list[Row], one: Row, other: Row) -> list[Row]:
    """Return rows where the values of two have changed places."""
    values = {one["offset"]: other["value"], other["offset"]: one["value"]}
    return [row | {"value": values[row["offset"]]} if row in (one, other) else row for row in rows]


def swap(world: World) -> Topic:
    """Return a topic that nobody copies: on the target, two records have changed places."""
    name = f"swapped-{world.mirror.name}"
    for side, order in (("source", (3, 4, 5, 6, 7, 8)), ("target", (3, 7, 5, 6, 4, 8))):
        servers = getattr(world.mirror.stack, side)
        create(servers, name)
        producer = Producer({"bootstrap.servers": servers})
        for number in order:
            producer.produce(name, b"%d of 0" % number, b"key", 0)
            header = side if number == 6 else "both"
            producer.produce(name, b"%d of 1" % number, b"key", 1, headers={"h": header})
            producer.produce(name, b"equal", b"key", 0)
        assert producer.flush(30) == 0
    clusters = (world.mirror.pair.source, world.mirror.pair.target)
    source, target = (held(each, name) for each in clusters)
    return Topic(name=name, source=source, target=target)


def expire(world: World) -> Topic:
    """Return a topic of the source, with what it held before its beginning was deleted."""
    name = f"expired-{world.mirror.name}"
    create(world.mirror.stack.source, name)
    write(world.mirror.stack.source, name)
    source = held(world.mirror.pair.source, name)
    (first,) = numbered(source[0], 12)
    admin = AdminClient({"bootstrap.servers": world.mirror.stack.source})
    for done in admin.delete_records([TopicPartition(name, 0, first["offset"])]).values():
        done.result(30)
    return Topic(name=name, source=source, target={})


def plan_source_alone(world: World, clean: Topic, expired: Topic) -> None:
    """A record that came late; and a range from 0, of which not all is there, past the end."""
    before, _ = delivered(clean)
    rows = [row | {"batch_id": 77} if row in numbered(before, 13) else row for row in before]
    rows += [row for mine in expired.source.values() for row in mine]
    ranges = {place: {"source": [None, each["switch"]]} for place, each in ranges_of(clean).items()}
    ranges |= {(expired.name, number): {"source": ["0", "1000"]} for number in range(PARTITIONS)}
    (sink, _) = sinks(world, "late", (rows, []), arrival="batch_id")
    world.plan("source", [clean, expired], [sink], ranges=ranges, read_only=["source"])
