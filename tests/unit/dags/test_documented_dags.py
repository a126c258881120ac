"""README.md and the pages of docs/: their DAGs are built as written, and their links lead on."""

import re
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    str(page.relative_to(ROOT)) for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
)


@pytest.mark.parametrize(
    ("page", "dag_ids"),
    [
        ("README.md", ["evacuate", "translate_orders"]),
        ("docs/failover.md", ["evacuate"]),
        ("docs/positions.md", ["move_orders"]),
        ("docs/connect.md", ["copy_again", "forget", "mirror"]),
        ("docs/fleet.md", ["evacuate_fleet"]),
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


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_a_page_and_its_heading(page: str) -> None:
    """Each relative link names a file of the repository and, after ``#``, one of its headings."""
    folder = (ROOT / page).parent
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", (ROOT / page).read_text())
    for path, anchor in links:
        linked = folder / path if path else ROOT / page
        assert linked.exists(), path
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
            anchors = {
                re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings
            }
            assert anchor in anchors, f"{path}#{anchor}"
