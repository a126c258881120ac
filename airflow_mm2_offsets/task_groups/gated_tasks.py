"""Adds a failover's tasks to its group, each behind its gate; the builders of steps call it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.operators.polling import DeferrablePolling
from airflow_mm2_offsets.task_groups.first_gate import FirstGate
from airflow_mm2_offsets.task_groups.gates import SAME_JOB, Gate
from airflow_mm2_offsets.task_groups.platforms import OperatorFactory, call_factory
from airflow_mm2_offsets.task_groups.steps import (
    AFTER_FAILURE,
    INTENTS,
    MOVING,
    OF_STOP,
    PLATFORM_INTENTS,
    READ_TIMEOUT,
    READING,
)

OperatorT = TypeVar("OperatorT", bound=BaseOperator)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedTasks:
    """Adds the tasks of one group. Texts may be templates."""

    mode: str
    modes: frozenset[FailoverMode]
    """The modes that the group can carry out."""
    dry_run: bool | str
    shared: Mapping[str, Any]
    """Arguments of several operators: each operator takes those that it has a template field of."""
    deferrable: bool | None
    arguments: Mapping[str, Mapping[str, Any]]
    """The user's arguments, by task id; they count before all others."""
    left_out: str = ""
    """Renders as the reason why no task is to run; as empty text where they are."""
    held: str = ""
    """Renders as the reason why no step may run yet; as empty text where they may."""
    guard: Callable[[Context], None] | None = None
    """Is called before each step, and raises where it may not run now."""
    gates: dict[str, Gate] = field(default_factory=dict)
    """Of the tasks that were added, by task id with the group's prefix."""

    def add(
        self,
        operator: type[OperatorT],
        task_id: str,
        *,
        runs_in: frozenset[FailoverMode] = frozenset(FailoverMode),
        optional_in: frozenset[FailoverMode] = frozenset(),
        wanted: bool | str = True,
        without: Collection[str] = (),
        is_first: bool = False,
        intent: str | None = None,
        after_failure_of: Collection[str] = (),
        **settings: Any,
    ) -> OperatorT:
        """Add a task; ``without`` names shared arguments that it does not take.

        The first task parses the settings of all.
        """
        fields = set(operator.template_fields) - set(without)
        shared = {name: value for name, value in self.shared.items() if name in fields}
        if issubclass(operator, DeferrablePolling):
            shared["deferrable"] = self.deferrable
        gate = Gate(
            mode=self.mode,
            dry_run=self.dry_run,
            runs_in=runs_in,
            optional_in=optional_in,
            wanted=wanted,
            wanted_name=task_id,
            intent=intent or INTENTS.get(task_id),
            left_out=self.left_out,
            held="" if task_id in AFTER_FAILURE else self.held,
            guard=None if task_id in AFTER_FAILURE else self.guard,
            after_failure_of=after_failure_of,
        )
        hook = FirstGate(gate=gate, gates=self.gates, modes=self.modes) if is_first else gate
        defaults: dict[str, Any] = {"trigger_rule": "none_failed", "pre_execute": hook}
        if task_id in READING:
            defaults["execution_timeout"] = READ_TIMEOUT
        arguments = {**defaults, **shared, **settings, **self.arguments.get(task_id, {})}
        task = operator(task_id=task_id, **arguments)
        self.gates[task.task_id] = gate
        return task

    def add_own(
        self,
        factory: OperatorFactory,
        task_id: str,
        *,
        then: Callable[[Context], None],
        defaults: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> BaseOperator:
        """Add a task of the user's own operator, behind the gate of the group."""
        gate = Gate(
            mode=self.mode,
            dry_run=self.dry_run,
            runs_in=MOVING,
            intent=PLATFORM_INTENTS.get(task_id, INTENTS[task_id]),
            then=then,
            left_out=self.left_out,
            held=self.held,
            guard=self.guard,
        )
        # The group's rule and hooks hold whatever else the user gives.
        own = {**arguments, "trigger_rule": "none_failed", "pre_execute": gate}
        told = {**(defaults or {}), **self.arguments.get(task_id, {})}
        name = "stop" if task_id == OF_STOP else "submit"
        task = call_factory(name, factory, task_id=task_id, **{**told, **own})
        self.gates[task.task_id] = gate
        return task

    def can_run(self, runs_in: frozenset[FailoverMode]) -> bool:
        """Tell whether a task can ever run; a mode that is a template may be any of ``modes``."""
        return not runs_in.isdisjoint(self.modes)


def find_modes(
    mode: str, modes: Collection[FailoverMode], *, has_own_operators: bool
) -> frozenset[FailoverMode]:
    """Return the modes that a group can carry out.

    Args:
        mode: The mode of the failover, or a template.
        modes: Those that a template may render as.
        has_own_operators: Whether the user's own operators cancel or submit the job.
    """
    if mode in set(FailoverMode):
        return frozenset({FailoverMode(mode)})
    # A drill starts the job's DAG, and ends it through its control location.
    return frozenset(modes) & (MOVING if has_own_operators else frozenset(FailoverMode))


def pull(task: BaseOperator, key: str) -> str:
    """Return the template of another task's XCom; it renders as None where there is none."""
    # An XComArg that is absent would fail before the operator can say what to do.
    return f"{{{{ ti.xcom_pull(task_ids='{task.task_id}', key='{key}', {SAME_JOB}) }}}}"
