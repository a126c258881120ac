"""The step that gives a failed move up before its job is handed over."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError, NotReadyError, as_class
from airflow_mm2_offsets.moves.move import Move, Mover
from airflow_mm2_offsets.moves.rollback import JobNow, roll_back
from airflow_mm2_offsets.operators.dag_runs import start_job
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.moving import MoveArgument, mover_of, to_template
from airflow_mm2_offsets.operators.settings import given
from airflow_mm2_offsets.operators.target_dag import find_dag_problems, has_dag_run

WITHDRAW, RESTART, KEEP = ON_FAILURE = ("withdraw", "restart", "keep")
_NOT_RESTARTED = "the move was rolled back, but the job was not restarted"
KEPT = (
    "Nothing was undone. Correct what the failed task names, and clear it to go on. Until then the "
    "job does not run where it was stopped."
)


class RollbackFailoverOperator(BaseOperator):
    """Takes a move back that has failed before its job was handed over.

    A stop without a proof is withdrawn. A job that has stopped may run where it was; with
    ``restart`` its DAG is triggered. After the hand-over it refuses, and says what to do.

    Args:
        move: What is moved, and how.
        on_failure: ``withdraw`` (default), ``restart`` (and trigger the job's DAG) or ``keep``
            (undo nothing). May be a templated string.

    Returns:
        ``done`` (rolled_back, nothing_to_undo, kept), ``job`` (runs, stopped, restarted,
        untouched), ``restart_run_id`` and ``next``.

    Raises:
        HandoverError: The job is handed over, or another run has it.
        StopError: The job is stopping at this moment, or a control location can't be used.
        NotReadyError: It was rolled back, but the job's DAG can't be triggered.
        ConfigurationError: ``on_failure`` is another word.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = ("move", "on_failure")

    def __init__(self, *, move: MoveArgument, on_failure: str = WITHDRAW, **kwargs: Any) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.move = to_template(move)
        self.on_failure = on_failure

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Undo the move, and restart the job where told."""
        answer = give_up(context, mover_of(self, context), self.parse_settings())
        self.log.info("%s", answer["next"])
        context["ti"].xcom_push(key="summary", value=answer["next"])
        return answer

    def parse_settings(self) -> str:
        """Return ``on_failure``.

        Raises:
            ConfigurationError: It is another word.
        """
        return parse_on_failure(self.task_id, self.on_failure)


def parse_on_failure(task_id: str, value: object) -> str:
    """Return what a failure before the hand-over undoes.

    Raises:
        ConfigurationError: It is another word.
    """
    choice = given(value) or WITHDRAW
    if choice not in ON_FAILURE:
        raise ConfigurationError(
            f"task {task_id}: on_failure is {choice!r}; give one of {', '.join(ON_FAILURE)}"
        )
    return choice


def give_up(context: Context, mover: Mover, choice: str) -> dict[str, Any]:
    """Take a move back, and restart its job where told; see ``RollbackFailoverOperator``.

    Raises:
        HandoverError: The job is handed over, or another run has it.
        StopError: The job is stopping at this moment, or a control location can't be used.
        NotReadyError: It was rolled back, but the job's DAG can't be triggered.
    """
    if choice == KEEP:
        return _answer("kept", "untouched", KEPT)
    problem = _find_problem(context, mover) if choice == RESTART else None
    can_restart = choice == RESTART and problem is None
    undone = roll_back(mover, partial(_restart, context) if can_restart else None)
    move, run_id = undone.move, undone.move.job_run("__restart")
    if problem and undone.job is JobNow.STOPPED:
        raise NotReadyError(f"{_NOT_RESTARTED}: {problem}")
    if choice == RESTART and undone.job is JobNow.STOPPED and _is_restarted(context, move):
        sentence = f"The run {run_id} of DAG {move.job.dag} starts the job at {move.here}."
        return _answer("rolled_back", "restarted", sentence, run_id)
    done = "rolled_back" if undone.has_undone else "nothing_to_undo"
    return _answer(done, undone.job.value, undone.sentence)


def _find_problem(context: Context, mover: Mover) -> str | None:
    """Return why the job's DAG can't be triggered: known before anything is undone."""
    if mover.job.dag is None:
        return "no DAG runs it: start it on its platform"
    problems = find_dag_problems(context, mover.job.dag)
    return f"{'; '.join(problems)}. Then start the job where it was" if problems else None


def _restart(context: Context, move: Move) -> None:
    """Trigger the job's DAG where the job was, unless an earlier try has."""
    if _is_restarted(context, move):
        return
    try:
        start_job(context, move.job, move.here, move.job_run("__restart"))
    except Mm2OffsetsError as error:
        raise as_class(type(error), error, f"{_NOT_RESTARTED}: {error}") from error


def _is_restarted(context: Context, move: Move) -> bool:
    return bool(move.job.dag and has_dag_run(context, move.job.dag, move.job_run("__restart")))


def _answer(done: str, job: str, sentence: str, run_id: str | None = None) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "done": done,
        "job": job,
        "restart_run_id": run_id,
        "next": sentence,
    }
