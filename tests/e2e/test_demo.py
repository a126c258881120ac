"""``make demo``, as a user runs it."""

import json
import subprocess
import sys

import pytest

from demo.__main__ import PICTURE, REPORT
from demo.environment import ROOT
from demo.producer import PARTITIONS

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


def test_demo_proves_the_failover() -> None:
    """The demo ends well, with nothing lost, no more repeated than announced, offsets shifted.

    The DAG's own comparison, whose records this test does not count, says the same.
    """
    REPORT.unlink(missing_ok=True)
    PICTURE.unlink(missing_ok=True)

    ended = subprocess.run(
        [sys.executable, "-m", "demo"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    report = json.loads(REPORT.read_text())
    assert report["lost"] == 0
    assert report["duplicated"] <= report["announced"]
    assert report["delivered"] == report["produced"] + report["duplicated"]
    assert len(report["partitions"]) == PARTITIONS
    assert all(partition["shift"] != 0 for partition in report["partitions"])
    assert all(partition["status"] == "exact" for partition in report["partitions"])
    assert "PROVEN" in ended.stdout
    assert "PROVEN" in PICTURE.read_text()
    verified = report["verified"]
    assert verified["outcome"] == "clean"
    assert verified["counts"] == []
    assert {each["side"] for each in verified["ranges"]} == {"source", "target"}
    assert {each["partition"] for each in verified["ranges"]} == set(range(PARTITIONS))
    assert all(each["records"] > 0 for each in verified["ranges"] if each["side"] == "source")
    assert {each["side"] for each in verified["sinks"]} == {"from_source", "from_target"}
    assert "The task verify: CLEAN: compared" in ended.stdout
