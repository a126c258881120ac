"""The Scala of docs/stop-protocol.md, on real Spark: it is run as it stands on the page."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import DAG

from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.spark.control import read_driver
from stack.process import Program
from tests.integration.spark_jobs import LOOPBACK, ROOT, run_to_the_end, submit
from tests.unit.operators.worker import Worker

pytestmark = pytest.mark.long

PAGE = ROOT / "docs" / "stop-protocol.md"
JOB = """
try {{
  val control = new StopControl(spark, "{folder}/control", "{folder}/checkpoint", 200)
  val query = spark.readStream.format("rate").load().writeStream.format("noop").
    option("checkpointLocation", "{folder}/checkpoint").
    trigger(org.apache.spark.sql.streaming.Trigger.ProcessingTime("1 second")).start()
  control.run(query)
}} catch {{ case error: Throwable => error.printStackTrace() }} finally System.exit(0)
"""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Program]:
    found = re.search(r"^```scala\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    script = tmp_path / "job.scala"
    script.write_text(found[1] + JOB.format(folder=tmp_path))
    conf = (part for key, to in LOOPBACK.items() for part in ("--conf", f"{key}={to}"))
    shell = Path(sys.executable).with_name("spark-shell")
    running = submit("the job", [shell, "--master", "local[1]", *conf, "-i", script], tmp_path)
    try:
        yield running
    finally:
        running.kill()


def test_a_job_in_scala_stops_and_is_fenced(job: Program, worker: Worker, tmp_path: Path) -> None:
    """It acknowledges a stop with its checkpoint's positions; restarted, it reads nothing."""
    job.start()
    job.wait_ready((tmp_path / "checkpoint" / "commits" / "2").exists)
    with DAG("failover", schedule=None):
        stop = StopSparkStreamingOperator(
            task_id="stop",
            deferrable=True,
            control=str(tmp_path / "control"),
            checkpoint=str(tmp_path / "checkpoint"),
            quiet_period=1.0,
            poll_interval=0.2,
        )
    result = run_to_the_end(worker, stop)
    last = max(int(path.name) for path in (tmp_path / "checkpoint" / "commits").glob("[0-9]*"))
    assert (result["proof"], result["batch_id"]) == ("acknowledged", last)
    driver = read_driver(str(tmp_path / "control"))
    assert driver is not None
    assert (driver.ended, driver.batches) == (True, {driver.query_id: last})
    note = json.loads((tmp_path / "checkpoint.control.json").read_text())
    assert (note["control"], note["application_id"]) == (driver.control, driver.application_id)

    job.wait_end()
    job.start()
    job.wait_end()
    assert "This job was moved away, and must not run here" in job.log.read_text()
    assert read_driver(str(tmp_path / "control")) == driver
    # Nor with another control location.
    script, said = tmp_path / "job.scala", len(job.log.read_text())
    script.write_text(script.read_text().replace(f"{tmp_path}/control", f"{tmp_path}/control2"))
    job.start()
    job.wait_end()
    assert "This job was moved away, and must not run here" in job.log.read_text()[said:]
    assert json.loads((tmp_path / "checkpoint.control.json").read_text()) == note
    assert read_driver(str(tmp_path / "control2")) is None
