"""The table of rights: docs/security.md has it, and nothing is missing in it."""

import re
from pathlib import Path

import airflow_mm2_offsets.operators as operators_room
import airflow_mm2_offsets.sensors as sensors_room
from airflow_mm2_offsets.cli.app import app
from airflow_mm2_offsets.cli.lazy import Entry, LazyGroup
from airflow_mm2_offsets.core.acls import TASK_RIGHTS, WITHOUT_RIGHTS

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
BASES = {"AskOperator", "PollingSensor"}
"""What operators and sensors have in common; no DAG can use them alone."""
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def test_the_page_has_the_same_table() -> None:
    """Each task has a row, with who uses it and its rights."""
    page = PAGE.read_text()
    rows = {task: (used, rights) for task, used, rights in ROW.findall(page)}
    assert rows == {
        each.task: (
            ", ".join(name if " the " in f" {name}" else f"`{name}`" for name in each.used_by),
            "; ".join(map(str, each.rights)),
        )
        for each in TASK_RIGHTS
    }
    (sentence,) = re.findall(r"^These ask no Kafka cluster: (.+)\.$", page, re.MULTILINE)
    assert sentence == ", ".join(f"`{name}`" for name in WITHOUT_RIGHTS)


def test_every_operator_sensor_and_command_is_listed() -> None:
    """A new one can't be forgotten, and none that is gone stays.

    Commands of ``helping`` ask no cluster and no storage.
    """
    listed = {*WITHOUT_RIGHTS, *(name for each in TASK_RIGHTS for name in each.used_by)}
    classes = {
        path.removesuffix(".py")
        for room in (operators_room, sensors_room)
        for file in Path(room.__path__[0]).glob("*.py")
        for path in re.findall(r"^class (\w+(?:Operator|Sensor))\b", file.read_text(), re.MULTILINE)
    } - BASES
    groups = {name for name, entry in app.entries.items() if isinstance(entry, LazyGroup)}
    commands = {
        name
        for name, entry in app.entries.items()
        if isinstance(entry, Entry) and entry.module != "helping"
    }
    assert commands
    assert groups
    assert classes == {name for name in listed if name.endswith(("Operator", "Sensor"))}
    assert commands <= listed
    named = {name.split()[0] for name in listed} - {"the"} - classes
    assert groups <= named <= {*app.entries}
