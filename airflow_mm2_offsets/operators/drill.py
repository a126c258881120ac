"""The step that starts a drill's job beside the running one."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.errors import (
    ConfigurationError,
    DrillError,
    HandoverError,
    NotReadyError,
    PlanError,
)
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.drill import (
    close_drill,
    drill_home,
    find_drill_problems,
    open_drill,
)
from airflow_mm2_offsets.moves.jobs import Home
from airflow_mm2_offsets.moves.move import Move
from airflow_mm2_offsets.operators.dag_runs import start_job
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.moving import (
    MoveArgument,
    mirror_of,
    mover_of,
    request_of,
    skip_in_dry_run,
    to_template,
)
from airflow_mm2_offsets.operators.settings import given
from airflow_mm2_offsets.operators.target_dag import find_dag_problems, has_dag_run
from airflow_mm2_offsets.planning.stored_plan import whole_plan
from airflow_mm2_offsets.spark.drill import DrillMark, mark_drill, read_mark
from airflow_mm2_offsets.spark.offsets import format_offsets
from airflow_mm2_offsets.triggers.drill import ENDED, read_run_state


def folder_of_drill(task: BaseOperator) -> str:
    """Return the folder of a task's drill, and check that its move is one.

    Raises:
        ConfigurationError: The folder is missing, or the move's policy is not ``drill``.
    """
    policy = request_of(task).how
    if not policy.leaves_job_alone:
        raise ConfigurationError(
            f"task {task.task_id}: the policy is {policy}; give drill", setting="policy"
        )
    if (folder := given(getattr(task, "folder", None))) is None:
        raise ConfigurationError(
            f"task {task.task_id}: give the drill's folder, which only drills of this job use",
            setting="folder",
        )
    return folder.rstrip("/")


class StartDrillOperator(BaseOperator):
    """Starts a second copy of a job at its other cluster, in a throw-away folder.

    It marks the folder by ``drill.json``, writes a fence there that says where the copy begins, and
    triggers the job's DAG with the conf of a real move and ``drill``: true. The running job, its
    folders and its journal are only read. A retry starts no second copy.

    Args:
        move: What would be moved, by the policy ``drill``.
        folder: The drill's folder, which is removed afterwards with all that it holds.
        plan: What ``TranslateOffsetsOperator`` returned, as a mapping or as JSON.
        conf: Further keys of the DAG run's conf.

    Returns:
        ``dag_id`` and ``run_id`` of the DAG run, ``folder``, ``output`` (where the copy writes, as
        Spark names it), ``mm2_conn_id`` and ``to`` (by which mirror the job would move, and to
        which cluster).

    Raises:
        NotReadyError: The folder can't be used, a move or an earlier drill is under way, the job
            has moved since the plan was made, or its DAG does not exist or is paused; each problem
            is named.
        HandoverError: The DAG run exists, and its drill is over.
        ConfigurationError: The policy is another one, or the folder or the plan is missing.
        TranslationRefusedError: The plan has no safe answer for a topic-partition.
        PlanError: The plan's file is gone, damaged or out of reach.
        DrillError: Another drill has just marked the folder, or this one is being torn down.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = ("move", "folder", "plan", "conf")

    def __init__(
        self,
        *,
        move: MoveArgument,
        folder: str,
        plan: Mapping[str, Any] | str,
        conf: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.move = to_template(move)
        self.folder = folder
        self.plan = plan
        self.conf = dict(conf or {})

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Check, mark the folder, write its fence, and trigger the DAG."""
        folder, move = folder_of_drill(self), mover_of(self, context).find()
        skip_in_dry_run(self, context, f"start a second copy of job {move.job.name} in {folder}")
        plan = self._read_plan()
        targets = plan.target_positions()
        home = self._check(context, move, folder, plan)
        conn_id = mirror_of(move)
        run_id = f"{move.run.replace(':', '__', 1)}__{move.job.name}__drill"
        self._refuse_ended(context, move, folder, run_id)
        mark = mark_drill(
            storage_path(folder),
            move.run,
            dag_id=str(move.job.dag),
            run_id=run_id,
            cluster=home.cluster,
            last_entry=move.last.number if move.last else 0,
        )
        open_drill(
            home,
            storage_path(home.control),
            mark,
            starting_offsets=format_offsets(targets),
            topics=",".join(sorted(targets)),
        )
        is_new = start_job(context, move.job, home, run_id, {**self.conf, "drill": True})
        self._close_if_torn_down(home, mark)
        verb = "Triggered" if is_new else "An earlier try has triggered"
        self.log.info("%s the run %s of DAG %s, for %s", verb, run_id, mark.dag_id, home)
        return {
            "dag_id": mark.dag_id,
            "run_id": run_id,
            "folder": folder,
            "output": home.spark_sink,
            "mm2_conn_id": conn_id,
            "to": home.cluster,
        }

    def _read_plan(self) -> FailoverPlan:
        try:
            values = json.loads(self.plan) if isinstance(self.plan, str) else self.plan
            return FailoverPlan.from_json(whole_plan(values, storage_path))
        except PlanError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"task {self.task_id}: this release can't read plan: {error!r}; give what the task "
                f"that translates returned",
                setting="plan",
            ) from error

    def _check(self, context: Context, move: Move, folder: str, plan: FailoverPlan) -> Home:
        """Return the drill's home; raise where a drill can't begin."""
        problems = find_drill_problems(move, folder, storage_path)
        problems += _earlier_run_problems(folder, move.run)
        last = move.last
        if last is not None and last.at.isoformat(timespec="seconds") > plan.created_at:
            problems.append(
                f"job {move.job.name}: {last}, and the plan is of {plan.created_at}, before that: "
                f"clear the task that translates, with all after it"
            )
        if move.job.dag is None:
            problems.append(f"job {move.job.name} names no DAG that runs it")
        else:
            problems += find_dag_problems(context, move.job.dag)
        there = move.job.other_home(move.here)
        if problems or there is None:
            listed = "\n".join(f"  - {problem}" for problem in problems)
            raise NotReadyError(f"the drill can't begin, and nothing was started:\n{listed}")
        return drill_home(there, folder)

    def _refuse_ended(self, context: Context, move: Move, folder: str, run_id: str) -> None:
        """Raise where the DAG run exists without this drill's mark: the drill was torn down."""
        mark = read_mark(storage_path(folder))
        if mark is not None and mark.request_id == move.run:
            return  # an earlier try may have triggered it
        if has_dag_run(context, str(move.job.dag), run_id):
            raise HandoverError(
                f"DAG {move.job.dag} has the run {run_id!r} already, and its drill was torn down: "
                f"nothing was started; start a new run of the drill"
            )

    def _close_if_torn_down(self, home: Home, mark: DrillMark) -> None:
        """Stop the copy where the drill was torn down while this try was paused."""
        standing = read_mark(storage_path(home.folder))
        if standing is not None and standing.request_id == mark.request_id:
            return
        if standing is None:
            close_drill(home, storage_path(home.control), mark)
        raise DrillError(
            f"the drill {mark.request_id!r} was torn down while this task ran: the run "
            f"{mark.run_id!r} of DAG {mark.dag_id} must not begin: delete it, and then "
            f"{home.folder}, if no other drill has it"
        )


def _earlier_run_problems(folder: str, request_id: str) -> list[str]:
    """Return why the run of an earlier drill, which may be queued, may yet use the folder."""
    mark = read_mark(storage_path(folder))
    if mark is None or not mark.run_id or mark.request_id == request_id:
        return []
    state = read_run_state(mark.dag_id, mark.run_id)
    if state is None or state in ENDED:
        return []
    problem = (
        f"the run {mark.run_id!r} of DAG {mark.dag_id}, of the earlier drill "
        f"{mark.request_id!r}, is {state}: clear that drill's tear-down, or delete the run"
    )
    return [problem]
