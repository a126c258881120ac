"""When a process was started, as a job's driver and the one who ends it read it."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_mm2_offsets.job.liveness import start_of
from airflow_mm2_offsets.job.stop.driver import describe_driver


class _Spark:
    """As much of a session as a driver's description asks for."""

    sparkContext = SimpleNamespace(  # noqa: N815 - PySpark's name
        applicationId="local-1", getConf=lambda: SimpleNamespace(get=lambda *_: None)
    )

    def __init__(self) -> None:
        runtime = SimpleNamespace(getName=lambda: f"{os.getpid()}@here")
        factory = SimpleNamespace(getRuntimeMXBean=lambda: runtime)
        management = SimpleNamespace(ManagementFactory=factory)
        self._jvm = SimpleNamespace(
            java=SimpleNamespace(lang=SimpleNamespace(management=management))
        )


def test_a_driver_says_when_its_processes_were_started() -> None:
    """With its start, a process is told from a later one of the same id."""
    spark: Any = _Spark()
    assert describe_driver(spark)["processes"] == {str(os.getpid()): start_of(os.getpid())}


def test_a_proc_that_may_not_be_read_ends_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver leaves the start out; who would end it must not take the process for gone."""

    def refuse(_: Path) -> str:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", refuse)
    spark: Any = _Spark()
    assert describe_driver(spark)["processes"] == {}
    with pytest.raises(PermissionError):
        start_of(os.getpid())
