"""The note of which clusters and topics a job's positions are of."""

from dataclasses import replace
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.core.ids import ClusterIds, PairIds
from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
from airflow_mm2_offsets.spark.position_ids import check_ids, note_ids
from tests.unit.spark import checkpoints


def ids(source: str, target: str = "t1", **more: str) -> PairIds:
    return PairIds(
        source=ClusterIds(cluster_id="S", topic_ids={"orders": source, **more}),
        target=ClusterIds(cluster_id="T", topic_ids={"orders": target}),
    )


@pytest.fixture
def root(tmp_path: Path) -> UPath:
    return UPath(checkpoints.simple(tmp_path / "checkpoint"))


@pytest.fixture
def found(root: UPath) -> Checkpoint:
    return read_checkpoint(root)


def _moved(found: Checkpoint, **ends: int) -> Checkpoint:
    """Return the checkpoint after a batch that ends there, by topic."""
    return replace(found, positions={topic: {0: end} for topic, end in ends.items()})


def test_the_first_ids_count_until_a_batch_of_the_topic_is_begun(
    root: UPath, found: Checkpoint
) -> None:
    """Positions that have not moved are of the topic that was there when they were first read."""
    assert note_ids(root, found, "run 1", ids("s1")) == ids("s1")
    assert note_ids(root, found, "run 2", ids("s2")) == ids("s1")
    begun = replace(found, pending={"orders": {0: 99}})
    assert note_ids(root, begun, "run 3", ids("s2")) == ids("s2")


def test_a_batch_of_other_topics_leaves_a_topics_ids(root: UPath, found: Checkpoint) -> None:
    """A topic without new records may be recreated after the job has read others.

    Its position is still of the topic that was deleted.
    """
    first = _moved(found, orders=100, bills=5)
    note_ids(root, first, "run 1", ids("s1", bills="b1"))
    later = _moved(found, orders=100, bills=9)
    assert note_ids(root, later, "run 2", ids("s2", bills="b2")) == ids("s1", bills="b2")
    begun = replace(later, pending={"orders": {0: 100}, "bills": {0: 12}})
    assert note_ids(root, begun, "run 3", ids("s2", bills="b3")) == ids("s1", bills="b3")
    ended = _moved(found, orders=100, bills=12)
    assert note_ids(root, ended, "run 4", ids("s2", bills="b4")) == ids("s1", bills="b3")


def test_a_job_that_has_moved_on_all_topics_may_read_another_cluster(
    root: UPath, found: Checkpoint
) -> None:
    """Nothing that was noted is of its positions; where one has not moved, the note counts."""
    elsewhere = replace(ids("x1"), source=ClusterIds(cluster_id="X", topic_ids={"orders": "x1"}))
    note_ids(root, _moved(found, orders=100), "run 1", ids("s1"))
    assert note_ids(root, _moved(found, orders=100), "run 2", elsewhere) == ids("s1")
    assert note_ids(root, _moved(found, orders=101), "run 3", elsewhere) == elsewhere


def test_within_a_run_the_first_ids_count_though_the_job_runs_on(
    root: UPath, found: Checkpoint
) -> None:
    """Between check and stop the job may have read either topic: nothing tells which."""
    note_ids(root, found, "run 1", ids("s1"))
    moved = _moved(found, orders=99)
    assert note_ids(root, moved, "run 1", ids("s2")) == ids("s1")
    assert note_ids(root, moved, "run 2", ids("s2")) == ids("s1")


def test_another_run_takes_the_target_as_it_is(root: UPath, found: Checkpoint) -> None:
    """What MirrorMaker 2 has copied again has nothing to do with the positions on the source."""
    note_ids(root, found, "run 1", ids("s1", "t1"))
    assert note_ids(root, found, "run 1", ids("s1", "t2")) == ids("s1", "t1")
    assert note_ids(root, found, "run 2", ids("s1", "t2")) == ids("s1", "t2")


def test_another_query_has_ids_of_its_own(root: UPath, found: Checkpoint) -> None:
    """A checkpoint that was deleted and begun again says nothing about the earlier one."""
    note_ids(root, found, "run 1", ids("s1"))
    other = replace(found, query_id="another")
    assert note_ids(root, other, "run 1", ids("s2")) == ids("s2")


def test_a_source_that_is_lost_keeps_the_ids_that_are_known(root: UPath, found: Checkpoint) -> None:
    """Its ids come back with it, and are compared then; topics that are new are added."""
    lost = PairIds(target=ids("").target)
    assert note_ids(root, found, "run 1", lost) == lost
    assert note_ids(root, found, "run 1", ids("s1")) == ids("s1")
    assert note_ids(root, found, "run 1", lost) == ids("s1")
    assert note_ids(root, found, "run 1", ids("s2", bills="b1")) == ids("s1", bills="b1")


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"request_id": "x"}'])
def test_a_note_that_is_damaged_is_named(root: UPath, found: Checkpoint, text: str) -> None:
    """It is not passed over: it may be the one that tells of a recreated topic."""
    path = root.with_name("checkpoint.clusters.json")
    path.write_text(text)
    with pytest.raises(HandoverError, match=r"checkpoint\.clusters\.json does not hold the ids"):
        note_ids(root, found, "run 1", ids("s1"))


def test_a_folder_that_takes_no_note_is_no_obstacle(
    root: UPath,
    found: Checkpoint,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The source's storage may be read-only: the ids still pass from task to task."""

    def refuse(*_: object) -> None:
        raise HandoverError("read-only")

    monkeypatch.setattr("airflow_mm2_offsets.spark.position_ids.write_text", refuse)
    assert note_ids(root, found, "run 1", ids("s1")) == ids("s1")
    assert "not saved for a cleared task or another run: read-only" in caplog.text


@pytest.mark.parametrize(
    ("now", "named"),
    [
        (ids("s2"), r"source\.topic_ids\.orders is 's2' now, and was 's1' .* commit a batch"),
        (
            ids("s1", "t2"),
            r"target\.topic_ids\.orders is 't2' now, and was 't1' .* Wait until",
        ),
        (
            replace(ids("s1"), source=ClusterIds(cluster_id="X", topic_ids={})),
            r"source\.cluster_id is 'X' now, and was 'S' .* see that the connection",
        ),
        (
            replace(ids("s1"), source=ClusterIds(cluster_id="S", topic_ids={})),
            r"source\.topic_ids\.orders is None now",
        ),
    ],
)
def test_what_differs_is_named_with_the_step(now: PairIds, named: str) -> None:
    """The field, both ids, and what to do."""
    with pytest.raises(HandoverError, match=named):
        check_ids(ids("s1"), now)


def test_a_source_that_is_lost_is_not_compared() -> None:
    """In a disaster nothing is asked of it."""
    check_ids(ids("s1"), PairIds(target=ids("").target))
