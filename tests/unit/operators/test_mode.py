"""A mode that names no mode: each step refuses it, alone too, before it does anything."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, BaseOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

from airflow_mm2_offsets import operators, sensors
from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.operators.checkpoint import ReadSparkCheckpointOperator
from airflow_mm2_offsets.operators.handover_checks import HandOver
from airflow_mm2_offsets.operators.report import ReportFailoverOperator
from airflow_mm2_offsets.operators.rollback import RollbackFailoverOperator
from airflow_mm2_offsets.operators.settings import parse_mode
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator


def _steps() -> Iterator[tuple[type[BaseOperator], str]]:
    """Yield each operator and sensor that has a failover's mode, and its argument."""
    for package in (operators, sensors):
        for found in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{found.name}")
            for kind in vars(module).values():
                is_own = inspect.isclass(kind) and kind.__module__ == module.__name__
                if is_own and issubclass(kind, BaseOperator) and not inspect.isabstract(kind):
                    names = {"mode", "failover_mode"} & {*kind.template_fields}
                    yield from ((kind, name) for name in names)


STEPS = [*_steps()]


def _made(kind: type[BaseOperator], **given: Any) -> Any:  # noqa: ANN401 - any operator
    """Return an operator with a text for each argument that it requires."""
    bases = [kind, *({HandOver, TriggerDagRunOperator} & {*kind.__mro__})]
    required = {
        each.name: "text"
        for base in bases
        for each in inspect.signature(base.__init__).parameters.values()  # type: ignore[misc]
        if each.default is each.empty and each.kind is each.KEYWORD_ONLY and each.name != "task_id"
    }
    return kind(task_id="alone", **{**required, **given})


def test_the_steps_are_found() -> None:
    """The search finds those that once took a misspelt mode for planned."""
    kinds = {kind for kind, _ in STEPS}
    assert kinds >= {
        *(StopSparkStreamingOperator, ReadSparkCheckpointOperator),
        *(RollbackFailoverOperator, ReportFailoverOperator),
    }


@pytest.mark.parametrize(("kind", "name"), STEPS)
@pytest.mark.parametrize("mode", ["dissaster", "Planned", "", "None"])
def test_a_step_refuses_a_mode_that_is_none(kind: type[BaseOperator], name: str, mode: str) -> None:
    """It fails at once, without a look at anything: its context is empty."""
    with pytest.raises(ConfigurationError, match=r"^task alone: mode is ") as caught:
        _made(kind, **{name: mode}).execute({})
    assert isinstance(caught.value, AirflowFailException)


@pytest.mark.parametrize(
    ("misspelt", "mode"), [("dissaster", "disaster"), ("fail_back", "failback"), ("dril", "drill")]
)
def test_the_nearest_mode_is_named(misspelt: str, mode: str) -> None:
    """And the others after it."""
    with pytest.raises(ConfigurationError, match=f"did you mean {mode}\\?") as caught:
        parse_mode("stop_source", misspelt)
    assert all(each in str(caught.value) for each in FailoverMode)
