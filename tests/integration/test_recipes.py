"""The recipes of dags/recipes/: the operators of the providers, with platforms that are played.

The providers of Kubernetes and Google need an environment of their own, that of ``make recipes``:
Google's needs other versions than constraints.txt has, and with Kubernetes' the Spark provider
takes 4 s longer to import, in each process of every test.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG
from upath import UPath

from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.operators.report import ReportFailoverOperator
from airflow_mm2_offsets.spark.claim import read_claim
from airflow_mm2_offsets.testing import in_memory_clients
from airflow_mm2_offsets.testing.connect import in_memory_connect
from tests.integration.played_platforms import JOB, PLATFORMS, Platform
from tests.unit.dags.dags_folder import FOLDER, parse
from tests.unit.dags.failovers import STARTING, Failover
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker

# The provider of Databricks asks Airflow for its own version in a way that 3.3 has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:ProvidersManager.*is deprecated")
RECIPES = FOLDER / "recipes"
BEFORE = ("check", "cancel_source", "stop_source", "read_positions", "wait_replicated")
HANDED = ("translate", "forecast", "approve", "hand_over")
STEPS = (*BEFORE, *HANDED, "submit_target", "wait_started", "report")


class Recipe(Failover):
    """A run of a recipe's DAG, for a job without a control location."""

    def __init__(self, worker: Worker, dag: DAG, source: Job, platform: Platform) -> None:
        super().__init__(worker, dag, source, prefix="failover.")
        worker.conf = {**worker.conf, **platform.params}
        vars(self.task("stop_source")).update(poke_interval=0.02, quiet_period=0.05)
        self.platform = platform
        self.target_checkpoint = UPath(self.target) / "checkpoint"

    def play(self, task_id: str) -> None:
        if task_id == "wait_started":
            super().play(task_id)

    def run(self, task_id: str) -> None:
        """Run a task, and note its state for the report."""
        key = f"{self.prefix}{task_id}"
        self.worker.states[key] = "failed"
        super().run(task_id)
        self.worker.states[key] = "success"

    def run_all(self, *task_ids: str) -> None:
        for each in task_ids:
            self.run(each)

    def report(self) -> dict[str, Any]:
        assert isinstance(self.task("report"), ReportFailoverOperator)
        with suppress(Exception):
            super().run("report")
        report: dict[str, Any] = self.worker.xcoms["failover.report", "return_value"]
        return report


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clusters]:
    """Two clusters in memory, where all is copied."""
    with in_memory_clients(), in_memory_connect():
        both = Clusters()
        both.copy_the_rest()
        both.connect(monkeypatch)
        yield both


@pytest.fixture(params=PLATFORMS, ids=lambda kind: kind.name)
def recipe(
    request: pytest.FixtureRequest,
    worker: Worker,
    clusters: Clusters,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Recipe]:
    """A run of each recipe, beside its platform."""
    kind: Callable[[], Platform] = request.param
    assert clusters
    pytest.importorskip(request.param.needs, reason="its provider comes with make recipes")
    bag = parse(RECIPES / f"failover_{request.param.name}.py")
    assert bag.import_errors == {}
    (dag,) = bag.dags.values()
    with kind().running(monkeypatch) as platform:
        yield Recipe(worker, dag, Job(tmp_path / "source", 4, 0, 0, 0), platform)


def _value(arguments: list[str], option: str) -> str:
    return arguments[arguments.index(option) + 1]


def test_a_recipe_moves_the_job(recipe: Recipe) -> None:
    """One cancel, of the job; one submit, with the plan's offsets as they are; no login in it."""
    recipe.run_all(*STEPS)
    platform = recipe.platform
    assert platform.cancelled == [JOB]
    (arguments,) = platform.arguments
    planned = recipe.worker.xcoms["failover.translate", "starting_offsets"]
    assert _value(arguments, "--starting-offsets") == planned == STARTING
    assert _value(arguments, "--topic") == "orders"
    assert _value(arguments, "--checkpoint") == f"{recipe.target}/checkpoint"
    assert _value(arguments, "--kafka-properties") == "/etc/kafka/target/client.properties"
    assert re.fullmatch(r"mm2-[0-9a-f]{32}", recipe.worker.xcoms["failover.hand_over", "token"])
    assert set(platform.tokens) <= {recipe.worker.xcoms["failover.hand_over", "token"]}
    assert getattr(platform, "environment", {}) in (
        {},
        {"KAFKA_CLIENT_PROPERTIES": "{{secrets/kafka/target-client-properties}}"},
    )
    report = recipe.report()
    assert report["outcome"] == "moved"
    assert report["stopped"]["proof"] == "silent"
    assert re.fullmatch(
        r"quiet checkpoint after cancel by \w+ \(failover.cancel_source\)",
        report["stopped"]["basis"],
    )


def test_a_dry_run_calls_no_platform(recipe: Recipe) -> None:
    """It says which operators it would run."""
    recipe.worker.conf = {**recipe.worker.conf, "dry_run": True}
    for each in STEPS[:-1]:
        message = recipe.worker.run(recipe.task(each))
        assert message.type != "DeferTask" or each == "wait_replicated"
    assert recipe.platform.calls == []
    cancels = recipe.worker.xcoms["failover.cancel_source", "intent"]
    assert re.fullmatch(r"run \w+Operator, which cancels the job", cancels)
    submits = recipe.worker.xcoms["failover.submit_target", "intent"]
    assert re.fullmatch(r"run \w+Operator, which submits the job", submits)
    assert read_claim(recipe.target_checkpoint) is None


def test_a_second_try_starts_no_second_job(recipe: Recipe) -> None:
    """Before the job has begun the platform's token, or the note of the first try, holds it back.

    Once its checkpoint is there, the task is skipped and the platform is not called.
    """
    recipe.run_all(*BEFORE, *HANDED, "submit_target")
    if recipe.platform.refuses_twice or not recipe.platform.is_idempotent:
        with pytest.raises(Exception, match=r"Duplicate|409|an earlier try .* may have submitted"):
            recipe.run("submit_target")
    else:
        recipe.run("submit_target")
    assert len(recipe.platform.arguments) == 1
    recipe.run("wait_started")
    calls = list(recipe.platform.calls)
    recipe.run_all("hand_over", "submit_target")
    assert recipe.platform.calls == calls


def test_a_cancel_that_fails_moves_nothing(recipe: Recipe) -> None:
    """The report does not say that the job runs, nor that it has stopped: the platform knows."""
    recipe.platform.is_down = True
    recipe.run("check")
    with pytest.raises(Exception, match=r"(?i)forbidden|403"):
        recipe.run("cancel_source")
    recipe.platform.is_down = False
    report = recipe.report()
    assert report["outcome"] == "failed_in_stop"
    assert recipe.platform.arguments == []
    assert read_claim(recipe.target_checkpoint) is None
    with pytest.raises(HandoverError, match="has not handed the job over, so nothing was submit"):
        recipe.run("submit_target")
    assert recipe.platform.arguments == []


def test_each_recipe_is_played() -> None:
    """Those of Kubernetes and Dataproc by `nox -s recipes`."""
    names = {path.stem for path in RECIPES.glob("*.py")}
    assert names == {f"failover_{kind.name}" for kind in PLATFORMS}
