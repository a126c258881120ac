"""README.md and the pages of docs/: their DAGs are built as written."""

import re
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("page", "dag_ids"),
    [
        ("README.md", ["translate_orders"]),
        ("docs/start.md", ["evacuate", "translate_orders"]),
        ("docs/failover.md", ["evacuate"]),
        ("docs/positions.md", ["move_orders"]),
        ("docs/connect.md", ["copy_again", "forget", "mirror"]),
        ("docs/fleet.md", ["evacuate_east"]),
        ("docs/platforms.md", ["evacuate_emr"]),
        ("docs/consumer-groups.md", ["sync_orders_groups"]),
    ],
)
def test_the_documented_dags_are_built(page: str, dag_ids: list[str]) -> None:
    """Each code block that makes a DAG runs as it is written, and the DAG has tasks."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    dags = [_build(block, page) for block in blocks if "with DAG(" in block]
    assert sorted(dag.dag_id for dag in dags) == dag_ids
    assert all(dag.tasks for dag in dags)


def _build(block: str, page: str) -> DAG:
    """Return the DAG that a code block makes."""
    names: dict[str, Any] = {}
    written = re.sub(r"(with DAG\(.*\)):", r"\1 as dag:", block)
    exec(compile(written, page, "exec"), names)  # noqa: S102 - the page's own example
    return next(value for value in names.values() if isinstance(value, DAG))
