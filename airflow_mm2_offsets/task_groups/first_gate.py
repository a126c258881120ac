"""Parses the settings of all tasks of a failover before its first task: nothing is stopped yet.

``gated_tasks`` gives it to ``check``. A setting that only a later task reads would else be found
wrong after the stop, when every minute counts.
"""

import copy
import inspect
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context, XComArg

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError
from airflow_mm2_offsets.operators.check import CheckFailoverOperator
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.plan_settings import plan_settings_of
from airflow_mm2_offsets.operators.run_conf import check_run_conf
from airflow_mm2_offsets.operators.settings import parse_common_settings, parse_mode
from airflow_mm2_offsets.operators.translate import TranslateOffsetsOperator
from airflow_mm2_offsets.task_groups.gates import Gate

_PULLED = re.compile(r"""xcom_pull\(\s*(?:task_ids\s*=\s*)?['"]([^'"]+)['"]""")
"""Names the task of which a template pulls the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstGate:
    """The gate of the first task; it also parses what every task of the mode was given.

    A task parses its settings by its method ``parse_settings``, which its own ``execute`` calls,
    too.
    """

    gate: Gate
    gates: Mapping[str, Gate]
    """The gates of all tasks of the group, by task id."""
    modes: frozenset[FailoverMode]
    """The modes that the group can carry out."""

    @fails_at_once()
    def __call__(self, context: Context) -> None:
        """Raise AirflowSkipException as ``gate`` does.

        Raises:
            ConfigurationError: The conf of the run has a key that no param has, or settings can't
                be used; each is named.
        """
        self.gate(context)
        check_run_conf(context)
        task: Any = context["task"]
        self._check_mode(task, context)
        pulled: dict[str, Any] = {}
        # ``gates`` is complete: the group was built before any task runs.
        found = [
            _find_problem(task.dag.get_task(task_id), gate, context, pulled)
            for task_id, gate in self.gates.items()
        ]
        problems = [*dict.fromkeys(filter(None, found))]
        if problems:
            listed = "\n".join(f"  - {problem}" for problem in problems)
            raise ConfigurationError(
                f"the failover can't begin with these settings, and this run has stopped nothing; "
                f"correct them and trigger a new run:\n{listed}"
            )
        self._give_plan_options(task, context, pulled)

    def _give_plan_options(self, task: Any, context: Context, pulled: dict[str, Any]) -> None:  # noqa: ANN401 - Airflow's kinds
        """Let the check try the plan by the very settings that it will be made with.

        Templates are rendered here as for the task that translates, which comes after the stop.
        """
        if not isinstance(task, CheckFailoverOperator) or task.plan_options is not None:
            return
        upstream = task.get_flat_relative_ids(upstream=True)
        for other in map(task.dag.get_task, self.gates):
            if isinstance(other, TranslateOffsetsOperator):
                own_context = _context_of(other, context, pulled)
                rendered = _rendered(other, own_context, upstream)
                vars(task)["plan_options"] = plan_settings_of(rendered)

    def _check_mode(self, task: BaseOperator, context: Context) -> None:
        mode = parse_mode(task.task_id, task.render_template(self.gate.mode, context))
        if mode not in self.modes:
            raise ConfigurationError(
                f"mode is {mode}, and these tasks carry out {', '.join(sorted(self.modes))}; a "
                f"drill is of one job, and starts and ends it by stream_dag_id and its control "
                f"location, without stop and submit"
            )


def _find_problem(
    task: Any,  # noqa: ANN401 - Airflow's kinds
    gate: Gate,
    context: Context,
    pulled: dict[str, Any],
) -> str | None:
    """Return which setting of a task is invalid, as a sentence; None if all are valid."""
    upstream = context["task"].get_flat_relative_ids(upstream=True)
    own_context = _context_of(task, context, pulled)
    try:
        gate.is_dry_run(task, own_context)
        if gate.why_left_out(task, own_context) is None:
            rendered = _rendered(task, own_context, upstream)
            parse_common_settings(rendered)
            if (parse := getattr(rendered, "parse_settings", None)) is not None:
                parse()
    except Mm2OffsetsError as error:
        if error.retryable:
            raise
        return _of_task(task, str(error))
    except (TypeError, ValueError, AttributeError) as error:
        return _of_task(task, f"a setting is invalid: {error!r}")
    return None


def _of_task(task: BaseOperator, problem: str) -> str:
    return problem if problem.startswith("task ") else f"task {task.task_id}: {problem}"


def _remember_pulls(instance: Any, pulled: dict[str, Any]) -> None:  # noqa: ANN401 - Airflow's
    """Let a task instance ask once for each XCom: a fleet's job has all its settings in one."""
    pull = instance.xcom_pull

    def remembered(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as of Airflow's
        # Without a task id it is the task's own.
        key = repr((named.get("task_ids", instance.task_id), arguments, sorted(named.items())))
        if key not in pulled:
            pulled[key] = pull(*arguments, **named)
        return pulled[key]

    vars(instance)["xcom_pull"] = remembered


def _context_of(task: BaseOperator, context: Context, pulled: dict[str, Any]) -> Context:
    """Return the context with another task in place of the first: templates may ask for its id."""
    instance: Any = copy.copy(context["ti"])
    instance.task_id, instance.task = task.task_id, task
    _remember_pulls(instance, pulled)
    own: Any = {**context, "task": task, "ti": instance, "task_instance": instance}
    return own  # type: ignore[no-any-return]


def _rendered(task: BaseOperator, context: Context, upstream: Collection[str]) -> BaseOperator:
    """Return a copy of a task with its fields as they will be.

    A field that a task fills which is not ``upstream`` of the first one is not known yet: the copy
    has the operator's default there.
    """
    rendered = copy.copy(task)
    parameters = inspect.signature(type(task).__init__).parameters
    for field in task.template_fields:
        value = getattr(task, field, None)
        if not sources_of(value) <= set(upstream) or _is_file(task, value):
            default = parameters[field].default if field in parameters else None
            value = None if default is inspect.Parameter.empty else default
        # Not by assignment, which changes the arguments that the copy shares with the task.
        vars(rendered)[field] = _render(task, field, value, context)
    return rendered


def _render(task: BaseOperator, field: str, value: Any, context: Context) -> Any:  # noqa: ANN401 - any field
    try:
        return task.render_template(value, context)
    except Exception as error:  # a template may call anything
        raise ConfigurationError(
            f"task {task.task_id}: {field} is the template {value!r}, which can't be rendered: "
            f"{error!r}"
        ) from error


def _is_file(task: BaseOperator, value: object) -> bool:
    """Tell whether a field names a file whose content Airflow renders: what it pulls is unknown."""
    return isinstance(value, str) and value.endswith(tuple(task.template_ext))


def sources_of(value: object) -> set[str]:
    """Return the ids of the tasks whose results a field needs; "" stands for one not named."""
    if isinstance(value, Mapping):
        return set().union(*map(sources_of, value.values()))
    if isinstance(value, (list, tuple, set)):
        return set().union(*map(sources_of, value))
    if isinstance(value, XComArg):
        return {operator.task_id for operator, _ in value.iter_references()}
    if not isinstance(value, str):
        return set()
    named = _PULLED.findall(value)
    return {*named, *([""] if value.count("xcom_pull") > len(named) else [])}
