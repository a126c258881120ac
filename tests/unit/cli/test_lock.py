"""``lock show`` and ``lock release``."""

from pathlib import Path

from upath import UPath

from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.spark.lock import LockPlaces, acquire_lock, new_lock, read_lock
from tests.unit.cli.conftest import CommandLine

RUN = "failover:manual__1"


def test_a_lock_is_shown_and_released_by_name(line: CommandLine, tmp_path: Path) -> None:
    """As the error of a second run says it; another name releases nothing."""
    checkpoint = UPath(tmp_path / "checkpoint")
    assert line.data("lock", "show", str(checkpoint)) == {"lock": None}
    acquire_lock(LockPlaces(source=checkpoint, target=None), new_lock(RUN, "planned"))
    text = line.run("lock", "show", str(checkpoint)).stdout
    assert f"Locked: the run '{RUN}' (planned) works on it, since" in text
    release = ("lock", "release", str(checkpoint), "--request-id")
    assert "the lock is not of 'x'" in line.error(*release, "x", code=ExitCode.UNUSABLE)
    assert read_lock(checkpoint) is not None
    assert line.data(*release, RUN)["released"]["request_id"] == RUN
    assert read_lock(checkpoint) is None
