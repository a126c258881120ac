"""Queries with state and exactly-once sinks, moved to the other cluster by their checkpoints."""

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]
from upath import UPath

from airflow_mm2_offsets.core import ReplicationPolicy
from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.service.migration import migrate_checkpoint
from airflow_mm2_offsets.service.pair import ClusterPair
from airflow_mm2_offsets.service.planning import still_copying
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.copying import CheckpointCopy, inventory
from stack import jars
from stack.mirror import Stack
from stack.process import Program
from stack.waiting import wait_until
from tests.integration.mirrors import Mirror, mirror

pytestmark = pytest.mark.timeout(900)  # Spark starts twice, for five queries
ROOT = Path(__file__).parents[2]
PARTITIONS = 2
CUT, END, FLUSH = 100, 200, 1000
"""Seconds of event time: where the job stops, where the input ends, what closes all windows."""
BORN = 1_800_000_000
FAILS_AT = 95
"""The order over which queries stumble on the source: their last batch there stays pending."""

SETTINGS = (
    "ui.enabled=false",
    "driver.host=127.0.0.1",
    "driver.bindAddress=127.0.0.1",
    "sql.session.timeZone=UTC",
    # No time for generating and optimising code that runs for a minute.
    "driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "sql.codegen.wholeStage=false",
    "sql.codegen.factoryMode=NO_CODEGEN",
)

Rows = Counter[tuple[Any, ...]]


@dataclass
class World:
    """Two topics, copied under other names, and queries that read them."""

    stack: Stack
    mirror: Mirror
    folder: Path
    orders: str
    payments: str
    pair: ClusterPair = field(init=False)

    def __post_init__(self) -> None:
        pair = self.mirror.pair
        naming = replace(pair.naming, policy=ReplicationPolicy.DEFAULT)
        self.pair = replace(pair, naming=naming)

    def write(self, first: int, last: int) -> None:
        """Write the orders of some seconds, most of them twice, and their payments.

        Transactions are aborted between them, so that offsets differ on the target.
        """
        name = f"{self.orders}-{first}"
        settings = {"bootstrap.servers": self.stack.source, "transactional.id": name}
        producer = Producer(settings)
        producer.init_transactions(30)
        for start, stop in pairwise([*range(first, last, 25), last]):
            producer.begin_transaction()
            for second in range(start, stop):
                self._produce(producer, self.orders, -second)
            producer.flush(30)  # what is not sent yet would leave no trace
            producer.abort_transaction(30)
            producer.begin_transaction()
            for second in range(start, stop):
                self._produce(producer, self.orders, second)
                self._produce(producer, self.orders, second - 3, when=second)  # a second time
                self._produce(producer, self.payments, second - 5, when=second)
            producer.commit_transaction(30)

    def flush(self) -> None:
        """Write what moves the watermarks past all windows."""
        producer = Producer({"bootstrap.servers": self.stack.source})
        for topic in (self.orders, self.payments):
            for partition in range(PARTITIONS):
                self._produce(producer, topic, FLUSH + partition)
        assert producer.flush(30) == 0

    @staticmethod
    def _produce(producer: Producer, topic: str, number: int, when: int | None = None) -> None:
        # A second copy of an order has its time; a payment has its own.
        second = when if when is not None and number == when - 5 else number
        at = datetime.fromtimestamp(BORN + second, UTC).isoformat()
        row = {"id": number, "user": f"user {number % 3}", "at": at, "written": when or number}
        producer.produce(topic, json.dumps(row), str(number), abs(number) % PARTITIONS)

    def wait_copied(self) -> None:
        ends = {topic: self.mirror.ends(topic) for topic in (self.orders, self.payments)}
        wait_until(self._exists, "the topics on the target")
        wait_until(lambda: not still_copying(self.pair, ends), "MirrorMaker 2 to be done")

    def add_partition(self) -> None:
        """Give one topic of the target a partition more than the source has."""
        name = self.pair.naming.target_topic(self.payments)
        admin = AdminClient({"bootstrap.servers": self.stack.target})
        admin.create_partitions([NewPartitions(name, PARTITIONS + 1)])[name].result(30)

    def _exists(self) -> bool:
        names = {self.pair.naming.target_topic(each) for each in (self.orders, self.payments)}
        return names == self.pair.target.topics(names).keys()

    def query(self, name: str, *, migrated: bool = False, **settings: Any) -> dict[str, Any]:
        place = self.pair.naming.target_topic if migrated else str
        return {
            "name": name,
            "servers": self.stack.target if migrated else self.stack.source,
            "orders": place(self.orders),
            "payments": place(self.payments),
            "checkpoint": str(self.folder / ("target" if migrated else "source") / name),
            "output": str(self.folder / "output" / name),
            "batch_size": 1000 if migrated else 200,
            **settings,
        }

    def run(self, *queries: Mapping[str, Any]) -> dict[str, str | None]:
        """Run queries in one Spark; return what each failed of."""
        given, results = self.folder / "queries.json", self.folder / "results.json"
        given.write_text(json.dumps(queries))
        results.unlink(missing_ok=True)
        spark_jars = ",".join(map(str, jars.fetch(ROOT / "build").spark))
        submit = Path(sys.executable).with_name("spark-submit")
        command = [submit, "--master", "local[2]", "--jars", spark_jars]
        for setting in SETTINGS:
            command += ["--conf", f"spark.{setting}"]
        program = Program(
            "the queries",
            [*command, Path(__file__).with_name("stateful_job.py"), given, results],
            log=self.folder / "spark.log",
            env={"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        )
        try:
            program.start()
            program.wait_end(seconds=280)
        finally:
            program.kill()
        return json.loads(results.read_text())

    def rows(self, name: str) -> Rows:
        """Return what a file sink has committed, as its readers see it."""
        return Counter(
            tuple(row.values())
            for file in sorted(committed_files(self.folder / "output" / name))
            for row in pq.read_table(file).to_pylist()
        )


def committed_files(output: Path) -> list[Path]:
    """Return the files that the sink's log names."""
    return [
        Path(json.loads(line)["path"].removeprefix("file://"))
        for log in (output / "_spark_metadata").iterdir()
        if log.name.isdecimal()
        for line in log.read_text().splitlines()[1:]
    ]


CLEAN, PENDING, DONE_UNSAID = "clean", "pending", "done-unsaid"
"""Queries on the source: stopped between batches; failed in one; killed after the sink had its
batch and before the checkpoint said so."""
POISONED = "poisoned"
"""A query that somebody starts against the target from the source's checkpoint as it is."""
KINDS: Mapping[str, Mapping[str, Any]] = {
    CLEAN: {"kind": "stateful", "state": "hdfs"},
    PENDING: {"kind": "stateful", "state": "rocksdb"},
    DONE_UNSAID: {"kind": "plain"},
}


@pytest.fixture(scope="module")
def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Queries that were stopped on the source, all of whose input is on the target by now."""
    with mirror(stack) as made:
        made.configure(
            **{
                "replication.policy.class": (
                    "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
                )
            }
        )
        world = World(
            stack=stack,
            mirror=made,
            folder=tmp_path_factory.mktemp("migration"),
            orders=made.create_topic(PARTITIONS),
            payments=made.create_topic(PARTITIONS),
        )
        world.write(0, CUT)
        failures = world.run(
            world.query(CLEAN, **KINDS[CLEAN]),
            world.query(PENDING, **KINDS[PENDING], fails_at=FAILS_AT),
            world.query(DONE_UNSAID, **KINDS[DONE_UNSAID]),
        )
        assert "left pending" in (failures.pop(PENDING) or "")
        assert set(failures.values()) == {None}
        commits = world.folder / "source" / DONE_UNSAID / "commits"
        last = max(int(each.name) for each in commits.iterdir() if each.name.isdecimal())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink()
        world.write(CUT, END)
        world.flush()
        world.wait_copied()
        world.add_partition()
        yield world


@pytest.fixture(scope="module")
def moved(world: World) -> dict[str, dict[str, Any]]:
    """Return what each migration has done."""
    return {name: _migrate(world, name) for name in KINDS}


def _migrate(world: World, name: str) -> dict[str, Any]:
    places = (UPath(world.folder / side / name) for side in ("source", "target"))
    return migrate_checkpoint(world.pair, *places)


@pytest.fixture(scope="module")
def finished(world: World, moved: Mapping[str, Any]) -> Mapping[str, str | None]:
    """Go on with every query on the target, and run one on the source from the beginning."""
    assert moved
    poisoned = shutil.copytree(world.folder / "source" / CLEAN, world.folder / "source" / POISONED)
    # Of two queries with one id Spark would end the first.
    (poisoned / ".metadata.crc").unlink()
    (poisoned / "metadata").write_text(json.dumps({"id": str(uuid4())}))
    half = UPath(world.folder / "target" / "half")
    CheckpointCopy.open(half, {"of": "a test"}).begin({"nothing": 1})
    settings = KINDS[DONE_UNSAID]
    return world.run(
        *(world.query(name, migrated=True, **KINDS[name]) for name in KINDS),
        world.query("one-cluster", **KINDS[CLEAN], batch_size=1000),
        world.query("half", migrated=True, **settings),
        world.query(POISONED, migrated=True, **KINDS[CLEAN])
        | {"checkpoint": str(world.folder / "source" / POISONED)},
    )


def test_the_offsets_differ(moved: Mapping[str, Mapping[str, Any]]) -> None:
    """The queries stopped where a copy of their offsets would have lost records."""
    for done in moved.values():
        used = [each for each in done["positions"] if each["use"] != "history"]
        assert all(int(each["target"]) < int(each["position"]) for each in used)
        assert {each["status"] for each in used} == {"exact"}
        assert done["max_reread"] == 0


def test_the_batches_are_those_of_the_original(
    world: World, moved: Mapping[str, Mapping[str, Any]]
) -> None:
    """Query, last batch and pending batch stay; the job is told of the topics' new names."""
    for name, done in moved.items():
        original = read_checkpoint(str(world.folder / "source" / name))
        assert done["query_id"] == original.query_id
        assert done["committed_batch"] == original.committed_batch
        assert done["pending_batch"] == original.pending_batch
        assert (original.pending_batch is None) == (name == CLEAN)
        for topic, named in done["topics"].items():
            assert named == f"{world.pair.naming.source_alias}.{topic}"
            assert any(f"must subscribe to {named}" in note for note in done["notes"])


def test_the_original_is_never_touched(
    world: World, moved: Mapping[str, Mapping[str, Any]]
) -> None:
    """Migrating again changes nothing, there or here, and tells the same."""
    for name, done in moved.items():
        places = [UPath(world.folder / side / name) for side in ("source", "target")]
        before = [inventory(place) for place in places]
        assert _migrate(world, name) == done
        assert [inventory(place) for place in places] == before


def test_a_partition_that_the_target_alone_has_is_told(
    world: World, moved: Mapping[str, Mapping[str, Any]]
) -> None:
    """Empty, it is no obstacle: the queries below go on, and read it from its beginning."""
    named = f"{world.pair.naming.target_topic(world.payments)}[{PARTITIONS}]"
    for name in (CLEAN, PENDING):
        assert any(note.startswith(named) for note in moved[name]["notes"])


@pytest.mark.parametrize("name", [CLEAN, PENDING])
def test_state_goes_on_in_mid_window(
    world: World, finished: Mapping[str, str | None], name: str
) -> None:
    """Deduplication, join and windows end as on one cluster, row by row; both state stores."""
    assert finished[name] is None
    assert finished["one-cluster"] is None
    expected = world.rows("one-cluster")
    assert len(expected) > 20
    assert world.rows(name) == expected


def test_an_exactly_once_sink_stays_so(world: World, finished: Mapping[str, str | None]) -> None:
    """A batch that the sink had is not written twice, though its checkpoint did not say so."""
    assert finished[DONE_UNSAID] is None
    numbers = Counter(row[0] for row in world.rows(DONE_UNSAID).elements())
    twice = dict.fromkeys(range(-3, END - 3), 1)
    expected = Counter(range(END)) + Counter(twice)
    expected.update(FLUSH + partition for partition in range(PARTITIONS))
    assert numbers == expected


def test_no_query_starts_from_half_a_copy(finished: Mapping[str, str | None]) -> None:
    """Spark fails on it at once."""
    assert "JsonParseException: Unrecognized token 'This'" in (finished["half"] or "")


def test_a_checkpoint_started_against_the_target_is_poisoned(
    world: World, finished: Mapping[str, str | None]
) -> None:
    """Topics renamed by the policy are new to Spark, and its own are gone: it fails, too late.

    What it has written by then is found out, and the checkpoint is not migrated.
    """
    assert "deleted" in (finished[POISONED] or "")
    with pytest.raises(CheckpointError, match=r"poisoned: .* has no end, and batch") as caught:
        _migrate(world, POISONED)
    assert "the job was started against another cluster" in str(caught.value)
