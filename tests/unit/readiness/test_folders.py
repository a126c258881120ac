"""Folders are tried without a trace; an object store only where the user says."""

import os
from typing import Any
from uuid import uuid4

import pytest
from upath import UPath

from airflow_mm2_offsets.core.readiness import CheckStatus
from airflow_mm2_offsets.core.readiness_names import CheckName
from tests.unit.readiness.ready_world import ReadyWorld, statuses, values

WRITABLE = CheckName.FOLDERS_WRITABLE


def test_local_folders_tell_without_a_try(
    world: ReadyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearest folder that exists must be ours to write."""
    assert statuses(world.report())[WRITABLE] is CheckStatus.OK
    monkeypatch.setattr(os, "access", lambda *_: False)
    found = values(world.report(), WRITABLE)
    assert found[0] == f"checkpoint: {world.folder}/source can't be written by this process's user"
    assert found[1].startswith(f"target_checkpoint: {world.folder} can't be written")


def test_a_file_in_a_folder_s_place(world: ReadyWorld) -> None:
    """A plan can't be kept below a file."""
    (world.folder / "plans").write_text("")
    found = values(world.report(plan_path=f"{world.folder}/plans/x/plan.json"), WRITABLE)
    assert f"plan_path: {world.folder}/plans is not a folder" in found[0]


def test_an_object_store_is_unknown_without_a_probe(world: ReadyWorld) -> None:
    """With a folder named for it, a file is written there and removed."""
    store = f"memory://bucket-{uuid4().hex}"
    report = world.report(target_checkpoint=f"{store}/checkpoint")
    (unknown,) = [check for check in report.checks if check.name is WRITABLE]
    assert unknown.status is CheckStatus.UNKNOWN
    assert "give probe_folder" in unknown.next_step
    settings: dict[str, Any] = {
        "target_checkpoint": f"{store}/checkpoint",
        "probe_folder": f"{store}/probes",
    }
    assert statuses(world.report(**settings))[WRITABLE] is CheckStatus.OK
    assert UPath(store).fs.find(UPath(store).path) == []


def test_a_probe_that_is_refused(world: ReadyWorld) -> None:
    """It is a failure that names the folder."""
    (world.folder / "file").write_text("")
    report = world.report(probe_folder=f"{world.folder}/file")
    assert statuses(report)[WRITABLE] is CheckStatus.FAILED
    assert "probe_folder: " in values(report, WRITABLE)[-1]
