"""The workflows of GitHub call the Makefile's own targets, and actions by commit."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.skipif(not WORKFLOWS, reason="an sdist has no workflows")
@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_calls_targets_that_are_there(file: Path) -> None:
    """Whoever renames a target finds the workflow; what CI runs can be run by hand."""
    called = set()
    for job in yaml.safe_load(file.read_text())["jobs"].values():
        called |= {*job.get("strategy", {}).get("matrix", {}).get("target", ())}
        for step in job["steps"]:
            called |= {*re.findall(r"^make ([a-z0-9-]+)$", step.get("run", ""), re.MULTILINE)}
            assert re.fullmatch(
                r"actions/[\w-]+@[0-9a-f]{40}", step.get("uses", f"actions/a@{'0' * 40}")
            )
    assert called
    assert called <= TARGETS
