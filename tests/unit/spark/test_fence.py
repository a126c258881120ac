"""The fence: who moved a job away, and when another run may touch it."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.locations import folder_id
from airflow_mm2_offsets.spark import control_files
from airflow_mm2_offsets.spark import fence as fences
from airflow_mm2_offsets.spark.fence import (
    Fence,
    FenceState,
    lift_fence,
    mark_moved,
    new_fence,
    raise_fence,
    read_fence,
)

FENCE = Fence(
    request_id="failover:manual__1",
    moved_to="s3://lake/orders/target",
    at=datetime(2026, 11, 21, 3, 15, tzinfo=UTC),
)
OTHER = replace(FENCE, request_id="failover:manual__2", moved_to="s3://lake/orders/elsewhere")


def test_a_fence_on_storage(control: UPath) -> None:
    """It is read as it was raised, and the file is what docs/stop-protocol.md says."""
    assert read_fence(control) is None
    assert raise_fence(control, FENCE) == FENCE
    assert read_fence(control) == FENCE
    assert json.loads((control / "fence.json").read_text()) == {
        "schema_version": 1,
        "request_id": "failover:manual__1",
        "moved_to": "s3://lake/orders/target",
        "at": "2026-11-21T03:15:00+00:00",
        "state": "stopping",
        "control": folder_id(control),
    }


def test_a_run_raises_its_fence_once(control: UPath) -> None:
    """A retry keeps the first time and what the run has come to since."""
    raise_fence(control, FENCE)
    later = new_fence(FENCE.request_id, "s3://lake/orders/target")
    assert later.at > FENCE.at
    assert raise_fence(control, later) == FENCE
    moved = mark_moved(control, FENCE.request_id, "s3://lake/orders/target")
    assert moved.state is FenceState.MOVED
    marked = mark_moved(control, FENCE.request_id, "s3://lake/orders/target")
    assert raise_fence(control, later) == marked == moved
    with pytest.raises(StopError, match="and not to elsewhere; a job is moved once"):
        mark_moved(control, FENCE.request_id, "elsewhere")
    assert read_fence(control) == moved


def test_another_runs_fence_is_refused_by_name(control: UPath) -> None:
    """The message names run, target, time and the command that lifts it."""
    raise_fence(control, FENCE)
    with pytest.raises(StopError) as caught:
        raise_fence(control, OTHER)
    assert "is being moved to s3://lake/orders/target by 'failover:manual__1'" in str(caught.value)
    assert "since 2026-11-21T03:15:00+00:00" in str(caught.value)
    assert f"fence lift {control} --request-id 'failover:manual__1'" in str(caught.value)
    for change in (mark_moved, lambda *given: lift_fence(*given[:2])):
        with pytest.raises(StopError, match="the fence is not of 'failover:manual__2'"):
            change(control, OTHER.request_id, "elsewhere")
    assert read_fence(control) == FENCE


def test_a_run_that_moved_nothing_gives_its_fence_over(control: UPath) -> None:
    """Only to the run that names it; the one before can't mark its move any more."""
    raise_fence(control, FENCE)
    with pytest.raises(StopError, match="by 'failover:manual__1'"):
        raise_fence(control, OTHER, instead_of="failover:manual__0")
    assert raise_fence(control, OTHER, instead_of=FENCE.request_id) == OTHER
    with pytest.raises(StopError, match="by 'failover:manual__2'"):
        mark_moved(control, FENCE.request_id, "s3://lake/orders/target")


def test_a_moved_job_is_moved_by_no_other_run(control: UPath) -> None:
    """Whatever the other run says: two jobs would run on the target."""
    raise_fence(control, FENCE)
    mark_moved(control, FENCE.request_id, "s3://lake/orders/target")
    with pytest.raises(StopError, match=r"was moved to .* stop the job that it started first"):
        raise_fence(control, OTHER, instead_of=FENCE.request_id)


def test_a_fence_is_lifted_by_name(control: UPath) -> None:
    """It is gone then; what does not stand can be neither lifted nor marked."""
    raise_fence(control, FENCE)
    assert lift_fence(control, FENCE.request_id) == FENCE
    assert read_fence(control) is None
    with pytest.raises(StopError, match="no fence stands"):
        lift_fence(control, FENCE.request_id)
    with pytest.raises(StopError, match="no fence stands"):
        mark_moved(control, FENCE.request_id, "elsewhere")


def test_two_runs_in_one_moment(control: UPath, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one whose file was overwritten sees it, and does not go on."""
    write = control_files.write_object

    def overtaken(path: UPath, values: dict[str, object]) -> None:
        write(path, values)
        write(path, {**values, "request_id": OTHER.request_id})

    monkeypatch.setattr(fences, "write_object", overtaken)
    with pytest.raises(StopError, match=r"just raised its fence .* by 'failover:manual__2'"):
        raise_fence(control, FENCE)


@pytest.mark.parametrize(
    "change", [{"at": "yesterday"}, {"at": "2026-11-21T03:15:00"}, {"state": "x"}, {"moved_to": 1}]
)
def test_a_damaged_fence_is_never_taken_for_none(tmp_path: Path, change: dict[str, object]) -> None:
    """It is named with its file: a job must not run past it."""
    raise_fence(str(tmp_path), FENCE)
    path = tmp_path / "fence.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(StopError, match=str(next(iter(change.values())))):
        read_fence(str(tmp_path))
    for text in ("", "{"):
        path.write_text(text)
        with pytest.raises(StopError, match=r"fence\.json: half-written or damaged"):
            read_fence(str(tmp_path))


def test_a_take_over_gives_way_to_a_mark(control: UPath, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has read the fence before the mark, and writes after it: the mark's fence is put back."""
    raise_fence(control, FENCE)
    write = control_files.write_object

    def late(path: UPath, values: dict[str, object]) -> None:
        monkeypatch.setattr(fences, "write_object", write)
        mark_moved(control, FENCE.request_id, "s3://lake/orders/target")
        write(path, values)

    monkeypatch.setattr(fences, "write_object", late)
    with pytest.raises(StopError, match="'failover:manual__1' has moved the job"):
        raise_fence(control, OTHER, instead_of=FENCE.request_id)
    assert json.loads((control / "fence.json").read_text())["state"] == "moved"


def test_a_fence_that_was_deleted_by_hand_is_not_written_again(control: UPath) -> None:
    """The job may run there again; the next run is refused, and told how to lift what is left."""
    raise_fence(control, FENCE)
    mark_moved(control, FENCE.request_id, "s3://lake/orders/target")
    (control / "fence.json").unlink()
    with pytest.raises(StopError, match=r"fence lift .*'failover:manual__1'"):
        raise_fence(control, OTHER)
    assert not (control / "fence.json").exists()
    lift_fence(control, FENCE.request_id)
    assert raise_fence(control, OTHER) == OTHER
