"""Positions in the savepoint of a real Flink job, as docs/flink/ReadKafkaPositions.java reads them.

The job reads topics of the source that real MirrorMaker 2 copies, and stops in the middle of them.
What it has noted is the truth.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import pytest

from airflow_mm2_offsets.core import Positions
from airflow_mm2_offsets.core.positions import by_topic_partition
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.spark.offsets import parse_offsets
from stack import jars
from stack.local import JVM
from stack.mirror import Stack
from stack.process import Program, ProgramError
from stack.waiting import wait_until
from tests.integration.mirrors import Mirror, Writer, mirror, read

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
READER = ROOT / "docs" / "flink" / "ReadKafkaPositions.java"
PROGRAMS = Path(__file__).with_name("flink")
JOB, ENUMERATOR = PROGRAMS / "KafkaJob.java", PROGRAMS / "EnumeratorStates.java"
OPENED = ("java.base/java.util=ALL-UNNAMED", "java.base/java.lang=ALL-UNNAMED")
"""What Flink asks of Java 17 (``env.java.opts.all`` in its own conf)."""
PLAIN, TRANSACTIONS, EMPTY = range(3)
WRITTEN = 1200

Places = dict[tuple[str, int], list[int]]
"""Offsets by topic and partition."""


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """A job that was stopped with a savepoint."""

    folder: Path
    mirror: Mirror
    writers: tuple[Writer, ...]
    savepoint: str

    @cached_property
    def noted(self) -> Places:
        """What the job has processed, in its order."""
        places: Places = {}
        for line in (self.folder / "records").read_text().splitlines():
            topic, partition, offset = line.split()
            places.setdefault((topic, int(partition)), []).append(int(offset))
        return places

    def read(self, *arguments: str, uid: str = "orders-source") -> str:
        """Run the reader, and return what it prints."""
        return _java(READER, self.savepoint, uid, *arguments, folder=self.folder)

    @cached_property
    def positions(self) -> Positions:
        """What the reader finds with a consumer's properties."""
        properties = self.folder / "consumer.properties"
        properties.write_text(f"bootstrap.servers={self.mirror.stack.source}\n")
        return parse_offsets(self.read(str(properties)).splitlines()[-1])


def _java(*arguments: str | Path, folder: Path) -> str:
    """Run a Java program with Flink's jars, and return what it prints."""
    log = folder / "java.log"
    log.unlink(missing_ok=True)
    opened = [part for each in OPENED for part in ("--add-opens", each)]
    running = Program("Java", [*JVM, *opened, "-cp", f"{_flink()}/*:{folder}", *arguments], log=log)
    running.start()
    try:
        running.wait_end()
    finally:
        running.kill()
    return log.read_text()


def _flink() -> Path:
    return jars.fetch_flink(ROOT / "build", progress=print)


def _compile(*programs: Path, folder: Path) -> None:
    """Compile programs: Flink loads the classes of a job by their names."""
    compiler = ["javac", "-cp", f"{_flink()}/*", "-d", str(folder), *map(str, programs)]
    subprocess.run(compiler, check=True)


def _run_job(servers: str, topics: str, folder: Path, partitions: int, kind: str) -> str:
    """Run the job until it has ended, and return where its savepoint or checkpoint is."""
    _compile(JOB, folder=folder)
    arguments = (servers, topics, folder / "records", str(partitions), folder / "states", kind)
    return _java(JOB.stem, *arguments, folder=folder).splitlines()[-1]


@pytest.fixture(scope="module")
def stopped(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stopped]:
    """A job that has read parts of two topics; of one partition nothing is there to read."""
    folder = tmp_path_factory.mktemp("flink")
    with mirror(stack) as made:
        made.configure()
        orders, payments = (Writer(made, made.create_topic(count)) for count in (3, 1))
        for _ in range(4):
            orders.write({PLAIN: 100})
            orders.begin({TRANSACTIONS: 100})
            orders.commit()
        payments.write({PLAIN: 400})
        topics = f"{orders.topic},{payments.topic}"
        savepoint = _run_job(stack.source, topics, folder, 3, "CANONICAL")
        yield Stopped(folder=folder, mirror=made, writers=(orders, payments), savepoint=savepoint)


def test_a_position_is_behind_the_last_record_of_the_job(stopped: Stopped) -> None:
    """Each position is one more than the offset of the last record that the job processed."""
    noted = stopped.noted
    orders, payments = (writer.topic for writer in stopped.writers)
    assert noted.keys() == {(orders, PLAIN), (orders, TRANSACTIONS), (payments, PLAIN)}
    assert by_topic_partition(stopped.positions) == {
        **{place: offsets[-1] + 1 for place, offsets in noted.items()},
        (orders, EMPTY): 0,
    }
    assert sum(map(len, noted.values())) < WRITTEN


def test_the_job_goes_on_exactly_once_on_the_target(stopped: Stopped) -> None:
    """What the job noted, and what the target holds from the translated positions on, is all."""
    made, positions = stopped.mirror, stopped.positions
    for writer in stopped.writers:
        wait_until(partial(made.has_noted, writer), f"the copy of {writer.topic}")
    plan = plan_failover(made.pair, positions)
    assert {each.translation.status for each in plan.partitions} == {"exact"}
    for topic, partitions in plan.target_positions().items():
        for partition, position in partitions.items():
            source = read(made.pair.source, topic, [partition])
            noted = set(stopped.noted.get((topic, partition), []))
            rest = [each.value() for each in source if each.offset() not in noted]
            target = read(made.pair.target, topic, [partition])
            assert [each.value() for each in target if each.offset() >= position] == rest


def test_an_unread_partition_is_named(stopped: Stopped) -> None:
    """Without the properties of a consumer there is no answer for a partition without a record."""
    with pytest.raises(ProgramError) as refused:
        stopped.read()
    assert f"of [{stopped.writers[0].topic}-{EMPTY}] no record was read" in str(refused.value)


def test_a_wrong_uid_is_answered_with_those_of_the_savepoint(stopped: Stopped) -> None:
    """An operator that is not there, or is not a source, is an error that says so."""
    with pytest.raises(ProgramError, match="no operator with the uid orders; it has"):
        stopped.read(uid="orders")


def test_a_checkpoint_with_records_in_flight_is_refused(stopped: Stopped, tmp_path: Path) -> None:
    """Its source counts records as read that no operator has seen: they would be lost."""
    topic = stopped.writers[0].topic
    checkpoint = _run_job(stopped.mirror.stack.source, topic, tmp_path, 2, "UNALIGNED")
    with pytest.raises(ProgramError, match="is an unaligned checkpoint with records in flight"):
        _java(READER, checkpoint, "orders-source", folder=tmp_path)


def test_what_only_the_enumerator_knows_is_not_left_out(tmp_path: Path) -> None:
    """A split without a reader has its own position, or is an error that names it."""
    _compile(READER, ENUMERATOR, folder=tmp_path)
    lines = _java(ENUMERATOR.stem, folder=tmp_path).splitlines()
    answers = dict(line.split(": ", 1) for line in lines)
    assert answers["assigned"] == '{"orders":{"0":42}}'
    assert answers["unassigned"] == '{"orders":{"0":42,"1":7}}'
    assert answers["lost"].startswith("no reader holds [orders-1], which the enumerator has assi")
    assert answers["twice"] == "orders-0 is held twice, at 42 and at 0"
    assert answers["undiscovered"].startswith("the source orders-source had not yet found its par")
