"""A misspelt policy or field: each step refuses it, alone too, before it does anything."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, BaseOperator

from airflow_mm2_offsets import operators, sensors
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.operators.platform import AfterCancel, BeforeCancel, BeforeSubmit
from airflow_mm2_offsets.task_groups import STEPS
from tests.unit.operators.mover import Mover

JOB = {"name": "orders", "homes": {"source": "/source", "target": "/target"}}
WRONG = [
    ({"job": JOB, "policy": "dissaster"}, r"policy is 'dissaster'; did you mean disaster\?"),
    ({"job": JOB, "polcy": "planned"}, r"'polcy' is no field of a move; did you mean policy\?"),
]


def _steps() -> Iterator[type[BaseOperator]]:
    """Yield each operator and sensor that is a step of a move."""
    for package in (operators, sensors):
        for found in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{found.name}")
            for kind in vars(module).values():
                is_own = inspect.isclass(kind) and kind.__module__ == module.__name__
                if is_own and issubclass(kind, BaseOperator) and not inspect.isabstract(kind):
                    yield from [kind] if "move" in kind.template_fields else []


KINDS = [*_steps()]


def test_the_steps_are_found() -> None:
    """All of a move's, and those of a drill."""
    assert {*STEPS.values()} <= {*KINDS}
    assert len(KINDS) > len(STEPS)


@pytest.mark.parametrize(("move", "problem"), WRONG)
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_refuses_it(
    mover: Mover, kind: type[BaseOperator], move: dict[str, Any], problem: str
) -> None:
    """It fails at once, and names the nearest word."""
    required: dict[str, Any] = {
        each.name: 1.0
        for each in inspect.signature(kind.__init__).parameters.values()
        if each.default is each.empty and each.kind is each.KEYWORD_ONLY
    }
    with DAG("failover", schedule=None):
        task = kind(task_id="alone", **{**required, "move": move})
    with pytest.raises(ConfigurationError, match=problem) as caught:
        mover.worker.run(task)
    assert isinstance(caught.value, AirflowFailException)
    assert mover.worker.results == {}


@pytest.mark.parametrize(("move", "problem"), WRONG)
def test_so_does_a_hook_of_a_platform(mover: Mover, move: dict[str, Any], problem: str) -> None:
    """The user's own operator does not run."""
    with DAG("failover", schedule=None):
        task = BaseOperator(task_id="own")
    context: Any = {"task": task, "ti": mover.worker}
    for hook in (BeforeCancel(move=move), BeforeSubmit(move=move, is_idempotent=True)):
        with pytest.raises(ConfigurationError, match=problem):
            hook(context)
    with pytest.raises(ConfigurationError, match=problem):
        AfterCancel(move=move)(context)
