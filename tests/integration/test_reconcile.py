"""Finding what was lost, duplicated and swapped, on real Kafka, MirrorMaker 2 and Spark."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from upath import UPath

from airflow_mm2_offsets.errors import ReconciliationError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.service.reconcile import Reconciliation, read_report
from airflow_mm2_offsets.service.reconcile_ranges import partitions_of_topics
from airflow_mm2_offsets.service.reconcile_request import job_files, make_request
from stack import jars
from stack.mirror import Stack
from stack.process import Program, free_ports
from stack.waiting import wait_until
from tests.integration.mirrors import DROP, FILTER, Mirror, mirror, read

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]
PARTITIONS = 2
RUN_ALL = """
import json, sys
import mm2_reconcile

for arguments in json.loads(open(sys.argv[1]).read()):
    try:
        mm2_reconcile.main(arguments)
    except Exception as error:
        print("ended with", type(error).__name__)
"""
Row = dict[str, Any]
Found = set[tuple[str, str, int | None, str, int | None]]
"""Comparison, kind, partition, side and offset of each difference."""


@dataclass(kw_only=True)
class Topic:
    """A topic on both clusters, with what each holds."""

    name: str
    source: dict[int, list[Row]]
    target: dict[int, list[Row]]


@dataclass(kw_only=True)
class Case:
    """One reconciliation: what it is asked, and which clusters it reads."""

    name: str
    folder: Path
    request: Mapping[str, Any]
    options: Mapping[str, Mapping[str, str]]

    def arguments(self) -> list[str]:
        """Return the job's command line; its files are written."""
        self.folder.mkdir(parents=True)
        path = self.folder / "request.json"
        path.write_text(json.dumps(self.request))
        given = [
            part
            for side, options in self.options.items()
            for name, value in options.items()
            for part in (f"--{side}-option", f"{name}={value}")
        ]
        return ["--request", str(path), "--report", str(self.folder / "report"), *given]

    def result(self, allowed: int | None = 0) -> Reconciliation:
        return read_report(UPath(self.folder / "report"), allowed)

    def differences(self, topic: Topic) -> Found:
        """Return every row of the Parquet that is of a topic; none may be there twice."""
        table = pq.read_table(self.folder / "report" / "differences")
        rows = [row for row in table.to_pylist() if row["topic"] == topic.name]
        names = ("comparison", "kind", "partition", "side", "offset")
        found = [tuple(row[name] for name in names) for row in rows]
        assert len(found) == len(set(found))
        return set(found)


@dataclass(kw_only=True)
class World:
    """The clusters, and the cases that are to be run."""

    mirror: Mirror
    folder: Path
    topics: dict[str, Topic] = field(default_factory=dict)
    cases: dict[str, Case] = field(default_factory=dict)

    def plan(
        self,
        name: str,
        topics: Sequence[Topic],
        sinks: Sequence[Mapping[str, Any]] = (),
        *,
        ranges: Mapping[tuple[str, int], Mapping[str, Any]] | None = None,
        read_only: Sequence[str] = ("source", "target"),
        options: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        """Note a case; ``ranges`` overrides parts of a partition's request."""
        pair = self.mirror.pair
        partitions = partitions_of_topics(
            pair.source, {topic.name: topic.name for topic in topics}, pair.naming
        )
        for each in partitions:
            each.update((ranges or {}).get((each["topic"], each["partition"]), {}))
        servers = {"source": self.mirror.stack.source, "target": self.mirror.stack.target}
        self.cases[name] = Case(
            name=name,
            folder=self.folder / name,
            request=make_request(partitions, sinks, **settings),
            options={
                side: {"bootstrap.servers": servers[side], **(options or {})} for side in read_only
            },
        )

    def sink(self, name: str, rows: Sequence[Row]) -> str:
        """Write a sink's rows as a streaming job would, in a folder of each batch; return it."""
        path = self.folder / "sinks" / name
        schema = pa.schema(
            [
                *((column, pa.string()) for column in ("key", "value", "topic")),
                ("partition", pa.int32()),
                ("offset", pa.int64()),
                ("timestamp", pa.timestamp("us", tz="UTC")),
            ]
        )
        by_batch = sorted(rows, key=lambda row: row.get("batch_id", 0))
        for batch, mine in groupby(by_batch, key=lambda row: row.get("batch_id", 0)):
            file = path / f"batch_id={batch}" / "part-0.parquet"
            file.parent.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(list(mine), schema=schema), file)
        return str(path)

    def run(self) -> None:
        """Run all cases in one JVM."""
        runner = self.folder / "run_all.py"
        runner.write_text(RUN_ALL)
        arguments = self.folder / "arguments.json"
        arguments.write_text(json.dumps([case.arguments() for case in self.cases.values()]))
        program = Program(
            "the reconciliations",
            [*submit(), "--py-files", ",".join(job_files()), runner, arguments],
            log=self.folder / "spark.log",
            env={"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        )
        program.start()
        try:
            program.wait_end(seconds=400)
        finally:
            program.kill()


def submit() -> list[str | Path]:
    """Return the command that submits to a local Spark."""
    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.log.level": "WARN",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        # For so few records, planning and compiling would take nearly all of the time.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
    }
    given = [part for item in conf.items() for part in ("--conf", "=".join(item))]
    spark_jars = ",".join(map(str, jars.fetch(ROOT / "build").spark))
    program = Path(sys.executable).with_name("spark-submit")
    return [program, "--master", "local[2]", "--driver-memory", "1g", *given, "--jars", spark_jars]


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


def write(servers: str, topic: str, *, dropped: Sequence[int] = ()) -> None:
    """Write 40 records to each partition, amid aborted ones; ``dropped`` go to partition 0."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic, "linger.ms": 5})
    producer.init_transactions(30)
    for first in (0, 20):
        producer.begin_transaction()
        for number in range(first, first + 20):
            for partition in range(PARTITIONS):
                key, value = b"key", b"%d of %d" % (number, partition)
                if number < 9:
                    key, value = CONTENTS[number]
                elif 24 <= number < 27:
                    key, value = b"thrice", b"equal"
                marks = (
                    {DROP: b""} if partition == 0 and number in dropped else {"n": b"%d" % number}
                )
                headers = marks if number > 9 else {}
                producer.produce(topic, value, key, partition, headers=headers)
        assert producer.flush(30) == 0
        producer.commit_transaction(30)
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(topic, b"aborted", b"key", partition)
        producer.flush(30)
        producer.abort_transaction(30)


def held(cluster: KafkaCluster, topic: str) -> dict[int, list[Row]]:
    """Return what a reader of committed records gets of each partition."""
    records = read(cluster, {(topic, number): 0 for number in range(PARTITIONS)})
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


NO_LINEAGE = dict.fromkeys(("topic", "partition", "offset"))
SWITCH = 15
"""Which record of each partition the job on the target begins with."""


def create(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)


def number_of(row: Row) -> int | None:
    """Return the number that a record bears, of those that differ from all others."""
    number, _, partition = (row["value"] or "").partition(" of ")
    return int(number) if partition else None


def numbered(rows: Sequence[Row], *numbers: int) -> list[Row]:
    return [row for row in rows if number_of(row) in numbers]


@pytest.fixture(scope="module")
def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """All topics written, all sinks planted, all cases run."""
    with mirror(stack) as made:
        made.configure(**FILTER)
        planting = World(mirror=made, folder=tmp_path_factory.mktemp("reconcile"))
        plant(planting)
        planting.run()
        yield planting


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


def at(rows: Sequence[Row], *numbers: int) -> list[int]:
    return [row["offset"] for row in numbered(rows, *numbers)]


@pytest.mark.parametrize("name", ["planted", "clusters", "clean without lineage"])
def test_equal_sides_have_no_difference(world: World, name: str) -> None:
    """Nulls, empty and equal records, tombstones and aborted ones are no difference."""
    topic, result = world.topics["clean"], world.cases[name].result()
    assert world.cases[name].differences(topic) == set()
    assert result.not_judged == 0
    source = next(
        each
        for each in result.report["ranges"]
        if (each["side"], each["topic"], each["partition"]) == ("source", topic.name, 0)
    )
    assert (source["records"], source["tombstones"]) == (40, 4)
    assert source["holes"] == 6  # twice: a commit's marker, an aborted record and its marker


def test_a_clean_reconciliation(world: World) -> None:
    """Where nothing differs, no row is written, and the summary says what was compared."""
    case = world.cases["clean without lineage"]
    assert pq.read_table(case.folder / "report" / "differences").num_rows == 0
    assert case.result().outcome == "clean"
    case.result().check()
    assert case.result().summary().startswith("CLEAN: compared 80 records of the source, ")


def test_every_planted_difference_is_found(world: World) -> None:
    """Losses, duplicates and swaps, by MirrorMaker 2 and in the sink: each one, and no other."""
    topic, case = world.topics["planted"], world.cases["planted"]
    source, target = topic.source, topic.target
    dropped = at(source[0], 30, 31)
    (_, again) = at(target[1], 33)
    thrice = [row["offset"] for row in target[0] if row["key"] == "thrice"]
    (nothing,) = (row["offset"] for row in source[0] if (row["key"], row["value"]) == (None, ""))
    twice = [row["offset"] for row in source[1] if row["key"] == "twice"]
    assert len(thrice) == 4
    assert case.differences(topic) == {
        *(("source-target", "lost", 0, "after", offset) for offset in dropped),
        *(("source-sink", "lost", 0, "after", offset) for offset in dropped),
        ("source-target", "duplicated", 1, "target", again),
        ("source-sink", "duplicated", 1, "from_target", again),
        ("source-target", "duplicated", 0, "target", thrice[-1]),
        ("source-sink", "duplicated", 0, "from_target", thrice[-1]),
        ("source-sink", "lost", 0, "before", nothing),
        ("source-sink", "lost", 1, "before", twice[-1]),
        *(("source-sink", "lost", 1, "after", offset) for offset in at(source[1], 20)),
        *(("target-sink", "lost", 1, "target", offset) for offset in at(target[1], 20)),
        *(("source-sink", "duplicated", 1, "from_source", at_) for at_ in at(source[1], 11)),
        *(("source-sink", "duplicated", 0, "from_target", at_) for at_ in at(target[0], 35)),
        *(("target-sink", "duplicated", 0, "from_target", at_) for at_ in at(target[0], 35)),
        *(("source-sink", "out_of_order", 1, "from_source", at_) for at_ in at(source[1], 10, 13)),
        *(("target-sink", "out_of_order", 0, "from_target", at_) for at_ in at(target[0], 28, 36)),
    }
    result = case.result()
    assert result.total("lost", "source-target") == 2
    with pytest.raises(ReconciliationError, match=r"\[0\]: 2 lost from source to target"):
        result.check()
    (example,) = (
        each
        for each in result.report["examples"]
        if (each["comparison"], each["kind"]) == ("target-sink", "lost")
    )
    assert (example["key"], example["offset"]) == ("key", str(at(target[1], 20)[0]))


def test_without_lineage_contents_are_counted(world: World) -> None:
    """A sink of keys and values alone: each lost and additional record is counted."""
    result = world.cases["planted without lineage"].result()
    assert result.total("lost", "source-sink") == 5
    assert result.total("duplicated", "source-sink") == 4
    assert result.total("lost", "target-sink") == result.total("unknown") == 0
    assert "a sink without lineage" in result.summary()


def test_a_source_that_is_gone_is_not_needed(world: World) -> None:
    """Target and sink alone tell what the target job lost, wrote twice or exchanged."""
    topic = world.topics["planted"]
    target = topic.target
    assert world.cases["source gone"].differences(topic) == {
        *(("target-sink", "lost", 1, "target", offset) for offset in at(target[1], 20)),
        *(("target-sink", "duplicated", 0, "from_target", at_) for at_ in at(target[0], 35)),
        *(("target-sink", "out_of_order", 0, "from_target", at_) for at_ in at(target[0], 28, 36)),
    }


def test_a_swap_on_the_target_is_found(world: World) -> None:
    """Two copies that changed places are both named; another header is another record."""
    topic = world.topics["swapped"]
    assert world.cases["clusters"].differences(topic) == {
        *(
            ("source-target", "out_of_order", number, "target", offset)
            for number in range(PARTITIONS)
            for offset in at(topic.target[number], 4, 7)
        ),
        *(("source-target", "lost", 1, "after", offset) for offset in at(topic.source[1], 6)),
        *(("source-target", "unknown", 1, "target", offset) for offset in at(topic.target[1], 6)),
    }


def test_a_job_that_started_elsewhere(world: World) -> None:
    """Two records early: each is a duplicate, as announced. One record late: it is lost."""
    topic, case = world.topics["clean"], world.cases["shifted"]
    (missed,) = at(topic.source[1], SWITCH)
    again = at(topic.target[0], 13, 14)
    assert case.differences(topic) == {
        *(("source-sink", "duplicated", 0, "from_target", offset) for offset in again),
        *(("source-target", "unknown", 0, "target", offset) for offset in again),
        ("source-target", "lost", 1, "after", missed),
        ("source-sink", "lost", 1, "after", missed),
    }
    assert len(case.result(allowed=2).failures) == 2
    with pytest.raises(ReconciliationError, match=r"\(at most 1 twice, none lost\)"):
        case.result(allowed=1).check()
    assert len(case.result(allowed=1).failures) == 3


def test_a_record_that_came_late_is_found(world: World) -> None:
    """A batch number tells that a record came after later ones of its partition."""
    topic = world.topics["clean"]
    assert world.cases["source"].differences(topic) == {
        ("source-sink", "out_of_order", number, "from_source", at_)
        for number in (0, 1)
        for at_ in at(topic.source[number], 13)
    }


def test_a_range_of_time(world: World) -> None:
    """What is lost before the range's start is not looked at."""
    topic = world.topics["clean"]
    assert world.cases["timed"].differences(topic) == {
        found
        for number in (0, 1)
        for found in (
            ("source-sink", "lost", number, "after", at(topic.source[number], 28)[0]),
            ("target-sink", "lost", number, "target", at(topic.target[number], 28)[0]),
        )
    }


def test_what_the_source_no_longer_holds_is_not_judged(world: World) -> None:
    """Deleted records, and offsets that there are not yet, are counted; the rest is compared."""
    topic, case = world.topics["expired"], world.cases["source"]
    result = case.result()
    first, end = at(topic.source[0], 12)[0], topic.source[0][-1]["offset"] + 4
    deleted = next(each for each in result.report["ranges"] if each["topic"] == topic.name)
    assert case.differences(topic) == set()
    assert deleted["wanted"] == ["0", "1000"]
    assert deleted["judged"] == [str(first), str(end)]
    assert deleted["not_judged"] == first + 1000 - end
    assert "NOT JUDGED" in result.summary()


@pytest.mark.parametrize(
    ("name", "message"), [("no sink", "nowhere"), ("no cluster", "TimeoutException")]
)
def test_a_job_that_can_not_compare_says_why(world: World, name: str, message: str) -> None:
    """The report holds the reason, so that nobody has to look for it in Spark's log."""
    with pytest.raises(ReconciliationError, match=f"the Spark job could not compare: .*{message}"):
        world.cases[name].result()
