"""``failover_tasks`` with a user's own operators that cancel and submit the job."""

from collections.abc import Callable
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, BaseOperator
from airflow.providers.standard.operators.empty import EmptyOperator

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.task_groups import failover_tasks, from_hand_over


def _mapped(**given: Any) -> Any:  # noqa: ANN401 - what Airflow makes of it
    return EmptyOperator.partial(task_id=given["task_id"]).expand(doc=["a"])


def _build(**settings: Any) -> DAG:
    with DAG("evacuate", schedule=None) as dag:
        failover_tasks(job="orders", prefix_group_id=False, **settings)
    return dag


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (lambda **_: None, "made NoneType, and no operator"),
        (_mapped, "made MappedOperator, and no operator"),
        (lambda **_: EmptyOperator(task_id="mine"), "made the task 'mine', and not"),
        (
            lambda task_id, **_: EmptyOperator(task_id=task_id),
            "without pre_execute, which decides whether",
        ),
        (
            lambda trigger_rule, **rest: EmptyOperator(trigger_rule="always", **rest),  # noqa: ARG005
            "with the trigger rule always, and not none_failed",
        ),
    ],
)
def test_a_factory_hands_on_what_it_is_given(
    factory: Callable[..., BaseOperator], message: str
) -> None:
    """Without the hooks, its operator would run in a dry run."""
    with pytest.raises(ConfigurationError, match=message):
        _build(submit=factory)


@pytest.mark.parametrize(
    ("given", "tasks"),
    [
        ({"stop": EmptyOperator}, ("cancel_source",)),
        ({"submit": EmptyOperator}, ("hand_over",)),
        ({}, ()),
    ],
)
def test_either_may_be_given_alone(given: dict[str, Any], tasks: tuple[str, ...]) -> None:
    """A job that is asked to stop may be submitted, and one that is cancelled have a DAG."""
    added = {"cancel_source", "hand_over"} & set(_build(**given).task_ids)
    assert added == {*tasks}


def test_arguments_for_a_task_that_is_not_there_are_refused() -> None:
    """By the most similar name."""
    with pytest.raises(ConfigurationError, match="arguments names cancel_source, and no task"):
        _build(arguments={"cancel_source": {}})
    with pytest.raises(ConfigurationError, match="did you mean translate"):
        _build(arguments={"translat": {}})


def test_arguments_do_not_replace_the_hooks() -> None:
    """The operator would run in a dry run."""
    own = {"pre_execute": print, "owner": "me", "retries": 5}
    submit = _build(submit=EmptyOperator, arguments={"start_target": own}).get_task("start_target")
    assert vars(submit)["_pre_execute_hook"] is not print
    assert (submit.owner, submit.retries) == ("me", 5)


def test_a_submit_that_may_start_two_jobs_is_tried_once() -> None:
    """Unless the platform knows the first."""
    for is_idempotent, retries in ((False, 0), (True, 2)):
        dag = _build(submit=EmptyOperator, submit_is_idempotent=is_idempotent)
        assert dag.get_task("start_target").retries == retries


def test_an_unknown_value_of_the_hand_over_is_refused() -> None:
    """A misspelt one would be None when the job is submitted."""
    with pytest.raises(ConfigurationError, match="gives no 'offsets' to submit; name one of"):
        from_hand_over("offsets")
