"""Users' own operators in a failover: what cancels the job on its platform, and what submits it."""

from collections.abc import Callable
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.operators.handover import HANDED_OVER

SAME_JOB = "map_indexes=ti.map_index"
"""In a mapped group: of the same job, and not those of all; outside both are one."""

OperatorFactory = Callable[..., BaseOperator]
"""An operator's class, or a ``functools.partial`` of it with all arguments but those that the group
gives: ``task_id``, ``trigger_rule``, ``pre_execute``, ``post_execute``, ``retries``."""


def from_hand_over(name: str, group_id: str = "failover") -> str:
    """Return the template of a value that the hand-over gives to ``submit``.

    Each is a text: ``starting_offsets`` (Spark's JSON text; where that is too long for an argument,
    ``@`` and the location of a file with it), ``topic`` (several: separated by commas), and
    ``token`` (a name for the job on its platform: the same in each try of a run, 36 lower-case
    letters, digits and a hyphen).

    Args:
        name: One of the three.
        group_id: The id of the group, with those of the groups around it; empty for a group with
            ``prefix_group_id=False``.

    Raises:
        ConfigurationError: ``name`` is another word.
    """
    if name not in HANDED_OVER:
        raise ConfigurationError(
            f"the hand-over gives no {name!r} to submit; name one of {', '.join(HANDED_OVER)}"
        )
    task_id = f"{group_id}.hand_over" if group_id else "hand_over"
    # YAML doubles a single quote in a text, and Jinja would not understand that.
    return f'{{{{ ti.xcom_pull(task_ids="{task_id}", key="{name}", {SAME_JOB}) }}}}'


def call_factory(name: str, factory: OperatorFactory, **arguments: Any) -> BaseOperator:
    """Return the operator that a factory makes, and check that it took what the group gave.

    Raises:
        ConfigurationError: It made no operator, one of another id, or one without the checks.
    """
    operator = factory(**arguments)
    if not isinstance(operator, BaseOperator):
        raise ConfigurationError(
            f"{name} made {type(operator).__name__}, and no operator: give an operator's class, or "
            f"functools.partial(...) of it; a task of the @task decorator or a mapped one is none"
        )
    asked, prefix = arguments["task_id"], operator.task_group
    expected = prefix.child_id(asked) if prefix is not None else asked
    if operator.task_id != expected:
        raise ConfigurationError(
            f"{name} made the task {operator.task_id!r}, and not {expected!r}: hand on the "
            f"arguments that the group gives: {', '.join(arguments)}"
        )
    for field in ("pre_execute", "post_execute"):
        if field in arguments and getattr(operator, f"_{field}_hook") is not arguments[field]:
            raise ConfigurationError(
                f"{name} made the task {operator.task_id!r} without {field}, which decides whether "
                f"it may run: hand on the arguments that the group gives"
            )
    rule = arguments.get("trigger_rule")
    if rule is not None and operator.trigger_rule != rule:
        raise ConfigurationError(
            f"{name} made the task {operator.task_id!r} with the trigger rule "
            f"{operator.trigger_rule.value}, and not {rule}: it would run after a failure; hand on "
            f"the arguments that the group gives"
        )
    return operator
