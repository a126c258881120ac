"""Records are counted on the user's word; what shows that the word does not hold ends that."""

from dataclasses import replace

from airflow_mm2_offsets.core import Translation
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.testing import Record
from airflow_mm2_offsets.testing.logs import FIRST_TIMESTAMP
from tests.support.pairs import PARTITIONS, Pair, connect

POSITION = 40
TRUTH = 30
"""The records 20 to 39 lie before it, behind a gap of ten offsets on the source."""


def _stamped(number: int, at: int) -> Record:
    """Return the copy of a record that a transform has stamped, so that no two are equal."""
    headers = (("copied-at", b"%d" % at),)
    return Record(b"key", b"%d" % number, FIRST_TIMESTAMP + number, headers=headers)


def _appended(number: int, at: int) -> Record:
    """Return a copy with the broker's time of the append."""
    return Record(b"key", b"%d" % number, FIRST_TIMESTAMP + 10**6 + at)


def _copy_twice_in_part(clusters: Pair, copies: list[Record]) -> None:
    """Copy a log with a gap of ten offsets; one produce timed out, so ten lie there twice."""
    clusters.write("orders", range(10))
    clusters.source.skip_offsets("orders", 0, 10)
    clusters.write("orders", range(20, 100))
    clusters.target.create_topic("orders", partitions=PARTITIONS)
    clusters.target.produce("orders", 0, copies)
    clusters.sync("orders", (0, 0), (99, 99))


COPIED = [*range(10), *range(20, 60), *range(50, 60), *range(60, 100)]


def _answer(
    clusters: Pair, position: int, *, read_source: bool = True, changed_records: bool = False
) -> Translation:
    plan = plan_failover(
        clusters.pair,
        {"orders": {0: position}},
        options=PlanOptions(
            sole_writer=True, read_source=read_source, changed_records=changed_records
        ),
    )
    (partition,) = plan.partitions
    return partition.translation


def test_append_times_hide_equal_copies(clusters: Pair) -> None:
    _copy_twice_in_part(clusters, [_appended(each, at) for at, each in enumerate(COPIED)])
    clusters.target.topics["orders"].log_append_time = True
    assert (_answer(clusters, POSITION, read_source=False).target or 0) <= TRUTH


def test_copies_that_differ_from_their_records_are_not_counted(clusters: Pair) -> None:
    _copy_twice_in_part(clusters, [_stamped(each, at) for at, each in enumerate(COPIED)])
    assert (_answer(clusters, POSITION, changed_records=True).target or 0) <= TRUTH


def test_a_transform_of_the_connector_ends_the_counting(clusters: Pair) -> None:
    """The source is lost, so no record can be compared; the configuration tells."""
    _copy_twice_in_part(clusters, [_stamped(each, at) for at, each in enumerate(COPIED)])
    config = {"transforms": "stamp", "transforms.stamp.type": "org.example.InsertHeader"}
    clusters.pair = replace(clusters.pair, connect=connect(config=config))
    assert (_answer(clusters, POSITION, read_source=False).target or 0) <= TRUTH


def test_a_count_that_contradicts_the_syncs_does_not_count(clusters: Pair) -> None:
    """One record lies there twice: counted, the lower bound would pass the upper one."""
    clusters.write("orders", range(100))
    clusters.target.create_topic("orders", partitions=PARTITIONS)
    copies = [*range(50), 49, *range(50, 100)]
    stamped = [_stamped(each, at) for at, each in enumerate(copies)]
    clusters.target.produce("orders", 0, stamped)
    clusters.sync("orders", (0, 0), (99, 100))
    assert (_answer(clusters, 20, read_source=False).target or 0) <= 20
