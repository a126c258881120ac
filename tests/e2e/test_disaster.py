"""``make demo-disaster``, as a user runs it: the source is lost in mid-stream."""

import json
import subprocess
import sys

import pytest

from demo.__main__ import DISASTER_REPORT
from demo.environment import ROOT
from demo.producer import PARTITIONS


@pytest.mark.timeout(3600)
def test_a_lost_source_costs_no_more_than_was_told() -> None:
    """The forecast was made before the start; the truth, read from the source's log, is within it.

    The loss is real: records were on the source alone. No record of the target was skipped.
    """
    DISASTER_REPORT.unlink(missing_ok=True)

    ended = subprocess.run(
        [sys.executable, "-m", "demo", "disaster"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "PROVEN" in ended.stdout
    report = json.loads(DISASTER_REPORT.read_text())
    truth = report["truth"]
    assert truth["broken"] == []
    assert truth["skipped"] == 0
    assert truth["on_source"] > 0
    assert len(truth["partitions"]) == len(report["plan"]["partitions"]) == PARTITIONS
    assert truth["lost"] <= truth["uncopied"]
    assert truth["told"]["at_risk"]["at_most"] is not None
