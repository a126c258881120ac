"""``fence show``, ``fence raise`` and ``fence lift``."""

from pathlib import Path

import pytest

from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.spark.fence import FenceState, mark_moved, new_fence, read_fence
from airflow_mm2_offsets.spark.stopping import begin_stop, is_withdrawn
from tests.unit.cli.conftest import CommandLine
from tests.unit.operators.spark_job import Job

RUN = "mm2_failover:manual__1"


@pytest.fixture
def control(tmp_path: Path) -> str:
    location = tmp_path / "control"
    location.mkdir()
    begin_stop(str(location), new_fence(RUN, "s3://lake/target"))
    return str(location)


def test_a_fence_is_shown(line: CommandLine, control: str) -> None:
    """Run, target, time and state; a location without one says that a job may run."""
    mark_moved(control, RUN, "s3://lake/target")
    fence = read_fence(control)
    assert fence is not None
    text = line.run("fence", "show", control).stdout
    assert f"the job was moved to s3://lake/target by '{RUN}', since {fence.at.isoformat()}" in text
    assert line.data("fence", "show", control)["fence"] == {
        "request_id": RUN,
        "moved_to": "s3://lake/target",
        "at": fence.at.isoformat(),
        "state": "moved",
    }
    assert line.data("fence", "show", f"{control}/nowhere") == {"fence": None}


def test_a_fence_is_lifted_by_name(line: CommandLine, control: str) -> None:
    """With its request; another's name, and a second time, are refused."""
    code = ExitCode.UNUSABLE
    error = line.error("fence", "lift", control, "--request-id", "another", code=code)
    assert (
        f"the fence is not of 'another': the job is being moved to s3://lake/target by '{RUN}'"
        in error
    )
    assert read_fence(control) is not None
    assert line.data("fence", "lift", control, "--request-id", RUN)["lifted"]["request_id"] == RUN
    assert (read_fence(control), is_withdrawn(control)) == (None, True)
    assert "no fence stands" in line.error("fence", "lift", control, "--request-id", RUN, code=code)


def test_a_fence_is_raised_where_a_job_has_run(line: CommandLine, tmp_path: Path) -> None:
    """For a job that was moved while its storage was lost; a mistyped location gets no fence."""
    job = Job(tmp_path / "job", 4)
    raise_ = ("fence", "raise", str(job.control), "--request-id", RUN, "--moved-to", "s3://other")
    for _ in range(2):
        assert line.data(*raise_)["fence"]["state"] == "moved"
    fence = read_fence(str(job.control))
    assert fence is not None
    assert (fence.state, fence.moved_to) == (FenceState.MOVED, "s3://other")
    assert fence.plan is None
    other = Job(tmp_path / "other", 4)
    named = ("fence", "raise", str(other.control), *raise_[3:], "--plan", "s3://other/plan.json")
    line.data(*named)
    planned = read_fence(str(other.control))
    assert planned is not None
    assert planned.plan == "s3://other/plan.json"
    wrong = str(tmp_path / "nowhere")
    error = line.error(*raise_[:2], wrong, *raise_[3:], code=ExitCode.UNUSABLE)
    assert "no job has ever run with this control location" in error
    assert read_fence(wrong) is None
