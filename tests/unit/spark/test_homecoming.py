"""Coming home to the folder that a job was moved away from, killed between any two steps."""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.spark import control_files, fence, planted_start, set_aside
from airflow_mm2_offsets.spark.claim import claim_target, has_claimed
from airflow_mm2_offsets.spark.fence import mark_moved, new_fence, raise_fence, read_fence
from airflow_mm2_offsets.spark.homecoming import (
    has_begun,
    lift_for_home,
    prepare_home,
    run_hash,
)
from airflow_mm2_offsets.storage import list_files
from tests.unit.spark import checkpoints

FIRST, HOME, LATER = "away:1", "home:2", "home:3"
AWAY = "s3://us/orders"
STARTS = {"orders": {0: 40, 1: 60}}


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture(params=["local", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UPath]:
    """Return the folder of a job that was moved away with an answer."""
    files = checkpoints.simple(tmp_path / "home" / "checkpoint")
    root = UPath(tmp_path / "home")
    if request.param == "memory":
        root = UPath(f"memory://home{tmp_path}")
        for path in files.rglob("*"):
            if path.is_file():
                (root / "checkpoint" / str(path.relative_to(files))).parent.mkdir(
                    parents=True, exist_ok=True
                )
                (root / "checkpoint" / str(path.relative_to(files))).write_bytes(path.read_bytes())
        (root / "control").mkdir(parents=True, exist_ok=True)
    claim_target(root / "checkpoint", "an earlier home")
    for name in ("clusters", "control"):
        (root / f"checkpoint.{name}.json").write_text("{}")
    _move_away(root / "control")
    yield root
    if request.param == "memory":
        root.fs.rm(root.path, recursive=True)


def _move_away(control: UPath, *, proof: str | None = None) -> None:
    raise_fence(control, new_fence(FIRST, AWAY))
    mark_moved(control, FIRST, AWAY)
    answer: dict[str, Any] = {"request_id": FIRST, "application_id": "a", "clean": True}
    answer |= {"proof": proof} if proof else {}
    (control / "stopped.json").write_text(json.dumps(answer))


def _prepare(
    folder: UPath,
    run: str = HOME,
    came_from: str = AWAY,
    starts: dict[str, dict[int, int]] = STARTS,
) -> str | None:
    home = prepare_home(
        folder / "checkpoint",
        folder / "control",
        request_id=run,
        from_folder=came_from,
        positions=starts,
    )
    return home.set_aside


def _lift(folder: UPath, run: str = HOME, starts: dict[str, dict[int, int]] = STARTS) -> None:
    lift_for_home(folder / "checkpoint", folder / "control", request_id=run, positions=starts)


def _come_home(folder: UPath) -> None:
    _prepare(folder)
    claim_target(folder / "checkpoint", HOME)
    _lift(folder)


def _files(folder: UPath) -> dict[str, bytes]:
    return {
        name: (folder / name).read_bytes() for name in sorted(list_files(folder, HandoverError))
    }


def test_a_job_comes_home(folder: UPath) -> None:
    """The old checkpoint is aside, whole; every driver starts where the plan says."""
    before = _files(folder / "checkpoint")
    aside = _prepare(folder)
    assert aside is not None
    assert _files(UPath(aside, **folder.storage_options)) == before
    assert _files(folder / "checkpoint") == {}
    standing = read_fence(folder / "control")
    assert standing is not None
    assert (standing.request_id, standing.state) == (HOME, "moved")
    claim_target(folder / "checkpoint", HOME)
    _lift(folder)
    assert read_fence(folder / "control") is None
    text = checkpoints.start('{"orders":{"0":40,"1":60}}')
    assert _files(folder / "checkpoint") == {"sources/0/0": text.encode()}
    assert not has_begun(folder / "checkpoint")
    (folder / "checkpoint" / "metadata").write_text("{}")
    assert has_begun(folder / "checkpoint")


def test_a_cleared_task_leaves_the_new_job_alone(folder: UPath) -> None:
    """Once the fence is lifted, neither step touches what lies there; nor the claim."""
    _come_home(folder)
    (folder / "checkpoint" / "metadata").write_text("the new job's")
    before = _files(folder)
    _come_home(folder)
    assert _files(folder) == before
    assert has_claimed(folder / "checkpoint", HOME)


def test_a_later_failover_finds_its_own_fence(folder: UPath) -> None:
    """The job can be moved away again, and a late retry of this run changes nothing."""
    _come_home(folder)
    raise_fence(folder / "control", new_fence("away:4", AWAY))
    _come_home(folder)
    standing = read_fence(folder / "control")
    assert standing is not None
    assert standing.request_id == "away:4"


@pytest.mark.parametrize("number", range(1, 48))
def test_killed_anywhere_the_next_try_ends_the_same(
    folder: UPath, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Until all is ready the fence stands, and the old checkpoint is whole in one of two places."""
    before = _files(folder / "checkpoint")
    aside = folder / f"checkpoint.until-{run_hash(HOME)}"
    kills = _Kills(monkeypatch)
    kills.left = number
    try:
        _come_home(folder)
    except Killed:
        wholes = [_files(place) for place in (folder / "checkpoint", aside)]
        assert any(before.items() <= each.items() for each in wholes)
        if read_fence(folder / "control") is None:
            assert "sources/0/0" in _files(folder / "checkpoint")
    kills.left = 10**6
    _come_home(folder)
    assert read_fence(folder / "control") is None
    assert _files(aside) == before
    assert [*_files(folder / "checkpoint")] == ["sources/0/0"]
    assert has_claimed(folder / "checkpoint", HOME)


class _Kills:
    """Kills the process before or after a step on storage."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 10**6
        for module, name in (
            *((set_aside, each) for each in ("copy_file", "remove_file", "rename_folder")),
            *((module, "write_text") for module in (set_aside, control_files, planted_start)),
            (fence, "remove_file"),
        ):
            monkeypatch.setattr(module, name, self._killing(getattr(module, name)))

    def _killing(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            self._tick()
            value = step(*args, **kwargs)
            self._tick()
            return value

        return run

    def _tick(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


def test_another_job_is_refused(folder: UPath) -> None:
    """The fence must name the folder that the job comes from; nothing is touched."""
    before = _files(folder)
    with pytest.raises(HandoverError, match="it is another job, or another run"):
        _prepare(folder, came_from="s3://us/refunds")
    assert _files(folder) == before


def test_a_job_that_may_run_is_refused(folder: UPath) -> None:
    """Without a fence a checkpoint may be in use; a stop that is under way has not moved it."""
    control = folder / "control"
    standing = read_fence(control)
    assert standing is not None
    fence.lift_fence(control, FIRST)
    raise_fence(control, replace(standing, state=fence.FenceState.STOPPING))
    with pytest.raises(HandoverError, match="that run has not ended"):
        _prepare(folder)
    fence.lift_fence(control, FIRST)
    with pytest.raises(HandoverError, match="no fence says that the job was moved away"):
        _prepare(folder)


def test_a_driver_that_was_only_silent_is_refused(folder: UPath) -> None:
    """It may wake with the old query in memory: only a new folder is safe."""
    _move_away(folder / "control", proof="silent")
    with pytest.raises(HandoverError, match=r"was only silent.*give a new, empty home folder"):
        _prepare(folder)
    (folder / "control" / "stopped.json").unlink()
    with pytest.raises(HandoverError, match="has never answered a stop"):
        _prepare(folder)


def test_a_new_folder_needs_nothing(tmp_path: Path) -> None:
    """The fence in the old folder stays; nothing is written into the new one."""
    folder = UPath(tmp_path)
    assert _prepare(folder) is None
    _lift(folder)
    assert _files(folder) == {}


def test_only_one_run_brings_a_job_home(folder: UPath) -> None:
    """A run that is overtaken does not lift the fence of the other."""
    _prepare(folder)
    _prepare(folder, run=LATER)
    with pytest.raises(HandoverError, match="the fence is not of 'home:2'"):
        _lift(folder)
    assert read_fence(folder / "control") is not None


@pytest.mark.parametrize("number", range(1, 60))
def test_after_a_run_that_was_rolled_back_the_next_one_comes_home(
    folder: UPath, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Killed anywhere in between: the second run has the job's whole checkpoint, and lifts."""
    before = _files(folder / "checkpoint")
    kills = _Kills(monkeypatch)
    kills.left = number
    with contextlib.suppress(Killed):
        _prepare(folder)
        _prepare(folder, run=LATER)
    kills.left = 10**6
    _prepare(folder, run=LATER)
    claim_target(folder / "checkpoint", LATER)
    _lift(folder, run=LATER)
    assert read_fence(folder / "control") is None
    assert _files(folder / f"checkpoint.until-{run_hash(LATER)}") == before
    assert [*_files(folder / "checkpoint")] == ["sources/0/0"]
    assert has_claimed(folder / "checkpoint", LATER)


def test_topics_that_do_not_fit_are_refused_before_the_hand_over(folder: UPath) -> None:
    """Nothing is touched: afterwards it would be too late to turn back."""
    before = _files(folder)
    with pytest.raises(HandoverError, match="plan starts the topics payments"):
        _prepare(folder, starts={"payments": {0: 1}})
    assert _files(folder) == before


def test_a_fence_lifted_by_somebody_else_starts_nothing(folder: UPath) -> None:
    """An old driver may run then."""
    _prepare(folder)
    fence.lift_fence(folder / "control", HOME)
    with pytest.raises(HandoverError, match="the fence was lifted by somebody else"):
        _lift(folder)
    with pytest.raises(HandoverError, match="lifted while the old checkpoint was set aside"):
        _prepare(folder)


def test_other_topics_than_the_jobs_are_refused(folder: UPath) -> None:
    """The start of each source must be known: else an old driver would begin elsewhere."""
    _prepare(folder)
    with pytest.raises(HandoverError, match="plan starts the topics payments"):
        _lift(folder, starts={"payments": {0: 1}})
    assert read_fence(folder / "control") is not None
