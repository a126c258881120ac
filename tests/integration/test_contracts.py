"""The contract between the rooms: it is kept, and one foreign import in any room breaks it."""

import os
import shutil
import subprocess
import sys
import tomllib
from copy import deepcopy
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import grimp
import pytest

from tests.support.rooms_contract import RoomsContract

ROOT = Path(__file__).parents[2]
PACKAGE = "airflow_mm2_offsets"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
(CONTRACT,) = SETTINGS["contracts"]
ROWS: dict[str, list[str]] = CONTRACT["may_import"]
ROOMS = [room for room in ROWS if "." not in room]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Return who imports what, as import-linter sees it."""
    return grimp.build_graph(PACKAGE, include_external_packages=True)


def problems(graph: grimp.ImportGraph, options: dict[str, Any] = CONTRACT) -> list[str]:
    contract = RoomsContract("rooms", {"root_packages": [PACKAGE]}, options)
    check = contract.check(graph, verbose=False)
    assert check.kept is (not check.metadata["problems"])
    return list(check.metadata["problems"])


def test_a_room_needs_a_row(graph: grimp.ImportGraph) -> None:
    """The contract breaks for a room without a row."""
    assert problems(graph) == []
    rows = {room: names for room, names in ROWS.items() if room != "core"}
    assert problems(graph, CONTRACT | {"may_import": rows}) == ["core has no row"]


def test_no_two_rooms_may_import_each_other() -> None:
    """No two rooms may import each other, directly or through others."""
    lists = {room: [name.partition(".")[0] for name in ROWS[room]] for room in ROOMS}
    order = [*TopologicalSorter(lists).static_order()]
    assert order.index("core") < order.index("hooks") < order.index("operators")


@pytest.mark.parametrize("room", ROWS)
def test_a_foreign_import_breaks_the_contract(graph: grimp.ImportGraph, room: str) -> None:
    """In each room, an import that its row does not list breaks the contract."""
    module = f"{PACKAGE}.{room}"
    others = {*ROOMS} - {room.partition(".")[0], *ROWS[room]}
    for name in ["a_new_package", *(f"{PACKAGE}.{other}" for other in others)]:
        changed = deepcopy(graph)
        if name not in changed.modules:
            changed.add_module(name, is_squashed=True)
        changed.add_import(importer=module, imported=name)
        assert f"{module} imports {name}; {room} may not" in problems(changed)


def test_the_command_tells_a_broken_contract(tmp_path: Path) -> None:
    """The command that CI runs fails, and names the import."""
    shutil.copytree(ROOT / PACKAGE, tmp_path / PACKAGE)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / PACKAGE / "job" / "files.py").open("a") as file:
        file.write("import httpx\n")
    program = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run(
        [program, "--no-cache"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "BROKEN" in run.stdout
    assert f"{PACKAGE}.job.files imports httpx; job may not" in run.stdout
