"""A checkpoint of the other cluster: what lies beside it says so, and it is refused."""

import ast
from pathlib import Path

import pytest
from upath import UPath

import airflow_mm2_offsets
from airflow_mm2_offsets.core.ids import ClusterIds, PairIds
from airflow_mm2_offsets.errors import ForeignPositionsError, HandoverError, PositionError
from airflow_mm2_offsets.migration import MigrationOptions, migrate_checkpoint
from airflow_mm2_offsets.positions.checkpoint import read_checkpoint_of
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.position_ids import note_ids
from tests.support.foreign_checkpoints import NOTINGS, Noting, note_cluster
from tests.support.pairs import Pair
from tests.unit.spark import checkpoints

WITHOUT_A_PAIR = {
    "cli.checkpoints": "shows what is in the checkpoint",
    "migration": "reads its own copy",
    "moves.handover": "compares it with what was read before",
    "operators.save_positions": "mm2_conn_id may be None",
    "positions.checkpoint": "compares it with the pair",
    "positions.reading": "mm2_conn_id may be None",
    "readiness.job": "gives what lies beside it to checks of their own",
    "spark.answers": "compares it with the job's own answer",
    "triggers.checkpoint": "waits for the job that was started with it",
}
"""Who reads a checkpoint without a pair of clusters, and why."""


@pytest.fixture
def pair() -> Pair:
    pair = Pair()
    pair.write("orders", range(30))
    pair.copy("orders", range(30))
    for cluster in (pair.pair.source, pair.pair.target):
        object.__setattr__(cluster, "timeout", 0.1)
    return pair


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return checkpoints.simple(tmp_path / "job" / "checkpoint")


@pytest.mark.parametrize("note", NOTINGS)
def test_a_checkpoint_of_the_target_is_refused(pair: Pair, checkpoint: Path, note: Noting) -> None:
    """The error names the file, both clusters and what to do; the way home takes it."""
    file = note(checkpoint, pair.target)
    with pytest.raises(ForeignPositionsError) as caught:
        read_checkpoint_of(pair.pair, str(checkpoint))
    assert isinstance(caught.value, PositionError)
    assert not caught.value.retryable
    assert caught.value.fields["file"].endswith(file)
    by_id = (pair.source.cluster_id, pair.target.cluster_id)
    by_address = (pair.source.bootstrap_servers, pair.target.bootstrap_servers)
    assert any(all(each in str(caught.value) for each in both) for both in (by_id, by_address))
    assert "give the checkpoint" in str(caught.value)
    back = read_checkpoint_of(pair.pair.exchanged(), str(checkpoint))
    assert back == read_checkpoint(str(checkpoint))


@pytest.mark.parametrize("note", NOTINGS)
def test_a_checkpoint_of_the_source_is_taken(pair: Pair, checkpoint: Path, note: Noting) -> None:
    """And so is one without a note."""
    assert read_checkpoint_of(pair.pair, str(checkpoint)).positions == {"orders": {0: 4, 1: 6}}
    note(checkpoint, pair.source)
    assert read_checkpoint_of(pair.pair, UPath(checkpoint)).positions == {"orders": {0: 4, 1: 6}}


@pytest.mark.parametrize("note", NOTINGS)
def test_a_lost_source_does_not_hide_it(pair: Pair, checkpoint: Path, note: Noting) -> None:
    """What is of the target can be no position on the source, whether that answers or not."""
    note(checkpoint, pair.target)
    pair.source.is_running = False
    for ask_source in (True, False):
        with pytest.raises(ForeignPositionsError):
            read_checkpoint_of(pair.pair, str(checkpoint), ask_source=ask_source)


def test_a_third_cluster_is_refused_too(pair: Pair, checkpoint: Path) -> None:
    """Its id differs from the source's."""
    note_cluster(checkpoint, Pair().source)
    with pytest.raises(ForeignPositionsError):
        read_checkpoint_of(pair.pair, str(checkpoint))


def test_a_topic_that_was_recreated_is_refused(pair: Pair, checkpoint: Path) -> None:
    """The job has begun no batch of it since its id was noted; once it has, it is taken."""
    place = UPath(checkpoint)
    noted = ClusterIds(cluster_id=pair.source.cluster_id, topic_ids={"orders": "an older topic"})
    note_ids(place, read_checkpoint(place), "an earlier run", PairIds(source=noted))
    with pytest.raises(ForeignPositionsError) as caught:
        read_checkpoint_of(pair.pair, place)
    assert caught.value.fields["topic"] == "orders"
    assert "an older topic" in str(caught.value)
    files = {"offsets/2": checkpoints.batch(checkpoints.orders(9, 9))}
    checkpoints.write(checkpoint, {**files, "commits/2": checkpoints.commit()})
    assert read_checkpoint_of(pair.pair, place).positions == {"orders": {0: 9, 1: 9}}


def test_a_note_of_another_query_says_nothing(pair: Pair, checkpoint: Path) -> None:
    """The checkpoint was deleted and begun again since."""
    note_cluster(checkpoint, pair.target)
    (checkpoint / "metadata").write_text('{"id":"another"}')
    assert read_checkpoint_of(pair.pair, str(checkpoint)).query_id == "another"


def test_a_damaged_note_is_an_error(pair: Pair, checkpoint: Path) -> None:
    """It may be the one that says so."""
    checkpoint.with_name("checkpoint.clusters.json").write_text("{")
    with pytest.raises(HandoverError, match=r"checkpoint\.clusters\.json"):
        read_checkpoint_of(pair.pair, str(checkpoint))


def test_a_control_location_that_can_not_be_opened_is_passed_over(
    pair: Pair, checkpoint: Path
) -> None:
    """A storage that only Spark reaches contradicts nothing."""
    note = '{"schema_version": 1, "control": "nosuch://bucket/control", "application_id": "a"}'
    checkpoint.with_name("checkpoint.control.json").write_text(note)
    assert read_checkpoint_of(pair.pair, str(checkpoint)).positions == {"orders": {0: 4, 1: 6}}


@pytest.mark.parametrize("note", NOTINGS)
def test_the_state_of_another_cluster_is_not_migrated(
    pair: Pair, checkpoint: Path, tmp_path: Path, note: Noting
) -> None:
    """Nothing is written."""
    note(checkpoint, pair.target)
    with pytest.raises(ForeignPositionsError):
        migrate_checkpoint(pair.pair, UPath(checkpoint), UPath(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()


def test_the_copy_that_a_migration_wrote_is_of_the_target(
    pair: Pair, checkpoint: Path, tmp_path: Path
) -> None:
    """A note beside the copy says so, before any job has run with it."""
    pair.sync("orders", *((number, number) for number in range(30)))
    pair.write("orders", range(30), partition=1)
    pair.copy("orders", range(30), partition=1)
    pair.sync("orders", *((number, number) for number in range(30)), partition=1)
    copy = UPath(tmp_path / "copy")
    options = MigrationOptions(allow_new_partitions=True)
    migrate_checkpoint(pair.pair, UPath(checkpoint), copy, options)
    with pytest.raises(ForeignPositionsError) as caught:
        read_checkpoint_of(pair.pair, copy)
    assert str(caught.value.fields["file"]).endswith("copy.clusters.json")
    assert read_checkpoint_of(pair.pair.exchanged(), copy).positions == {"orders": {0: 4, 1: 6}}


def test_who_reads_a_checkpoint_without_a_pair() -> None:
    """Every other module gets a checkpoint's positions from ``read_checkpoint_of``."""
    package = Path(airflow_mm2_offsets.__file__).parent
    found = set()
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = node.names if isinstance(node, ast.ImportFrom) else ()
            if any(each.name == "read_checkpoint" for each in names):
                parts = file.relative_to(package).with_suffix("").parts
                found.add(".".join(each for each in parts if each != "__init__"))
    assert found == set(WITHOUT_A_PAIR)
