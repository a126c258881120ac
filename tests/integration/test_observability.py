"""What a real Airflow exports of a failover's steps: metrics, spans and log lines."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from stack.airflow import Airflow
from stack.waiting import wait_until
from tests.integration.telemetry import HAS_STATSD, Telemetry, attributes, receive, tags
from tests.unit.spark import checkpoints

DAGS = Path(__file__).with_name("airflow_dags")
STEPS = ("wait_started", "translate", "read_positions")


@dataclass(frozen=True, kw_only=True)
class Observed:
    """A run of the DAG, and what was received of it."""

    airflow: Airflow
    run_id: str
    telemetry: Telemetry

    def named(self, name: str) -> list[Span]:
        """Return the run's spans of a name, by their start; other runs have some, too."""
        collector = self.telemetry.collector
        spans = [*collector.spans]  # more may come meanwhile
        traces = {
            each.trace_id
            for each in spans
            if attributes(each).get("airflow.dag_run.run_id") == self.run_id
        }
        return [span for span in collector.named(name) if span.trace_id in traces]

    def log(self, task_id: str) -> list[dict[str, Any]]:
        """Return the lines of a task's log, the triggerer's included."""
        folder = self.airflow.home / "logs" / "dag_id=observed" / f"run_id={self.run_id}"
        files = sorted((folder / f"task_id={task_id}").glob("attempt=1.log*"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.fixture(scope="module", params=[pytest.param("otel", marks=pytest.mark.long), "statsd"])
def observed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Observed]:
    """A run on an Airflow that exports spans by OTLP, and metrics by OTLP or StatsD."""
    if request.param == "statsd":
        if not HAS_STATSD:
            pytest.skip("Airflow's extra statsd is not installed")
        airflow = request.getfixturevalue("airflow")
        telemetry = request.getfixturevalue("telemetry")
        yield _run(airflow, tmp_path_factory.mktemp("observed") / "job", telemetry)
        return
    folder = tmp_path_factory.mktemp("observed")
    with ExitStack() as stack:
        telemetry = stack.enter_context(receive("otel"))
        airflow = Airflow(folder / "home", DAGS, connections={}, env=telemetry.env)
        stack.callback(airflow.stop)
        airflow.start()
        airflow.api.wait_dags("observed")
        yield _run(airflow, folder / "job", telemetry)


def _run(airflow: Airflow, job: Path, telemetry: Telemetry) -> Observed:
    run_id = airflow.api.trigger("observed", {"folder": str(job)})

    def wait_state() -> str | None:
        return airflow.api.tasks("observed", run_id)["wait_started"].state

    wait_until(lambda: wait_state() == "deferred", "a deferred task")
    wait_until(lambda: _has_left_worker(airflow, run_id), "the end of the task's first process")
    job.mkdir()
    checkpoints.simple(job / "written").rename(job / "checkpoint")
    ends = {"success", "failed"}
    wait_until(lambda: airflow.api.state("observed", run_id) in ends, "the run")
    observed = Observed(airflow=airflow, run_id=run_id, telemetry=telemetry)
    wait_until(lambda: _has_arrived(observed), "what the tasks export as they end")
    return observed


def _has_left_worker(airflow: Airflow, run_id: str) -> bool:
    """Tell whether the scheduler has seen the end of the process that deferred the task.

    The process lingers to export what it has. If the task runs again by then, Airflow takes that
    end for its second one, and fails it: "finished with state success, but the task instance's
    state attribute is running".
    """
    lines = (airflow.home / "parts" / "scheduler.log").read_text().splitlines()
    return any("Received executor event" in line and run_id in line for line in lines)


def _has_arrived(observed: Observed) -> bool:
    expected = {
        "worker.wait_started": 2,
        "mm2_offsets.wait_started": 2,
        "mm2_offsets.wait_started.wait": 1,
        **{f"{prefix}.{step}": 1 for prefix in ("worker", "mm2_offsets") for step in STEPS[1:]},
    }
    if any(len(observed.named(name)) < count for name, count in expected.items()):
        return False
    return len(_seconds(observed)) == len(STEPS)


def _seconds(observed: Observed) -> dict[str, float]:
    """Return the seconds of each step, as the exporter of metrics sent them."""
    name = "airflow.mm2_offsets.step_seconds"
    if observed.telemetry.statsd:
        lines = [line.removesuffix("|g").split(":") for line in observed.telemetry.statsd]
        prefix = f"{name}.observed.planned."
        return {key.removeprefix(prefix): float(value) for key, value, *_ in lines if prefix in key}
    return {
        dict(used)["step"]: values[-1]
        for (metric, used), values in observed.telemetry.collector.metrics.items()
        if metric == name
    }


def test_seconds_of_a_step_last_through_its_deferral(observed: Observed) -> None:
    """They count from the first start on the worker to the end there, the triggerer between."""
    first, last = observed.named("mm2_offsets.wait_started")
    (wait,) = observed.named("mm2_offsets.wait_started.wait")
    assert first.end_time_unix_nano < wait.start_time_unix_nano < wait.end_time_unix_nano
    assert wait.end_time_unix_nano < last.start_time_unix_nano
    whole = (last.end_time_unix_nano - first.start_time_unix_nano) / 1e9
    assert _seconds(observed)["wait_started"] == pytest.approx(whole, abs=0.1)
    assert attributes(first)["mm2_offsets.deferred"] is True
    assert attributes(last)["mm2_offsets.deferred"] is False


def test_numbers_of_a_plan_arrive(observed: Observed) -> None:
    """The user's own exporter sends them, with tags, or as StatsD's names."""
    if observed.telemetry.statsd:
        name = "airflow.mm2_offsets.positions"
        assert f"{name}:2|g" in observed.telemetry.statsd
        assert f"{name}.observed.mm2_default.planned.exact:2|g" in observed.telemetry.statsd
        assert f"{name}.observed.mm2_default.planned.refused:0|g" in observed.telemetry.statsd
        errors = (
            "airflow.mm2_offsets.errors.observed.planned.read_positions.CheckpointNotBegunError"
        )
        assert f"{errors}:1|c" in observed.telemetry.statsd
        return
    sent, known = observed.telemetry.collector.metrics, {"dag_id": "observed", "policy": "planned"}
    name = "airflow.mm2_offsets.positions"
    for status, count in (("exact", 2), ("bounded", 0), ("refused", 0)):
        key = tags(**known, conn_id="mm2_default", status=status)
        assert sent[name, key][-1] == count
    key = tags(**known, step="read_positions", kind="CheckpointNotBegunError")
    assert sent["airflow.mm2_offsets.errors", key] == [1]
    assert not any("topic" in tag or "partition" in tag for _, used in sent for tag, _ in used)


def test_spans_belong_to_the_trace_of_the_run(observed: Observed) -> None:
    """Each step's span lies in that of Airflow's task, and says what became of it."""
    (translate,) = observed.named("mm2_offsets.translate")
    (task,) = observed.named("worker.translate")
    assert translate.trace_id == task.trace_id
    assert translate.parent_span_id == task.span_id
    assert attributes(translate) == {
        "airflow.dag_id": "observed",
        "airflow.dag_run.run_id": observed.run_id,
        "airflow.task_id": "translate",
        "mm2_offsets.policy": "planned",
        "mm2_offsets.conn_id": "mm2_default",
        "mm2_offsets.partitions": 2,
        "mm2_offsets.exact": 2,
        "mm2_offsets.bounded": 0,
        "mm2_offsets.refused": 0,
        "mm2_offsets.deferred": False,
    }
    (failed,) = observed.named("mm2_offsets.read_positions")
    assert (failed.status.code, failed.status.message) == (2, "CheckpointNotBegunError")
    assert attributes(failed)["error.type"] == "CheckpointNotBegunError"
    (wait,) = observed.named("mm2_offsets.wait_started.wait")
    assert attributes(wait)["airflow.dag_run.run_id"] == observed.run_id


def test_each_line_of_a_step_names_the_run(observed: Observed) -> None:
    """So do those of the rooms below the operators, and those of the triggerer."""
    loggers = set()
    for task_id in STEPS:
        for line in observed.log(task_id):
            if "mm2_offsets" in line.get("logger", ""):
                loggers.add(line["logger"])
                assert line["run_id"] == observed.run_id, line
                assert (line["dag_id"], line["task_id"]) == ("observed", task_id), line
                assert line["failover_policy"] == "planned", line
    assert "airflow_mm2_offsets.planning.plan" in loggers


def test_the_plan_names_its_run(observed: Observed) -> None:
    """An auditor finds the run that made it."""
    plan = observed.airflow.api.xcom("observed", observed.run_id, "translate")
    assert plan["run_id"] == observed.run_id
