"""A drill on real Kafka and Spark: beside the running job, and without a trace."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG
from upath import UPath

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.kafka.syncs import read_syncs
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.request import MoveRequest
from airflow_mm2_offsets.operators.drill import StartDrillOperator
from airflow_mm2_offsets.operators.drill_teardown import TearDownDrillOperator
from airflow_mm2_offsets.planning.plan import plan_failover
from airflow_mm2_offsets.reconcile import Reconciliation, read_report
from airflow_mm2_offsets.reconcile.ranges import partitions_of_plan
from airflow_mm2_offsets.reconcile.request import JOB_FILE, make_request
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.drill import read_mark
from stack.mirror import Stack
from stack.process import Program
from stack.waiting import wait_until
from tests.integration.mirrors import Mirror, Writer, mirror, topic_partitions
from tests.integration.spark_jobs import ROOT, START_SECONDS, lineage, submit_locally
from tests.soaks import LONGEST, add_figures
from tests.support.traces import State, Traces, difference
from tests.unit.operators.clusters import define
from tests.unit.operators.worker import Worker, events, rebuild

pytestmark = pytest.mark.timeout(LONGEST)

PARTITIONS = 2
BEATS = re.compile(r"/production/control/(\.driver\.json\.tmp|driver\.json)$")
"""The heartbeat of the running job."""
RUN = ("orders_stream", "drills__manual__1__orders__drill")


class DrillCase:
    """A job that runs on the source, and a run of drills."""

    def __init__(self, mirror: Mirror, worker: Worker, folder: Path) -> None:
        self.mirror, self.worker, self.root = mirror, worker, folder
        self.production, self.drill = folder / "production", folder / "drills" / "orders"
        self.logs = folder.with_name(f"{folder.name}-logs")
        for each in (self.production, self.logs):
            each.mkdir(parents=True)
        self.writer = Writer(mirror, mirror.create_topic(PARTITIONS))
        self.topic = self.writer.topic
        self.job = self._program("production", mirror.stack.source, self.production)
        self.programs = [self.job]

    def _program(self, name: str, servers: str, home: Path) -> Program:
        arguments = ["--bootstrap-servers", servers, "--topic", self.topic, "--trigger", "1"]
        example = ROOT / "dags" / "jobs" / "orders_stream.py"
        return submit_locally(name, example, [*arguments, "--home", str(home)], self.logs)

    def positions(self, folder: Path) -> dict[int, int]:
        """Return where a job stands; empty before its first batch."""
        if not (folder / "checkpoint" / "commits" / "0").exists():
            return {}
        return read_checkpoint(str(folder / "checkpoint")).positions[self.topic]

    def start_production(self) -> None:
        self.writer.write(dict.fromkeys(range(PARTITIONS), 20))
        self.job.start()
        self.job.wait_ready(self.has_read_all, seconds=START_SECONDS)

    def has_read_all(self) -> bool:
        return self.positions(self.production) == self.mirror.ends(self.topic)

    def write_and_copy(self, count: int) -> FailoverPlan:
        """Plan from where the job stands, then write more, which the job and MM2 take over."""
        wait_until(lambda: self.mirror.has_noted(self.writer), "the copy", seconds=START_SECONDS)
        positions = read_checkpoint(str(self.production / "checkpoint")).positions
        plan = plan_failover(self.mirror.pair, positions)
        self.writer.write(dict.fromkeys(range(PARTITIONS), count))
        wait_until(lambda: self.mirror.has_noted(self.writer), "the copy", seconds=START_SECONDS)
        wait_until(self.has_read_all, "the job to read all", seconds=START_SECONDS)
        return plan

    @property
    def move(self) -> MoveRequest:
        """The move that is rehearsed."""
        naming = self.mirror.pair.naming
        homes = (
            Home(cluster=naming.source_alias, folder=str(self.production)),
            Home(cluster=naming.target_alias, folder=str(self.root / "target")),
        )
        records = str(self.root / "records")
        job = SparkJob(name="orders", homes=homes, dag="orders_stream", records=records)
        return MoveRequest(job=job, policy="drill")

    def start_drill(self, plan: FailoverPlan) -> Program:
        """Run the task that starts the drill, and do as the triggered DAG does.

        The copy learns from its fence where to begin.
        """
        with DAG("drills", schedule=None):
            task = StartDrillOperator(
                task_id="start_drill", move=self.move, folder=str(self.drill), plan=plan.to_json()
            )
        self.worker.run(task)
        conf = self.worker.triggered[RUN]
        assert conf["drill"] is True
        program = self._program("drill", self.mirror.stack.target, Path(conf["folder"]))
        self.programs.append(program)
        program.start()
        return program

    def reconcile(self, plan: FailoverPlan) -> Reconciliation:
        """Compare the copy's output as the task ``verify`` of a drill does."""
        pair, request_file = self.mirror.pair, self.logs / "request.json"
        committed = read_checkpoint(str(self.drill / "checkpoint")).positions
        index = read_syncs(pair.syncs_cluster, pair.syncs_topic).index
        partitions = partitions_of_plan(plan, index=index, committed=committed, records_before=0)
        sinks = [{"cluster": "target", "path": str(self.drill / "output")}]
        request_file.write_text(json.dumps(make_request(partitions, sinks)))
        report = self.drill / "verified"
        arguments = ["--request", str(request_file), "--report", str(report)]
        for side in ("source", "target"):
            servers = getattr(self.mirror.stack, side)
            arguments += [f"--{side}-option", f"bootstrap.servers={servers}"]
        program = submit_locally("reconcile", Path(JOB_FILE), arguments, self.logs)
        self.programs.append(program)
        program.start()
        program.wait_end(seconds=START_SECONDS)
        return read_report(UPath(report), plan.max_reread)

    def tear_down(self, program: Program) -> dict[str, Any]:
        """Run the tear-down; Airflow's run ends with its program."""
        with DAG("drills", schedule=None):
            task = TearDownDrillOperator(
                task_id="tear_down",
                move=self.move,
                folder=str(self.drill),
                deferrable=True,
                poll_interval=0.2,
            )
        message = self.worker.run(task)
        while message.type == "DeferTask":
            if message.next_method == "remove_after_run":
                self._end_run(program)
            (event,) = events(rebuild(message))
            message = self.worker.run(task, after=message, event=event)
        result: dict[str, Any] = self.worker.xcoms["tear_down", "return_value"]
        return result

    def _end_run(self, program: Program) -> None:
        try:
            program.wait_end(seconds=START_SECONDS)
            self.worker.run_states[RUN] = "success"
        except RuntimeError:
            self.worker.run_states[RUN] = "failed"

    def traces(self) -> Traces:
        stack = self.mirror.stack
        clusters = {"source": stack.source, "target": stack.target}
        return Traces(clusters=clusters, folders=[self.root], ignored=BEATS)


@pytest.fixture
def case(
    stack: Stack, worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DrillCase]:
    with mirror(stack) as made:
        _connect(monkeypatch, made)
        running = DrillCase(made, worker, tmp_path / "lake")
        made.configure()
        try:
            running.start_production()
            yield running
        finally:
            for program in running.programs:
                program.kill()


def _connect(monkeypatch: pytest.MonkeyPatch, made: Mirror) -> None:
    """Define the connections by which the drill's start finds the way of the move."""
    for side in ("source", "target"):
        servers = {"bootstrap.servers": getattr(made.stack, side)}
        define(monkeypatch, f"kafka_{side}", conn_type="kafka", extra=servers)
    naming = made.pair.naming
    aliases = {"source_alias": naming.source_alias, "target_alias": naming.target_alias}
    define(monkeypatch, "mm2_default", extra={**aliases, "replication_policy": "identity"})


def _expect_no_trace(traces: Traces, before: State) -> None:
    left = difference(before, traces.snapshot())
    add_figures(drills=1, places_compared=len(before), traces_left=len(left))
    assert left == []


def test_a_drill_leaves_no_trace(case: DrillCase) -> None:
    """Topics, configs, ends, groups, ACLs and files are the same before and after.

    While it runs, its files show, so that the comparison could fail; no consumer group does, for
    Spark's consumers join none. Its output is exactly the records from its start on, and the
    production job runs on.
    """
    plan = case.write_and_copy(30)
    traces = case.traces()
    before = traces.at_rest()
    program = case.start_drill(plan)
    partitions = topic_partitions(case.topic, range(PARTITIONS))
    watermarks = case.mirror.pair.target.watermarks(partitions)
    ends = {number: each.high for (_, number), each in watermarks.items()}
    program.wait_ready(lambda: case.positions(case.drill) == ends, seconds=START_SECONDS)
    during = difference(before, traces.snapshot())
    assert any(f"{case.drill}/output/batch_id=0" in line for line in during)
    assert not [line for line in during if not line.startswith(str(case.drill.parent))]

    starts = plan.target_positions()[case.topic]
    expected = {(number, at) for number, end in ends.items() for at in range(starts[number], end)}
    rows = lineage(case.drill / "output")
    assert (len(rows), set(rows)) == (len(expected), expected)
    assert len(expected) >= 30 * PARTITIONS

    compared = case.reconcile(plan)
    compared.check()
    spans = compared.report["ranges"]
    assert {span["side"] for span in spans if span["records"] > 0} == {"source", "target"}
    assert compared.total("duplicated") <= (plan.max_reread or 0)

    result = case.tear_down(program)
    assert result["stopped"] == "acknowledged"
    assert result["removed"] > 10
    _expect_no_trace(traces, before)
    assert case.job.running
    case.writer.write(dict.fromkeys(range(PARTITIONS), 1))
    wait_until(case.has_read_all, "the job to run on", seconds=START_SECONDS)


def test_a_drill_that_was_killed_leaves_no_trace(case: DrillCase) -> None:
    """Its driver is killed in mid-stream; the tear-down takes its silence, and removes all."""
    plan = case.write_and_copy(30)
    traces = case.traces()
    before = traces.at_rest()
    program = case.start_drill(plan)
    commits = case.drill / "checkpoint" / "commits"
    program.wait_ready((commits / "0").exists, seconds=START_SECONDS)
    program.kill()
    case.worker.run_states[RUN] = "failed"
    assert read_mark(storage_path(str(case.drill))) is not None
    result = case.tear_down(program)
    assert result["stopped"] == "silent"
    _expect_no_trace(traces, before)
