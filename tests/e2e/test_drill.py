"""A drill beside the running job: it leaves no trace."""

import re
from collections import Counter
from pathlib import Path

import pytest

from airflow_mm2_offsets.spark.fence import read_fence
from demo.environment import Demo
from demo.failover import FAILOVER, STREAM, Failover
from tests.e2e.drivers import DriverWatch, last_batch
from tests.support.traces import Traces, difference

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

GROWING = re.compile(r"end of orders\[|/source/(checkpoint/|output/|control/driver\.json)")
"""What the producer and the running job write all the time: a drill of an idle job proves less."""


def test_a_drill_leaves_no_trace(tmp_path: Path) -> None:
    """Clusters and files are as before, the job ran on, and what the drill started has ended.

    Records are written meanwhile, and the job delivers each of them once.
    """
    with Demo(tmp_path, print) as demo, DriverWatch(demo) as watch:
        failover, source = Failover(demo), demo.job_folder("source")
        failover.start_stream()
        clusters = {"source": demo.stack.source, "target": demo.stack.target}
        traces = Traces(clusters=clusters, folders=[source.parent], ignored=GROWING)
        before, begun = traces.snapshot(), last_batch(source)

        failover.trigger(mode="drill", reports_folder=str(tmp_path / "reports"))
        failover.wait_for_end()

        assert difference(before, traces.snapshot()) == []
        assert read_fence(str(source / "control")) is None
        assert demo.airflow.api.tasks(FAILOVER, failover.run_id)["tear_down"].state == "success"
        assert list((tmp_path / "reports").glob("*.md"))
        states = {demo.airflow.api.state(STREAM, each) for each in demo.airflow.api.runs(STREAM)}
        assert states == {"running", "success"}
        assert watch.alive() == Counter(source=1)
        assert watch.most["source"] == 1
        demo.wait("the job to go on", lambda: last_batch(source) > begun)
        demo.producer.stop()
        due = Counter(demo.producer.due)
        demo.wait("every number", lambda: failover.sink.refresh() >= due)
        assert failover.sink.refresh() == due
