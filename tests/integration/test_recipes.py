"""The recipes of dags/recipes/: the operators of the providers, with platforms that are played.

The providers of Kubernetes and Google need an environment of their own, that of ``make recipes``:
Google's needs other versions than constraints.txt has, and with Kubernetes' the Spark provider
takes 4 s longer to import, in each process of every test.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.moves.jobs import Home
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.testing import in_memory_clients
from airflow_mm2_offsets.testing.connect import in_memory_connect
from tests.integration.nights import Night, declare
from tests.integration.played_platforms import JOB, PLATFORMS, Platform
from tests.unit.dags.dags_folder import FOLDER
from tests.unit.operators.clusters import Clusters
from tests.unit.operators.spark_job import Job
from tests.unit.operators.worker import Worker
from tests.unit.spark import checkpoints

# The provider of Databricks asks Airflow for its own version in a way that 3.3 has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:ProvidersManager.*is deprecated")
RECIPES = FOLDER / "recipes"
STARTING = '{"orders":{"0":9,"1":0,"2":0,"3":0}}'
"""Where the job begins at the target."""


class Recipe(Night):
    """A run of a recipe's DAG, for a job without a control location."""

    def __init__(self, worker: Worker, source: Job, platform: Platform) -> None:
        super().__init__(worker, source, file=RECIPES / f"failover_{platform.name}.py")
        self.platform = platform
        self.give(**platform.params)

    def play(self, name: str) -> None:
        """Let the job begin that the platform was told to start."""
        if name == "wait_started":
            files = {
                "sources/0/0": checkpoints.start(STARTING),
                "offsets/0": checkpoints.batch('{"orders":{"0":15,"1":0,"2":0,"3":0}}'),
                "commits/0": checkpoints.commit(),
            }
            checkpoints.write(Path(self.there.folder) / "checkpoint", files)


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
    here, there = (Home(cluster=side, folder=str(tmp_path / side)) for side in ("source", "target"))
    declare(monkeypatch, here, there, dag=None, is_controlled=False)
    with kind().running(monkeypatch) as platform:
        yield Recipe(worker, Job(tmp_path / "source", 4, 0, 0, 0), platform)


def _value(arguments: list[str], option: str) -> str:
    return arguments[arguments.index(option) + 1]


def test_a_recipe_moves_the_job(recipe: Recipe) -> None:
    """One cancel, of the job; one submit, with the plan's offsets as they are; no login in it."""
    recipe.run_from("check", "report")
    platform = recipe.platform
    assert platform.cancelled == [JOB]
    (arguments,) = platform.arguments
    assert _value(arguments, "--starting-offsets") == STARTING
    assert _value(arguments, "--topic") == "orders"
    assert _value(arguments, "--checkpoint") == f"{recipe.there.folder}/checkpoint"
    assert _value(arguments, "--kafka-properties") == "/etc/kafka/target/client.properties"
    token = recipe.result("hand_over", "token")
    assert re.fullmatch(r"mm2-[0-9a-f]{32}", token)
    assert set(platform.tokens) <= {token}
    assert getattr(platform, "environment", {}) in (
        {},
        {"KAFKA_CLIENT_PROPERTIES": "{{secrets/kafka/target-client-properties}}"},
    )
    assert recipe.report()["outcome"] == "moved"
    (proof,) = (each.facts for each in recipe.entries() if each.event is Event.PROVE)
    assert proof["proof"] == "silent"
    assert re.fullmatch(
        r"quiet checkpoint after cancel by \w+ \(failover.cancel_source\)", proof["basis"]
    )


def test_a_dry_run_calls_no_platform(recipe: Recipe) -> None:
    """It says which operators it would run."""
    recipe.give(dry_run=True)
    recipe.run_from("check", "report")
    assert recipe.platform.calls == []
    cancels = recipe.result("cancel_source", "intent")
    assert re.fullmatch(r"run \w+Operator, which cancels the job", cancels)
    submits = recipe.result("start_target", "intent")
    assert re.fullmatch(r"run \w+Operator, which submits the job", submits)
    assert recipe.entries() == []


def test_a_second_try_starts_no_second_job(recipe: Recipe) -> None:
    """Before the job has begun the platform's token, or the note of the first try, holds it back.

    Once its checkpoint is there, the task is skipped and the platform is not called.
    """
    recipe.run_from("check", "wait_started")
    if recipe.platform.refuses_twice or not recipe.platform.is_idempotent:
        with pytest.raises(Exception, match=r"Duplicate|409|an earlier try .* may have submitted"):
            recipe.run("start_target")
    else:
        recipe.run("start_target")
    assert len(recipe.platform.arguments) == 1
    recipe.run("wait_started")
    calls = list(recipe.platform.calls)
    recipe.run_from("hand_over", "wait_started")
    assert recipe.platform.calls == calls


def test_a_cancel_that_fails_moves_nothing(recipe: Recipe) -> None:
    """The report does not say that the job runs, nor that it has stopped: the platform knows."""
    recipe.platform.is_down = True
    recipe.run("check")
    with pytest.raises(Exception, match=r"(?i)forbidden|403"):
        recipe.run("cancel_source")
    recipe.platform.is_down = False
    report = recipe.report()
    assert report["outcome"] == "unclear"
    assert "see whether it runs there" in report["next"][0]
    assert recipe.platform.arguments == []
    assert recipe.is_untouched()
    with pytest.raises(HandoverError, match=r"has not handed job orders over, so nothing was sub"):
        recipe.run("start_target")
    assert recipe.platform.arguments == []


def test_each_recipe_is_played() -> None:
    """Those of Kubernetes and Dataproc by `nox -s recipes`."""
    names = {path.stem for path in RECIPES.glob("*.py")}
    assert names == {f"failover_{kind.name}" for kind in PLATFORMS}
