"""docs/runbook.md: what it quotes is what the package says."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_mm2_offsets import errors
from airflow_mm2_offsets.operators.plan_settings import PLAN_SETTINGS
from airflow_mm2_offsets.planning.lost_parts import PROBE_SECONDS
from tests.unit.dags.dags_folder import FOLDER, parse

PACKAGE = Path(errors.__file__).parent
RUNBOOK = FOLDER.parent / "docs" / "runbook.md"
NEVER_IN_A_FAILOVER = {"WireFormatError"}
"""A record that is no offset sync is skipped and counted."""


def _messages() -> Iterator[str]:
    """Yield every text of the package; what is put in at run time is a line break."""
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = (
                    part.value if isinstance(part, ast.Constant) else "\n" for part in node.values
                )
                yield "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def _quoted() -> list[str]:
    """Return the first cell of each row of the tables of messages."""
    section = RUNBOOK.read_text().partition("## Messages")[2]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


@pytest.fixture(scope="module")
def messages() -> list[str]:
    return list(_messages())


@pytest.mark.parametrize("quoted", _quoted())
def test_each_quoted_message_is_one_of_the_package(quoted: str, messages: list[str]) -> None:
    """Who looks for a part of a message at night finds the part that the package writes."""
    part = quoted.replace("...", "\n")  # what is put in at run time
    assert any(part in message for message in messages) or hasattr(errors, quoted)


def test_each_error_of_a_failover_is_in_the_runbook() -> None:
    """No class of error leaves the person on call without a step."""
    text = RUNBOOK.read_text().partition("## Messages")[2]
    names = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.Mm2OffsetsError)
    }
    missing = {
        name for name in names - NEVER_IN_A_FAILOVER - {"Mm2OffsetsError"} if name not in text
    }
    assert not missing


def test_each_task_and_param_that_the_runbook_names_is_one_of_the_dag() -> None:
    """Names in the runbook's examples of conf, with its options, and in its tables of tasks."""
    dag, drill = (parse(FOLDER / f"{name}.py").dags[name] for name in ("mm2_failover", "mm2_drill"))
    text = RUNBOOK.read_text()
    params = set(re.findall(r'"(\w+)": ', text))
    assert params <= {*dag.params, *PLAN_SETTINGS}
    failed = text.partition("## When a task fails")[2].partition("## Messages")[0]
    rows = re.findall(r"^\| (`.*?) \|", failed, re.MULTILINE)
    tasks = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert tasks
    assert tasks <= {*dag.task_ids, *drill.task_ids}


def test_a_disaster_waits_for_a_dead_source_as_long_as_is_told() -> None:
    """Five tasks ask it, each once: 25 seconds are the most that the night may lose to that."""
    told = f"costs {PROBE_SECONDS:g} s in each task"
    assert told in RUNBOOK.read_text()
    assert 5 * PROBE_SECONDS <= 25
