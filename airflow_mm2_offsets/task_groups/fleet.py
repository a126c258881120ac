"""The tasks that move many jobs, in waves: for users' own DAGs and ``mm2_fleet``."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from airflow.providers.common.compat.sdk import (
    BaseOperator,
    TaskGroup,
    XComArg,
    chain,
    task_group,
)
from airflow.providers.standard.operators.python import PythonOperator

from airflow_mm2_offsets.core.approval import Ask
from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.moves.request import MoveRequest
from airflow_mm2_offsets.operators.fleet import (
    APPROVED,
    ASK,
    ApproveFleetOperator,
    PreviewFleetOperator,
    check_order,
    jobs_of_wave,
)
from airflow_mm2_offsets.operators.fleet_report import ReportFleetOperator
from airflow_mm2_offsets.sensors.fleet import FleetTurnSensor
from airflow_mm2_offsets.task_groups import RETRIES, STEPS, VERIFY, failover_tasks

OWN_TASKS = ("preview", "approve_fleet", "turn", "report_fleet")
"""The tasks beside those of each job's move that take arguments."""
_IN_ORDER = ("check", "stop_source", "translate", "start_target")
"""The steps of a move that depend on where other jobs are."""
OperatorT = TypeVar("OperatorT", bound=BaseOperator)


def fleet_tasks(
    *,
    to: str,
    jobs: str | None = None,
    out_of: str | None = None,
    policy: str = PLANNED.name,
    dry_run: bool | str = False,
    source_is_gone: bool | str = False,
    options: Mapping[str, Any] | str | None = None,
    waves: int = 3,
    at_once: int | str = 5,
    approve: str = Ask.ABOVE_THRESHOLDS.value,
    verify: bool = False,
    deferrable: bool | None = True,
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
    group_id: str = "fleet",
    prefix_group_id: bool = False,
    default_args: Mapping[str, Any] | None = None,
) -> TaskGroup:
    """Add the tasks that move jobs of the file of jobs to one cluster; return their group.

    Call it inside a DAG. It plans all jobs from where they stand, asks for one approval over the
    total, and moves them wave by wave: each wave is a task group that is expanded over its jobs. A
    job that fails holds the next wave, and not the others of its own. Run again, it moves only what
    is left: a job that is at the cluster already stays there. Texts may be templates.

    Args:
        to: The cluster that the jobs go to, by its alias.
        jobs: The names of the jobs, separated by commas; None or empty: all with a home there.
        out_of: Only jobs with their other home at this cluster; None or empty: at any.
        policy: ``planned`` or ``disaster``.
        dry_run: Say what each step would do, and change nothing.
        source_is_gone: See ``MoveRequest``; it counts for each job whose folder can't be reached.
        options: How the positions are translated: see ``TranslateOffsetsOperator``.
        waves: How many waves the DAG has; those without jobs are skipped.
        at_once: How many jobs of a wave may be at work at once.
        approve: When a person is asked: ``above_thresholds``, ``always`` or ``never``. A job that
            costs more than was approved for it asks again, unless it is ``never``.
        verify: Compare both clusters and the outputs of each job at the end.
        deferrable: See ``failover_tasks``.
        arguments: Further arguments by task id: those of ``failover_tasks`` count for each job,
            beside ``preview``, ``approve_fleet``, ``turn`` and ``report_fleet``.
        group_id: The group's id.
        prefix_group_id: Begin the task ids with the group's.
        default_args: Of all tasks; two retries by default.

    Raises:
        ConfigurationError: ``arguments`` names a task that is not there, or replaces a check of the
            order; or ``waves`` is no number from 1.
    """
    own = {**(arguments or {})}
    _check_arguments(own, waves, (*OWN_TASKS, *STEPS, *((VERIFY,) if verify else ())))
    how: dict[str, Any] = {
        "to": to,
        "policy": policy,
        "dry_run": dry_run,
        "source_is_gone": source_is_gone,
    }
    defaults: Any = {**RETRIES, **(default_args or {})}  # Airflow's annotation takes no dict
    with TaskGroup(group_id, prefix_group_id=prefix_group_id, default_args=defaults) as fleet:
        add = partial(_add, own, move=MoveRequest(job=jobs or "", **how))
        preview = add(PreviewFleetOperator, "preview", out_of=out_of, waves=waves, options=options)
        asked = add(
            ApproveFleetOperator,
            "approve_fleet",
            preview=XComArg(preview),
            ask=approve,
            trigger_rule="none_failed",
        )
        before: Any = asked
        groups, ends = [], []
        for number in range(1, waves + 1):
            names = PythonOperator(
                task_id=f"jobs_of_wave_{number}",
                python_callable=jobs_of_wave,
                op_kwargs={"preview": XComArg(preview), "wave": number},
                trigger_rule="none_failed",
            )
            wave = _Wave(
                how=how,
                names=names,
                asked=asked,
                turn={"at_once": at_once, "deferrable": deferrable},
                failover={"options": options, "verify": verify, "deferrable": deferrable},
                own=own,
                default_args=defaults,
            )
            chain(before, names)
            before = task_group(group_id=f"wave_{number}")(wave.add).expand(job=XComArg(names))
            groups.append(before)
            ends.append(wave.ends[0])
        report = add(ReportFleetOperator, "report_fleet", preview=XComArg(preview), ends=ends)
        # Of each wave: the first failure ends the later waves, while its neighbours are at work.
        chain(groups, report)
    return fleet


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wave:
    """Adds the tasks of one wave's jobs."""

    how: Mapping[str, Any]
    """The arguments of a ``MoveRequest``, but for the job."""
    names: BaseOperator
    """The task that returns the names of the jobs."""
    asked: BaseOperator
    """The task that asks for the whole fleet."""
    turn: Mapping[str, Any]
    """Arguments of ``FleetTurnSensor``."""
    failover: Mapping[str, Any]
    """Arguments of ``failover_tasks``."""
    own: Mapping[str, Mapping[str, Any]]
    default_args: Mapping[str, Any]
    ends: list[str] = field(default_factory=list)
    """The last task of each job, once it is added."""

    def add(self, job: Any) -> None:  # noqa: ANN401 - Airflow's stand-in for one of the names
        """Add the tasks of the group that is expanded over the jobs."""
        named = {**self.default_args, "map_index_template": "{{ task.move['job'] }}"}
        turn = _add(
            self.own,
            FleetTurnSensor,
            "turn",
            move=MoveRequest(job=job, **self.how),
            wave=XComArg(self.names),
            last_task_id="",
            trigger_rule="none_failed",
            map_index_template=named["map_index_template"],
            **self.turn,
        )
        tasks = failover_tasks(
            job=job,
            approve=self._answer(ASK, "{} or 'above_thresholds'"),
            arguments=self._arguments(),
            group_id="move",
            default_args=named,
            **self.how,
            **self.failover,
        )
        turn.last_task_id = tasks.child_id("report")
        self.ends.append(turn.last_task_id)
        chain(turn, tasks)

    def _arguments(self) -> dict[str, dict[str, Any]]:
        """Return the arguments of the steps; those that depend on the order check it first."""
        steps = {name: {**more} for name, more in self.own.items() if name not in OWN_TASKS}
        for name in _IN_ORDER:
            steps[name] = {**steps.get(name, {}), "pre_execute": check_order}
        approved = self._answer(APPROVED, "({} or {{}}) | tojson")
        steps["approve"] = {"approved": approved, **steps.get("approve", {})}
        return steps

    def _answer(self, key: str, template: str) -> str:
        """Return the template of what the task that asks has pushed."""
        pulled = f"ti.xcom_pull(task_ids='{self.asked.task_id}', key='{key}')"
        return f"{{{{ {template.format(pulled)} }}}}"


def _add(
    own: Mapping[str, Mapping[str, Any]], operator: type[OperatorT], task_id: str, **settings: Any
) -> OperatorT:
    return operator(task_id=task_id, **{**settings, **own.get(task_id, {})})


def _check_arguments(
    own: Mapping[str, Mapping[str, Any]], waves: int, known: Collection[str]
) -> None:
    if unknown := ", ".join(sorted(set(own) - set(known))):
        raise ConfigurationError(f"arguments names {unknown}; name one of {', '.join(known)}")
    if hooked := [name for name in _IN_ORDER if "pre_execute" in own.get(name, {})]:
        raise ConfigurationError(
            f"arguments gives pre_execute to {', '.join(hooked)}, where the fleet checks the order "
            f"of its jobs; give it to another task"
        )
    if waves < 1:
        raise ConfigurationError(f"waves is {waves}; give a number from 1")
