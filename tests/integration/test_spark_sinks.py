"""Sinks of a real Spark, and a real Delta Lake, that drop what a fresh checkpoint begins with."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stack import jars
from tests.integration.spark_jobs import ROOT, SUBMIT, submit

FIRST, SECOND = 4, 6
"""Batches of one record with the first checkpoint, and with the fresh one after it."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the package said of each sink, and what the sinks held in the end."""
    folder = tmp_path_factory.mktemp("sinks")
    for number, count in enumerate((FIRST, SECOND)):
        for batch in range(count):
            file = folder / f"input-{number}" / f"{batch}.txt"
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"record {batch} of {number}\n")
    delta = ",".join(map(str, jars.fetch_lake(ROOT / "build", progress=print).delta))
    script = Path(__file__).with_name("sinks_job.py")
    program = submit("the sinks", [*SUBMIT, "--jars", delta, script, folder], folder)
    program.start()
    try:
        program.wait_end()
    finally:
        program.kill()
    answers: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return answers


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("files", f"its _spark_metadata has batches up to {FIRST - 1};"),
        ("delta", f"has txnVersion {FIRST - 1} of txnAppId orders-job;"),
        ("delta v2", f"has txnVersion {FIRST - 1} of txnAppId orders-job;"),
    ],
)
def test_a_sink_that_drops_batches_is_found_before(
    results: dict[str, Any], sink: str, message: str
) -> None:
    """Spark silently drops as many batches as the sink had; the package warned before."""
    nothing, (problem,), (after,) = results[sink]["problems"]
    assert nothing == []
    assert message in problem
    assert str(SECOND - 1) in after
    assert results[sink]["row_count"] == FIRST + (SECOND - FIRST)


def test_a_sink_that_drops_nothing_is_not_reported(results: dict[str, Any]) -> None:
    """Delta's streaming sink tells checkpoints apart: no batch is lost, no problem reported."""
    sink = results["delta itself"]
    assert (sink["problems"], sink["row_count"]) == ([[], [], []], FIRST + SECOND)


@pytest.mark.parametrize(
    ("sink", "kind"), [("delta", "parquet"), ("delta v2", r"[0-9a-f-]{36}\.json")]
)
def test_both_kinds_of_delta_checkpoints_were_read(
    results: dict[str, Any], sink: str, kind: str
) -> None:
    """The tables had log checkpoints of both kinds, and no commits before them."""
    names = results[sink]["checkpoints"]
    assert names
    assert all(re.fullmatch(rf"\d{{20}}\.checkpoint\.{kind}", name) for name in names)
