"""Positions in the snapshots of real Iceberg tables, which pyiceberg writes."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.table import StaticTable, Table

from airflow_mm2_offsets.errors import ConfigurationError, StoredPositionsError
from airflow_mm2_offsets.positions.iceberg import read_iceberg_positions

NAME = "kafka-offsets"
ROWS = pa.table({"id": pa.array([1], pa.int64())})


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[InMemoryCatalog]:
    catalog = InMemoryCatalog("lake", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    yield catalog
    catalog.close()


@pytest.fixture
def table(catalog: InMemoryCatalog) -> Table:
    return catalog.create_table("db.orders", ROWS.schema)


def append(table: Table, offsets: str | None, branch: str = "main") -> int:
    properties = {} if offsets is None else {NAME: offsets}
    table.append(ROWS, snapshot_properties=properties, branch=branch)
    snapshot = table.snapshot_by_name(branch)
    assert snapshot is not None
    return snapshot.snapshot_id


@pytest.mark.parametrize(
    "offsets", ['{"orders":{"0":42,"1":7}}', "orders,0:42,1:7", "orders,1:7,0:42"]
)
def test_the_newest_snapshot_counts(table: Table, offsets: str) -> None:
    """Both forms of the property are the same positions."""
    append(table, "orders,0:40,1:7")
    append(table, offsets)
    assert read_iceberg_positions(table, NAME) == {"orders": {0: 42, 1: 7}}


def test_several_topics_are_read_from_sparks_json(table: Table) -> None:
    """Spark's JSON holds any number of topics."""
    append(table, '{"orders":{"0":42},"payments.eu-1":{"3":0}}')
    expected = {"orders": {0: 42}, "payments.eu-1": {3: 0}}
    assert read_iceberg_positions(table, NAME) == expected


def test_a_snapshot_without_positions_is_passed_over(table: Table) -> None:
    """A compaction or another writer notes none: those of its parent count."""
    append(table, "orders,0:42")
    append(table, None)
    table.overwrite(ROWS)
    assert read_iceberg_positions(table, NAME) == {"orders": {0: 42}}


def test_a_rolled_back_snapshot_does_not_count(table: Table) -> None:
    """After a rollback the positions of the snapshot count that the table was rolled back to."""
    first = append(table, "orders,0:40")
    append(table, "orders,0:42")
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    assert read_iceberg_positions(table, NAME) == {"orders": {0: 40}}
    append(table, None)
    assert read_iceberg_positions(table, NAME) == {"orders": {0: 40}}


def test_each_branch_has_its_own_history(table: Table) -> None:
    """A branch goes on from where it was created; main is not touched by it."""
    first = append(table, "orders,0:40")
    table.manage_snapshots().create_branch(first, "audit").commit()
    append(table, "orders,0:99", branch="audit")
    append(table, "orders,0:42")
    assert read_iceberg_positions(table, NAME) == {"orders": {0: 42}}
    assert read_iceberg_positions(table, NAME, branch="audit") == {"orders": {0: 99}}


def test_what_was_committed_since_is_seen(catalog: InMemoryCatalog, table: Table) -> None:
    """A table that was loaded earlier is read anew."""
    append(table, "orders,0:40")
    earlier = catalog.load_table("db.orders")
    append(table, "orders,0:42")
    assert read_iceberg_positions(earlier, NAME) == {"orders": {0: 42}}


def test_a_metadata_file_is_read_where_the_catalog_is_lost(table: Table) -> None:
    """A static table holds the positions of its file."""
    append(table, "orders,0:42")
    static = StaticTable.from_metadata(table.metadata_location)
    append(table, "orders,0:50")
    assert read_iceberg_positions(static, NAME) == {"orders": {0: 42}}


def test_an_expired_snapshot_is_not_replaced_by_another(table: Table) -> None:
    """If the snapshot with positions is gone, there are none; what is there is named."""
    first = append(table, "orders,0:42")
    append(table, None)
    table.maintenance.expire_snapshots().by_id(first).commit()
    message = r"db\.orders: none of the 1 snapshots of the branch main .* has the property kafka-of"
    with pytest.raises(StoredPositionsError, match=message):
        read_iceberg_positions(table, NAME)


def test_a_misspelt_property_is_answered_with_those_that_there_are(table: Table) -> None:
    """The message lists the properties, without Iceberg's own counts."""
    append(table, "orders,0:42")
    message = r"has the property kafka_offsets; their properties are kafka-offsets\. Correct"
    with pytest.raises(StoredPositionsError, match=message):
        read_iceberg_positions(table, "kafka_offsets")


def test_a_table_without_snapshots_has_no_positions(table: Table) -> None:
    """An empty table is refused, and an unknown branch too."""
    with pytest.raises(StoredPositionsError, match=r"no branch main; .* the table has no snapshot"):
        read_iceberg_positions(table, NAME)
    append(table, "orders,0:42")
    with pytest.raises(StoredPositionsError, match="no branch audit; its branches and tags are ma"):
        read_iceberg_positions(table, NAME, branch="audit")


@pytest.mark.parametrize(
    ("offsets", "problem"),
    [
        ("", r"'' is not offsets"),
        ("42", r"'42' is not offsets, as in 'orders,0:42,1:7'"),
        ("orders", "is not offsets"),
        ("orders,0:42,payments,0:1", "is not offsets"),
        ("orders,0:42;1:7", "is not offsets"),
        ("orders,0:forty", "is not offsets"),
        ("orders,0:1,0:2", "names a partition twice"),
        ("orders,0:-1", r"orders\[0\]: -1 is not a position"),
        ("orders,0:-2", r"orders\[0\]: -2 is not a position"),
        ('{"orders":{"0":-2}}', r"orders\[0\]: -2 is not a position"),
        ('{"0":17}', "17"),
        ('{"orders":{"0":42}', "is not"),
        ("orders,0:9223372036854775808", "is not a position"),
    ],
)
def test_what_is_not_offsets_is_refused(table: Table, offsets: str, problem: str) -> None:
    """The message names table, snapshot, property and value; an older snapshot is not taken."""
    append(table, "orders,0:40")
    snapshot = append(table, offsets)
    with pytest.raises(StoredPositionsError, match=problem) as refused:
        read_iceberg_positions(table, NAME)
    assert f"db.orders: snapshot {snapshot}: {NAME}: " in str(refused.value)
    assert not refused.value.retryable


def test_offsets_of_a_control_topic_are_refused(table: Table) -> None:
    """What Kafka Connect's sink notes is not of the topics that it reads."""
    name = "kafka.connect.offsets.control-iceberg.cg-control-orders"
    table.append(ROWS, snapshot_properties={name: '{"0":17}'})
    with pytest.raises(ConfigurationError, match="not of the topics that it reads: those are in"):
        read_iceberg_positions(table, name)


def test_a_catalog_that_does_not_answer_may_be_asked_again() -> None:
    """The error is one of this package, names the table and is retryable."""

    def refresh() -> None:
        raise ConnectionError("lake:8181 refused the connection")

    silent = SimpleNamespace(name=lambda: ("db", "orders"), refresh=refresh)
    message = r"db\.orders can't be read: ConnectionError: lake:8181 refused"
    with pytest.raises(StoredPositionsError, match=message) as refused:
        read_iceberg_positions(silent, NAME)  # type: ignore[arg-type]
    assert refused.value.retryable
