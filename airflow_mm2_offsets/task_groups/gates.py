"""Decides whether a task of a failover runs: by the mode, and in a dry run.

``gated_tasks`` gives each task its gate; Airflow calls it before the task, with rendered fields.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator, Context

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.run_facts import states_of
from airflow_mm2_offsets.operators.settings import given, parse_mode, parse_truth

INTENT = "intent"
"""The XCom of what a task would have done in a dry run."""

SAME_JOB = "map_indexes=ti.map_index"
"""In a mapped group: of the same job, and not those of all; outside both are one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Skips a task that is no part of the mode, was not asked for, or changes something.

    Texts may be templates.
    """

    mode: str
    """The mode of the failover."""
    dry_run: bool | str = False
    """Whether the failover only tells what it would do."""
    runs_in: frozenset[FailoverMode] = field(default_factory=lambda: frozenset(FailoverMode))
    optional_in: frozenset[FailoverMode] = frozenset()
    """The modes in which ``wanted`` decides."""
    wanted: bool | str = True
    wanted_name: str = ""
    """What messages call ``wanted``."""
    needs: str = ""
    """A field of the task: where it is not given there is nothing to do. Empty: there is none."""
    intent: str | None = None
    """What the task changes, for a dry run: a sentence's end, with the task's fields in braces, and
    its class as ``{operator}``. None: the task changes nothing, and runs in a dry run too."""
    then: Callable[[Context], None] | None = None
    """What is done before a task that is to run."""
    left_out: str = ""
    """Renders as the reason why the whole failover is left out; as empty text where it is not."""
    held: str = ""
    """Renders as the reason why the task may not run yet; as empty text where it may."""
    guard: Callable[[Context], None] | None = None
    """Raises where the task may not run now."""
    after_failure_of: Collection[str] = ()
    """Tasks of which one must have failed for the same job; none: that is not asked."""

    @fails_at_once()
    def __call__(self, context: Context) -> None:
        """Raise AirflowSkipException unless the task is to run.

        Raises:
            HandoverError: ``held`` gives a reason.
        """
        task: Any = context["task"]  # Airflow says that it may be a mapped one
        if reason := self.why_left_out(task, context):
            raise AirflowSkipException(reason)
        if self.held and (reason := _render(task, self.held, context)):
            raise HandoverError(reason)
        if self.guard is not None:
            self.guard(context)
        if self.after_failure_of and not self._has_failed(context):
            raise AirflowSkipException("no step of the failover has failed")
        if self.intent is not None and self.is_dry_run(task, context):
            fields = {**vars(task), "operator": task.task_type}
            intent = without_login(self.intent.format(**fields))
            context["ti"].xcom_push(key=INTENT, value=intent)
            raise AirflowSkipException(f"dry run: it would {intent}")
        if self.then is not None:
            self.then(context)

    def why_left_out(self, task: BaseOperator, context: Context) -> str | None:
        """Return why the task is no part of this failover; None where it is one.

        Raises:
            ConfigurationError: ``mode`` or ``wanted`` is invalid.
        """
        if self.left_out and (reason := _render(task, self.left_out, context)):
            return reason
        mode = parse_mode(task.task_id, _render(task, self.mode, context))
        if mode not in self.runs_in:
            return f"a failover in mode {mode} has no such step"
        if self.needs and given(getattr(task, self.needs)) is None:
            return f"no {self.needs} is given"
        if mode not in self.optional_in:
            return None
        wanted = _render(task, self.wanted, context)
        is_wanted = parse_truth(task.task_id, self.wanted_name, wanted)
        return None if is_wanted else f"{self.wanted_name} is False"

    def _has_failed(self, context: Context) -> bool:
        instance: Any = context["ti"]
        states = states_of(instance, self.after_failure_of)
        own = {state for (_, index), state in states.items() if index == instance.map_index}
        return not own.isdisjoint({"failed", "upstream_failed"})

    def is_dry_run(self, task: BaseOperator, context: Context) -> bool:
        """Tell whether the failover only tells what it would do.

        Raises:
            ConfigurationError: ``dry_run`` is invalid.
        """
        return parse_truth(task.task_id, "dry_run", _render(task, self.dry_run, context))


def _render(task: BaseOperator, text: bool | str, context: Context) -> str:  # noqa: FBT001 - a value
    return str(task.render_template(str(text), context))
