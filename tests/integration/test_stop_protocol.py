"""The Scala of docs/stop-protocol.md, on real Spark: it is run as it stands on the page."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.process import Program
from tests.integration.spark_jobs import LOOPBACK, ROOT, submit
from tests.support.stop_step import RUN, StopStep

pytestmark = pytest.mark.long

PAGE = ROOT / "docs" / "stop-protocol.md"
JOB = """
try {{
  val control = new StopControl(spark, "{home}", 200)
  println("starts at " + control.startingOffsets())
  val query = spark.readStream.format("rate").load().writeStream.format("noop").
    option("checkpointLocation", control.checkpoint).
    trigger(org.apache.spark.sql.streaming.Trigger.ProcessingTime("1 second")).start()
  control.run(query)
}} catch {{ case error: Throwable => error.printStackTrace() }} finally System.exit(0)
"""
REFUSAL = "This job was moved away, and must not run here"


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Program]:
    code = re.search(r"^```scala\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert code is not None
    script = tmp_path / "job.scala"
    script.write_text(code[1] + JOB.format(home=tmp_path))
    conf = (part for key, to in LOOPBACK.items() for part in ("--conf", f"{key}={to}"))
    shell = Path(sys.executable).with_name("spark-shell")
    running = submit("the job", [shell, "--master", "local[1]", *conf, "-i", script], tmp_path)
    try:
        yield running
    finally:
        running.kill()


def _last(folder: Path) -> int:
    names = [path.name for path in (folder / "checkpoint" / "commits").glob("[0-9]*")]
    return max((int(name) for name in names), default=-1)


def _run_refused(job: Program, reason: str) -> None:
    """Run the job, which must end because of a fence."""
    before = len(job.log.read_text())
    job.start()
    job.wait_end()
    said = job.log.read_text()[before:]
    assert REFUSAL in said
    assert reason in said


def test_a_job_in_scala_stops_and_is_fenced(job: Program, tmp_path: Path) -> None:
    """It starts where it was handed over, acknowledges a stop, and reads nothing where fenced."""
    step = StopStep(tmp_path / "control")
    for request_id in ("hand-over", "withdrawn"):  # each open fence repeats them
        step.let_run(request_id, starting_offsets='{"orders":{"0":42}}')
    job.start()
    job.wait_ready(lambda: _last(tmp_path) >= 2)
    assert 'starts at {"orders":{"0":42}}' in job.log.read_text()
    answer = step.stop()
    job.wait_end()
    last = _last(tmp_path)
    assert (answer["batch_id"], answer["error"]) == (last, None)
    driver = step.driver()
    assert driver["ended"]
    assert [query["batch_id"] for query in driver["queries"]] == [last]
    file = tmp_path / "checkpoint.control.json"
    note = json.loads(file.read_text())
    assert note["control"] == driver["control"] == f"file:{step.control}"
    _run_refused(job, "stopping")
    assert step.driver() == driver

    # The job goes away and comes back while it runs: another driver is to run it then.
    step.let_run()
    job.start()
    job.wait_ready(lambda: _last(tmp_path) > last)
    step.move(f"{RUN}#9")
    step.let_run(f"{RUN}#12")
    job.wait_end()
    assert f"{RUN}#9" in job.log.read_text()
    driver = step.driver()

    # The checkpoint's note names another control location, from which the job was moved away.
    other = StopStep(tmp_path / "other" / "control")
    other.move("elsewhere")
    note = {**note, "control": f"file:{other.control}"}
    file.write_text(json.dumps(note))
    _run_refused(job, "elsewhere")
    assert json.loads(file.read_text()) == note
    assert step.driver() == driver
