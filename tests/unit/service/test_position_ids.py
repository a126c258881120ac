"""The note of which clusters and topics a job's positions are of."""

from dataclasses import replace
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.core.ids import ClusterIds, PairIds
from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.service.position_ids import check_ids, note_ids
from airflow_mm2_offsets.spark.checkpoint import Checkpoint, read_checkpoint
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


def test_the_first_ids_count_until_another_batch_is_begun(root: UPath, found: Checkpoint) -> None:
    """Positions that have not moved are of the topic that was there when they were first read."""
    assert note_ids(root, found, "run 1", ids("s1")) == ids("s1")
    assert note_ids(root, found, "run 2", ids("s2")) == ids("s1")
    moved = replace(found, pending_batch=2)
    assert note_ids(root, moved, "run 3", ids("s2")) == ids("s2")


def test_within_a_run_the_first_ids_count_though_the_job_runs_on(
    root: UPath, found: Checkpoint
) -> None:
    """Between check and stop the job may have read either topic: nothing tells which."""
    note_ids(root, found, "run 1", ids("s1"))
    moved = replace(found, committed_batch=7)
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

    monkeypatch.setattr("airflow_mm2_offsets.service.position_ids.write_text", refuse)
    assert note_ids(root, found, "run 1", ids("s1")) == ids("s1")
    assert "not kept for a cleared task or another run: read-only" in caplog.text


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
