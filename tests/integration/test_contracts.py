"""The import contracts of pyproject.toml: each is kept, and one foreign import breaks it."""

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

from tests.support.room_contract import RoomContract

ROOT = Path(__file__).parents[2]
PACKAGE = "airflow_mm2_offsets"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
CONTRACTS: dict[str, Any] = {each["room"]: each for each in SETTINGS["contracts"]}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Return who imports what, as import-linter sees it."""
    return grimp.build_graph(PACKAGE, include_external_packages=True)


def foreign(graph: grimp.ImportGraph, room: str) -> list[tuple[str, str]]:
    """Return the imports of a room that its contract does not allow."""
    options = {"root_packages": [PACKAGE]}
    check = RoomContract(room, options, CONTRACTS[room]).check(graph, verbose=False)
    imports = check.metadata["foreign"]
    assert check.kept is (not imports)
    return list(imports)


def test_each_room_has_a_contract(graph: grimp.ImportGraph) -> None:
    """A new room is not left out."""
    rooms = {f"{PACKAGE}.{room}" for room in CONTRACTS if "." not in room}
    assert rooms == graph.find_children(PACKAGE)


def test_the_rooms_stand_in_floors() -> None:
    """No two rooms may import each other, by whatever way."""
    rooms = {
        room: [name.partition(".")[0] for name in each["may_import"]]
        for room, each in CONTRACTS.items()
        if "." not in room
    }
    order = [*TopologicalSorter(rooms).static_order()]
    assert order.index("core") < order.index("hooks") < order.index("operators")


@pytest.mark.parametrize("room", CONTRACTS)
def test_a_foreign_import_breaks_a_contract(graph: grimp.ImportGraph, room: str) -> None:
    """Each contract is kept; a package or a room that it does not list breaks it."""
    assert foreign(graph, room) == []
    module = f"{PACKAGE}.{room}"
    rooms = {other for other in CONTRACTS if "." not in other}
    rooms -= {room.partition(".")[0], *CONTRACTS[room]["may_import"]}
    for name in ["a_new_package", *(f"{PACKAGE}.{other}" for other in rooms)]:
        changed = deepcopy(graph)
        if name not in changed.modules:
            changed.add_module(name, is_squashed=True)
        changed.add_import(importer=module, imported=name)
        assert foreign(changed, room) == [(module, name)]


def test_the_command_tells_a_broken_contract(tmp_path: Path) -> None:
    """What CI runs ends with an error that names the import."""
    shutil.copytree(ROOT / PACKAGE, tmp_path / PACKAGE)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / PACKAGE / "core" / "wire.py").open("a") as file:
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
    assert "core BROKEN" in run.stdout
    assert f"{PACKAGE}.core.wire imports httpx; core may not" in run.stdout
