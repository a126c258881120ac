"""Offsets translated by the column, in a real Spark session: each as core translates it alone."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F  # noqa: N812 - as everybody names it

from airflow_mm2_offsets.core import OffsetSync, Status, SyncIndex, TopicPartition
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.core.wire import encode_offset_sync
from airflow_mm2_offsets.job import py_files
from airflow_mm2_offsets.job.translation import logs, lookup
from airflow_mm2_offsets.job.translation.columns import (
    COLUMNS,
    EXTRAS,
    decode_syncs,
    segments,
    translate,
)
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.syncs import read_syncs
from stack.mirror import Stack
from stack.topics import create_topic
from stack.waiting import wait_until
from tests.integration.mirrors import topic_partitions
from tests.support.golden import NAMES, NO_EXTRAS, golden_set
from tests.support.worlds import JUMPED, JUMPED_TRUTHS, truths_of, worlds_copying_again

# PySpark warns of pandas, which these tests do not use.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")

Pairs: TypeAlias = list[tuple[int, int]]
Known: TypeAlias = dict[TopicPartition, tuple[Pairs, Sequence[int]]]
"""The syncs of each partition, and the positions to ask of it."""
Row: TypeAlias = tuple[Any, ...]

SYNCS_TOPIC = "mm2-offset-syncs.source.internal"
GOLDEN_STRIDE = 7
WORLDS = 300
LISTS = 400
SYNCS = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "upstream": pa.int64(),
    "downstream": pa.int64(),
    "offset": pa.int64(),
}
ASKED = {"id": pa.int64(), "topic": pa.string(), "partition": pa.int32(), "position": pa.int64()}


@pytest.fixture(scope="module", autouse=True)
def package(spark: SparkSession) -> None:
    """Give the Python workers the code of the job's side, as --py-files does."""
    spark.sparkContext.addPyFile(py_files())


def table(
    spark: SparkSession, path: Path, types: Mapping[str, Any], rows: Sequence[Row]
) -> DataFrame:
    columns = [list(column) for column in zip(*rows, strict=True)]
    arrays = [pa.array(each, kind) for each, kind in zip(columns, types.values(), strict=True)]
    pq.write_table(pa.table(arrays, names=list(types)), path)
    return spark.read.parquet(str(path))


def random_pairs(seed: int) -> Pairs:
    """Make syncs with rewinds, hidden rewinds, recreated topics, disorder and duplicates."""
    chance = random.Random(seed)  # noqa: S311 - the same seed makes the same syncs
    pairs = [(20, 10)]
    wild = chance.choice((0.1, 0.5, 0.9))
    for _ in range(chance.randrange(25)):
        upstream, downstream = chance.choice(pairs[-2:])
        steps = ((-12, 6), (-3, 7)) if chance.random() < wild else ((1, 6), (1, 9))
        up, down = (chance.randint(*step) for step in steps)
        pairs.append((max(0, upstream + up), max(0, downstream + down)))
    return pairs


def known_syncs() -> Known:
    """Return the syncs of many partitions, and the positions to ask of each."""
    known: Known = {}
    for name in NAMES:
        golden = golden_set(name)
        for number, partition in golden.partitions.items():
            pairs = [
                (s.upstream, s.downstream)
                for s in golden.syncs
                if (s.topic, s.partition) == (golden.topic, number)
            ]
            positions = range(0, partition.source.high + 2, GOLDEN_STRIDE)
            known[TopicPartition(name, number)] = pairs, positions
    for number, world in zip(range(WORLDS), worlds_copying_again(), strict=False):
        known[TopicPartition("world", number)] = world.syncs.syncs, range(world.source.high + 2)
    known[TopicPartition("jumped", 0)] = JUMPED, range(len(JUMPED_TRUTHS))
    for number in range(LISTS):
        known[TopicPartition("list", number)] = random_pairs(number), (*range(60), MAX_OFFSET)
    top = MAX_OFFSET
    ends = ([(0, 0), (top, top)], [(5, top - 9), (top, top)], [(top - 9, 5), (top, 11)], [(top, 0)])
    for number, pairs in enumerate(ends):
        known[TopicPartition("end", number)] = pairs, (0, 4, 5, 6, *range(top - 10, top + 1))
    return known


def check_as_core(answers: Sequence[SparkRow], known: Known, extras: str) -> None:
    """Assert that each row says what core says of its position."""
    index = SyncIndex().extended({partition: pairs for partition, (pairs, _) in known.items()})
    for row in answers:
        one = index.translate(row.topic, row.partition, row.position, extras=extras)
        answer = tuple(row[name] for name in COLUMNS)
        assert answer == (one.target, one.low, one.high, one.status, one.basis), one


def truths_known(extras: str) -> dict[TopicPartition, Callable[[int], int]]:
    """Return what tells the truth of each position, where it is known."""
    truths: dict[TopicPartition, Callable[[int], int]] = {}
    for name in NAMES if extras == "possible" else NO_EXTRAS:
        for number, partition in golden_set(name).partitions.items():
            truths[TopicPartition(name, number)] = partition.truth
    if extras == "possible":
        truths[TopicPartition("jumped", 0)] = JUMPED_TRUTHS.__getitem__
        for number, world in zip(range(WORLDS), worlds_copying_again(), strict=False):
            truths[TopicPartition("world", number)] = truths_of(world).__getitem__
    return truths


def check_truth(answers: Sequence[SparkRow], extras: str) -> None:
    """Assert that no row loses a record, whatever core says of its position."""
    truths = truths_known(extras)
    for row in answers:
        truth = truths.get(TopicPartition(row.topic, row.partition))
        if truth and row.status != Status.REFUSED:
            true = truth(row.position)
            assert row.low <= true, row
            # No sync shows some rewinds of the worlds, which bound from above.
            assert row.topic == "world" or row.high is None or true <= row.high, row


@pytest.mark.parametrize("extras", EXTRAS)
def test_each_row_answers_as_core_does(spark: SparkSession, tmp_path: Path, extras: str) -> None:
    """Each row has core's answer, without a Python step in the plan, a lost or a doubled row."""
    known = known_syncs()
    syncs = [(*partition, *pair) for partition, (pairs, _) in known.items() for pair in pairs]
    random.Random(1).shuffle(order := list(range(len(syncs))))  # noqa: S311 - no secret
    logged = [(*syncs[at], at) for at in order]
    asked = [(*partition, position) for partition, (_, each) in known.items() for position in each]
    rows = table(spark, tmp_path / "rows", ASKED, [(n, *each) for n, each in enumerate(asked)])
    segments(table(spark, tmp_path / "syncs", SYNCS, logged), extras=extras).write.parquet(
        str(tmp_path / "known")
    )
    known_table = spark.read.parquet(str(tmp_path / "known"))
    answered = translate(rows, known_table, offset="position").orderBy("id")
    answers = answered.collect()
    assert [row.id for row in answers] == list(range(len(asked)))
    check_as_core(answers, known, extras)
    check_truth(answers, extras)
    assert "Python" not in plan(answered)


def plan(frame: DataFrame) -> str:
    """Return the plan that ran, or runs: adaptive execution changes it on the way."""
    return str(frame._jdf.queryExecution().executedPlan().toString())  # noqa: SLF001 - the only way


def test_invalid_positions_are_kept_and_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Rows with nulls, unknown topics or negative offsets are kept, and refused with a reason."""
    cases = {
        ("orders", 0, 10): "sync",
        ("orders", 0, 3): "before-first-sync",
        ("orders", 0, 15): "between-syncs",
        ("orders", 0, 99): "after-last-sync",
        (None, 0, 10): "never-replicated",
        ("orders", None, 10): "never-replicated",
        ("orders", 7, 10): "never-replicated",
        ("typo", 0, 10): "never-replicated",
        ("orders", 0, None): "not-a-position",
        ("orders", 0, -1): "not-a-position",
        (None, None, None): "not-a-position",
    }
    syncs = table(
        spark,
        tmp_path / "syncs",
        SYNCS,
        [
            ("orders", 0, 10, 0, 0),
            ("orders", 0, 20, 9, 1),
            ("orders", None, 1, 1, 2),
            ("a", 0, -1, 1, 3),
        ],
    )
    asked = [(number, *case) for number, case in enumerate(cases)] * 2
    rows = table(spark, tmp_path / "rows", ASKED, asked)
    found = segments(syncs).cache()
    out = translate(rows, found, offset="position", prefix="mm2_")
    assert out.columns == [*ASKED, *(f"mm2_{name}" for name in COLUMNS)]
    answers = out.orderBy("id").collect()
    assert [row.mm2_basis for row in answers[::2]] == list(cases.values())
    assert [row.mm2_basis for row in answers[1::2]] == list(cases.values())
    refused = [row for row in answers if row.mm2_status == Status.REFUSED]
    assert len(refused) == 14
    assert all(row.mm2_target is row.mm2_low is row.mm2_high is None for row in refused)
    found.unpersist()


def crowded_syncs() -> Known:
    """Return long logs with all their syncs in a few places, and with offsets beyond 2**32."""
    far = 2**33 + 5
    cluster = [(number * 3, number * 2) for number in range(5000)]
    both = [*cluster, (2**31 - 9, 2**30), (2**31 - 7, 2**30 + 1)]
    gap = [*cluster, (far, far - 9), *((far + n, far - 9 + n) for n in range(2, 3000, 7))]
    rewound = [*gap, *((far + n, far + 9000 + n) for n in range(50, 4000, 9))]
    high = [(0, 0), *((far + n * 100 + n * n % 7, far + n * 97 + n * n % 7) for n in range(3000))]
    logs = {"cluster": cluster, "both": both, "gap": gap, "rewound": rewound, "high": high}
    chance = random.Random(2)  # noqa: S311 - no secret
    known: Known = {}
    for name, pairs in logs.items():
        near = [each + step for each, _ in chance.sample(pairs, 200) for step in (-1, 0, 1)]
        between = [chance.randrange(pairs[-1][0]) for _ in range(200)]
        positions = [0, *near, *between, pairs[-1][0] + 2**32, 2**31, 2**32, MAX_OFFSET]
        known[TopicPartition(name, 0)] = pairs, [each for each in positions if each >= 0]
    return known


@pytest.mark.parametrize("extras", EXTRAS)
def test_crowds_and_gaps(
    spark: SparkSession, tmp_path: Path, extras: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of syncs in one bin, many parts and the highest offsets give core's answers."""
    monkeypatch.setattr(logs, "MOST_ROWS", 1024)
    known = crowded_syncs()
    syncs = [(*partition, *pair) for partition, (pairs, _) in known.items() for pair in pairs]
    logged = [(*sync, at) for at, sync in enumerate(syncs)]
    asked = [(*partition, position) for partition, (_, each) in known.items() for position in each]
    rows = table(spark, tmp_path / "rows", ASKED, [(n, *each) for n, each in enumerate(asked)])
    found = segments(table(spark, tmp_path / "syncs", SYNCS, logged), extras=extras).cache()
    for row in found.groupBy("topic").agg(F.sum(F.size("lookup")).alias("numbers")).collect():
        # Copies again that the gap may hide raise all upper bounds before it, for those syncs show
        # holes in the source: each of these rows needs a record, of ten numbers.
        most = 11 if row.topic in {"gap", "rewound"} else 1.1
        assert row.numbers < most * len(known[TopicPartition(row.topic, 0)][0]), row
    assert found.where("topic = 'gap'").count() > 4
    answers = translate(rows, found, offset="position").orderBy("id").collect()
    assert [row.id for row in answers] == list(range(len(asked)))
    check_as_core(answers, known, extras)
    found.unpersist()


def test_segments_that_change_are_noticed(spark: SparkSession, tmp_path: Path) -> None:
    """If a table of segments is rewritten under a running stream, the stream fails."""
    few, many = [("a", 0, 10, 0, 0)], [("a", 0, n * 3, n * 2, n) for n in range(5000)]
    found = segments(table(spark, tmp_path / "few", SYNCS, few))
    found.write.parquet(str(tmp_path / "known"))
    rows = table(spark, tmp_path / "rows", ASKED, [(1, "a", 0, 77)])
    out = translate(rows, spark.read.parquet(str(tmp_path / "known")), offset="position")
    assert out.collect()[0].basis == "after-last-sync"
    known = spark.read.parquet(str(tmp_path / "known"))
    changing = known.unionByName(segments(table(spark, tmp_path / "many", SYNCS, many)))
    depth = changing.agg({"search_depth": "max"}).collect()[0][0]
    with pytest.raises(Exception, match="segments have changed"):
        lookup._checked(changing, depth - 1, {0}).collect()  # noqa: SLF001 - see above


def test_a_stream_is_translated(spark: SparkSession, tmp_path: Path) -> None:
    """A streaming DataFrame can be joined with static segments."""
    syncs = table(spark, tmp_path / "syncs", SYNCS, [("orders", 0, 10, 0, 0)])
    folder = tmp_path / "rows"
    folder.mkdir()
    rows = table(spark, folder / "1.parquet", ASKED, [(1, "orders", 0, 10), (2, "typo", 0, 1)])
    stream = spark.readStream.schema(rows.schema).parquet(str(folder))
    out = translate(stream, segments(syncs), offset="position")
    query = out.writeStream.format("memory").queryName("bulk").trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    found = spark.table("bulk").orderBy("id").collect()
    assert [(row.target, row.status) for row in found] == [(0, "exact"), (None, "refused")]


def test_invalid_columns_are_named(spark: SparkSession) -> None:
    """A fractional offset, a numeric topic or a taken column name is refused before a job runs."""
    rows = spark.range(1).selectExpr("'orders' topic", "0 partition", "1.5D offset", "id low")
    known = spark.range(1)
    with pytest.raises(ValueError, match="a column low already"):
        translate(rows, known)
    with pytest.raises(ValueError, match="position's column is double"):
        translate(rows.drop("low"), known)
    with pytest.raises(ValueError, match="topic's column is int"):
        translate(rows, known, topic="partition", offset="low", prefix="to_")
    with pytest.raises(ValueError, match="'few' is unknown"):
        segments(known, extras="few")


BAD = {
    "the key is absent": (None, b"v" * 16),
    "the key's length is wrong": (b"\x00", bytes(16)),
    "the topic's name is not UTF-8": (b"\x00\x02\xc0\x80\x00\x00\x00\x00", bytes(16)),
    "the partition is negative": (b"\x00\x01a\xff\xff\xff\xff", bytes(16)),
    "the value's length is wrong": (b"\x00\x01a\x00\x00\x00\x00", bytes(15)),
    "an offset is negative": (b"\x00\x01a\x00\x00\x00\x00", b"\xff" * 8 + bytes(8)),
}


def test_records_are_decoded_as_core_does(spark: SparkSession, tmp_path: Path) -> None:
    """Up to the highest numbers and longest names; an invalid record is kept with its problem."""
    syncs = [
        OffsetSync(topic=topic, partition=partition, upstream=up, downstream=down)
        for topic in ("a", "größe.✓", "x" * 249)
        for partition in (0, 255, 2**31 - 1)
        for up, down in ((0, MAX_OFFSET), (2**31, 127), (MAX_OFFSET, 2**62 + 1))
    ]
    bad: list[tuple[bytes | None, bytes | None]] = [
        *BAD.values(),
        (b"\x00\x01a\x00\x00\x00\x00", None),
        (b"", bytes(16)),
        (b"\x00\x00\x00\x00\x00\x00", bytes(16)),
        (b"\xff\xff" + bytes(4), bytes(16)),
        (b"\x00\x01a\x00\x00\x00\x00\x00", bytes(16)),
        (b"\x00\x01a\x00\x00\x00\x00", bytes(17)),
    ]
    records = [*map(encode_offset_sync, syncs), *bad]
    types = {
        "key": pa.binary(),
        "value": pa.binary(),
        "offset": pa.int64(),
        "partition": pa.int32(),
    }
    rows = [(key, value, offset, 0) for offset, (key, value) in enumerate(records)]
    decoded = decode_syncs(table(spark, tmp_path / "records", types, rows))
    assert "Python" not in plan(decoded)
    found = decoded.orderBy("offset").collect()
    assert [row.offset for row in found] == list(range(len(records)))
    good, rest = found[: len(syncs)], found[len(syncs) :]
    assert [OffsetSync(**fields(row)) for row in good] == syncs
    assert not any(row.problem for row in good)
    assert [row.problem for row in rest[: len(BAD)]] == list(BAD)
    assert all(row.problem and set(fields(row).values()) == {None} for row in rest)


def fields(row: Any) -> dict[str, Any]:  # noqa: ANN401 - PySpark's Row has columns of any type
    return {name: row[name] for name in ("topic", "partition", "upstream", "downstream")}


def test_a_real_topics_rows_are_translated(spark: SparkSession, stack: Stack) -> None:
    """Syncs and rows that Spark's Kafka source reads from real clusters get core's answers."""
    topic = "orders-bulk"
    create_topic(stack.source, topic, 2)
    producer = Producer({"bootstrap.servers": stack.source})
    for number in range(1000):
        producer.produce(topic, b"%d" % number, partition=number % 2)
    producer.flush(30)
    target = KafkaCluster(name="target", config={"bootstrap.servers": stack.target})
    wait_until(
        lambda: topic in target.topics([topic]) and _copied(target, topic) == 1000, "the copies"
    )
    wait_until(
        lambda: {(topic, 0), (topic, 1)} <= set(read_syncs(target, SYNCS_TOPIC).index), "syncs"
    )
    read = read_syncs(target, SYNCS_TOPIC)
    until = json.dumps({SYNCS_TOPIC: {"0": read.next_offset}})
    records = kafka(spark, stack.target, SYNCS_TOPIC, endingOffsets=until)
    known = segments(decode_syncs(records)).cache()
    answers = translate(kafka(spark, stack.source, topic), known).collect()
    assert len(answers) == 1000
    for row in answers:
        one = read.index.translate(row.topic, row.partition, row.offset)
        assert tuple(row[name] for name in COLUMNS[:4]) == (
            one.target,
            one.low,
            one.high,
            one.status,
        )
    known.unpersist()


def _copied(target: KafkaCluster, topic: str) -> int:
    watermarks = target.watermarks(topic_partitions(topic, range(2)))
    return sum(each.high for each in watermarks.values())


def kafka(spark: SparkSession, servers: str, topic: str, **more: str) -> DataFrame:
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, **more}
    return spark.read.format("kafka").options(**options).load()
