"""A drill beside the running job: it leaves no trace."""

import re
from collections import Counter
from pathlib import Path

import pytest
from upath import UPath

from airflow_mm2_offsets.moves.fences import read_fence
from airflow_mm2_offsets.moves.journal import Journal
from demo.environment import TOPIC, Demo
from demo.failover import STREAM, Failover
from tests.e2e.drivers import DriverWatch, last_batch
from tests.support.traces import Traces, difference

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

DRILL = "mm2_drill"
GROWING = re.compile(r"end of orders\[|/source/(checkpoint/|output/|control/driver\.json)")
"""What the producer and the running job write all the time: a drill of an idle job proves less."""


def test_a_drill_leaves_no_trace(tmp_path: Path) -> None:
    """Clusters and files are as before, the job ran on, and what the drill started has ended.

    Records are written meanwhile, and the job delivers each of them once.
    """
    demo = Demo(tmp_path, print)
    source, drill = demo.job_folder("source"), tmp_path / "drills" / TOPIC
    with demo, DriverWatch(demo, drill) as watch:
        api, failover = demo.airflow.api, Failover(demo)
        api.wait_dags(DRILL)
        failover.start_stream()
        clusters = {"source": demo.stack.source, "target": demo.stack.target}
        traces = Traces(clusters=clusters, folders=[source.parent], ignored=GROWING)
        before, begun = traces.snapshot(), last_batch(source)

        run_id = api.trigger(DRILL, {"job": TOPIC, "folder": str(drill)})
        demo.wait("the drill's end", lambda: failover.has_ended(DRILL, run_id))

        assert difference(before, traces.snapshot()) == []
        assert not drill.parent.exists()
        assert read_fence(UPath(source / "control")) is None
        assert Journal(UPath(demo.job.journal)).entries() == []
        assert api.tasks(DRILL, run_id)["tear_down"].state == "success"
        assert api.xcom(DRILL, run_id, "tear_down")["stopped"] == "acknowledged"
        report = api.xcom(DRILL, run_id, "report")
        assert report["outcome"] == "drilled"
        assert any(Path(file).suffix == ".md" and Path(file).exists() for file in report["files"])
        assert {api.state(STREAM, each) for each in api.runs(STREAM)} == {"running", "success"}
        assert watch.alive() == Counter(source=1)
        assert watch.most == Counter({"source": 1, TOPIC: 1, "together": 2})
        demo.wait("the job to go on", lambda: last_batch(source) > begun)
        demo.producer.stop()
        due = Counter(demo.producer.due)
        demo.wait("every number", lambda: failover.sink.refresh() >= due)
        assert failover.sink.refresh() == due
