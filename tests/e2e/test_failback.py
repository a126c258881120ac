"""A job goes to the target and comes home, while records are written."""

from collections import Counter
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.planning.stored_plan import whole_plan
from airflow_mm2_offsets.spark.offsets import parse_offsets
from airflow_mm2_offsets.spark.offsets_file import read_offsets
from demo.environment import Demo
from demo.failover import FAILOVER
from tests.e2e.drivers import DriverWatch
from tests.e2e.journey import Journey

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


def test_there_and_home_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The producer stays on the source: by the same syncs, read the other way round, none is lost.

    Each number is delivered once, and never do two jobs run at a time. Every plan counts as too
    long for XCom here, and all offsets as too long for an argument: both lie in files.
    """
    monkeypatch.setenv("AIRFLOW__MM2_OFFSETS__XCOM_MAX_BYTES", "1")
    monkeypatch.setenv("AIRFLOW__MM2_OFFSETS__ARGUMENT_MAX_BYTES", "15")  # the topic's name fits
    demo = Demo(tmp_path, print)
    homes = (demo.job_folder("target"), demo.job_folder("source") / "2")
    with demo, DriverWatch(demo, *homes) as watch:
        journey = Journey(demo)
        journey.start()
        journey.move()
        check_files(journey)
        journey.move()
        check_files(journey)
        journey.end()
        delivered, produced = journey.numbers(), demo.producer.produced

    assert delivered == Counter(range(produced))
    assert watch.most == Counter({"source": 1, "target": 1, "2": 1, "together": 1})


def check_files(journey: Journey) -> None:
    """XCom has a brief of the plan that is kept, and the job was given a file of its offsets."""
    api, run_id = journey.demo.airflow.api, journey.failover.run_id
    content = api.xcom(FAILOVER, run_id, "translate")
    plan = FailoverPlan.from_json(whole_plan(content))
    assert content["location"].startswith(f"{journey.folder}/plans/")
    offsets = api.xcom(FAILOVER, run_id, "translate", "starting_offsets")
    text = read_offsets(offsets, UPath)
    assert offsets.startswith(f"@{journey.folder}/plans/")
    assert parse_offsets(text) == plan.target_positions()
