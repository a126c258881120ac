"""The step back: it undoes a failover that has not reached its point of no return."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from airflow.providers.common.compat.sdk import Context
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from upath import UPath

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import (
    ConfigurationError,
    HandoverError,
    Mm2OffsetsError,
    NotReadyError,
    StopError,
    as_class,
)
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import ROLLS_BACK, page_links
from airflow_mm2_offsets.operators.locking import places_of
from airflow_mm2_offsets.operators.restart_conf import complete_restart_conf
from airflow_mm2_offsets.operators.run_facts import states_of
from airflow_mm2_offsets.operators.settings import check_location, given
from airflow_mm2_offsets.operators.target_dag import find_dag_problems, has_dag_run, with_output
from airflow_mm2_offsets.spark.fence import read_fence
from airflow_mm2_offsets.spark.lock import check_unlocked, release_lock
from airflow_mm2_offsets.spark.lost_storage import why_lost
from airflow_mm2_offsets.spark.rollback import FailoverRun, Undone, roll_back, set_plan_aside
from airflow_mm2_offsets.spark.stop_proof import find_missing_proof

WITHDRAW, RESTART, KEEP = "withdraw", "restart", "keep"
ON_FAILURE = (WITHDRAW, RESTART, KEEP)


class RollbackFailoverOperator(TriggerDagRunOperator):
    """Withdraws a failover's stop, fence, claim and lock; restarts the source job where told.

    Without it a failover that fails half-way leaves a job that has stopped, and a fence that ends
    every driver of it: an outage that nobody has asked for. In the task group it is ``roll_back``,
    with the trigger rule ``one_failed``. It stands alone in a user's DAG, too.

    It refuses once the job is handed over: then a job runs on the target, or may. A hand-over that
    runs at the same moment either sees the roll-back and starts nothing, or is seen by it. After a
    roll-back, a cleared ``submit_target`` starts nothing; a cleared ``stop_source`` begins anew.

    Args:
        checkpoint: The source job's checkpoint location.
        target_checkpoint: The target job's checkpoint location.
        control: The source job's control location; None where it has none.
        request_id: The stop, as ``StopSparkStreamingOperator`` has it.
        on_failure: ``withdraw`` (default): undo, and leave the start of a job that has stopped to
            the user. ``restart``: undo, and trigger the job's DAG for the source once, if this
            failover has stopped it. ``keep``: change nothing, and say how to go on.
        mode: In a ``disaster`` a control location that does not answer is nothing to undo.
        stopped: What ``StopSparkStreamingOperator`` returned; None where it proved no stop. Only
            for a job without a control location. It counts while the checkpoint is as it was then.
        stop_task_id: The task that returned ``stopped``; it counts while that task is a success.
            Airflow keeps the result of a cleared task until the task starts again. While it counts,
            it must be of ``request_id``. None: it counts by itself.
        plan_path: The kept plan; it is renamed to ``<name>.rolled-back`` (by a second roll-back of
            this run to ``<name>.rolled-back-2``), so that a new stop gets a new plan. None: there
            is none.
        forecast_path: The kept forecast; it is renamed in the same way.
        locks: The folder of locks, where the failover has one.
        trigger_dag_id: The DAG that runs the job; None: no DAG does, and ``restart`` is refused.
        restart_conf: The conf that starts it on the source, with the same checkpoint. Give None as
            ``topic`` and ``starting_offsets``: they are read from the checkpoint at the restart.
            What another task has read may be of an earlier try, or of another job of a fleet.
        restart_output: Where the job on the source writes; as ``job_output`` of
            ``TriggerTargetDagOperator``.
        restart_run_id: The run id of that start; the time of the roll-back is appended, so that a
            retry starts nothing twice, and a second roll-back of this run starts again.

    Returns:
        ``done`` (rolled_back, nothing_to_undo, kept), ``job`` (runs, stopped, restarted,
        untouched), ``restart_run_id`` and ``next``.

    Raises:
        HandoverError: The job is handed over, or was moved by another run since; or the task
            ``stop_task_id`` has stopped another job. The message says what to do instead.
        CheckpointError: It was rolled back, but the checkpoint does not say what the job reads.
        StopError: The control location does not answer.
        NotReadyError: It was rolled back, but the job's DAG can't be triggered.
        ConfigurationError: ``on_failure`` is another word.
    """

    operator_extra_links = page_links("run", job=ROLLS_BACK, beside=TriggerDagRunOperator)
    template_fields: Sequence[str] = (
        *("trigger_dag_id", "trigger_run_id", "conf", "checkpoint", "target_checkpoint"),
        *("control", "request_id", "on_failure", "mode", "stopped", "plan_path", "locks"),
        *("forecast_path", "restart_conf", "restart_run_id", "restart_output"),
    )

    def __init__(
        self,
        *,
        checkpoint: str,
        target_checkpoint: str,
        trigger_dag_id: str | None = None,
        control: str | None = None,
        request_id: str = "{{ dag.dag_id }}:{{ run_id }}",
        on_failure: str = WITHDRAW,
        mode: str = FailoverMode.PLANNED.value,
        stopped: Mapping[str, Any] | None = None,
        stop_task_id: str | None = None,
        plan_path: str | None = None,
        forecast_path: str | None = None,
        locks: str | None = None,
        restart_conf: Mapping[str, Any] | None = None,
        restart_output: str | None = None,
        restart_run_id: str = "{{ dag.dag_id }}__{{ run_id }}__restart",
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(
            trigger_dag_id=trigger_dag_id or "", **{"skip_when_already_exists": True, **kwargs}
        )
        self.checkpoint = checkpoint
        self.target_checkpoint = target_checkpoint
        self.control = control
        self.request_id = request_id
        self.on_failure = on_failure
        self.mode = mode
        self.stopped = stopped
        self.stop_task_id = stop_task_id
        self.plan_path = plan_path
        self.forecast_path = forecast_path
        self.locks = locks
        self.restart_conf = restart_conf
        self.restart_output = restart_output
        self.restart_run_id = restart_run_id

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any] | None:
        """Undo the failover, and restart the job where told."""
        choice = self.parse_settings()
        if choice == KEEP:
            return self._say(context, "kept", "untouched", self._how_to_go_on())
        self._check_same_job(context)
        control, unproved = self._control(), self._find_unproved(context)
        undone = roll_back(self._run(control, unproved))
        self._tidy_up(undone)
        is_lost = control is None and given(self.control) is not None
        if choice == RESTART and undone.mark and undone.mark.is_restart_due and not is_lost:
            return self._restart(context, undone)
        done, job, sentence = self._describe(undone, unproved)
        return self._say(context, done, job, self._lost_fence() if is_lost else sentence)

    def parse_settings(self) -> str:
        """Return ``on_failure``, and check the other settings.

        Raises:
            ConfigurationError: One is invalid.
        """
        check_location(self, "locks")
        choice = given(self.on_failure) or WITHDRAW
        if choice not in ON_FAILURE:
            raise ConfigurationError(
                f"task {self.task_id}: on_failure is {choice!r}; give one of "
                f"{', '.join(ON_FAILURE)}"
            )
        if choice == RESTART and not self.trigger_dag_id:
            raise ConfigurationError(
                f"task {self.task_id}: on_failure is {RESTART}, and no DAG runs the job "
                f"(stream_dag_id): give {WITHDRAW}, and start the job on its platform yourself"
            )
        return choice

    def _control(self) -> UPath | None:
        """Return the control location; None if there is none, or a disaster took its storage."""
        if not (location := given(self.control)):
            return None
        control = storage_path(location)
        try:
            read_fence(control)
        except StopError as error:
            if str(self.mode) != FailoverMode.DISASTER or not error.fields.get("file"):
                raise
            self.log.warning("There is nothing to withdraw in the control location: %s", error)
            return None
        return control

    def _run(self, control: UPath | None, unproved: str | None) -> FailoverRun:
        return FailoverRun(
            request_id=self.request_id,
            control=control,
            target_checkpoint=storage_path(self.target_checkpoint),
            has_killed=self._has_result() and unproved is None,
        )

    def _has_result(self) -> bool:
        return bool(self.stopped and given(self.stopped))

    def _check_same_job(self, context: Context) -> None:
        """Raise where the stop before this task was of another job than this task's fields.

        They are templates, and a task of a mapped group may have got another job since the stop.
        """
        stopped: Mapping[str, Any] = self.stopped if isinstance(self.stopped, Mapping) else {}
        stop = stopped.get("request_id")
        if not self.stop_task_id or stop in {None, self.request_id}:
            return
        if _state_of(context, self.stop_task_id) != "success":
            return
        raise HandoverError(
            f"task {self.task_id}: it is to roll back {self.request_id!r}, and {self.stop_task_id} "
            f"before it has made the stop {stop!r}: the tasks of this run were cleared in part, "
            f"and got another job meanwhile. Nothing was rolled back. Start a new run of the DAG, "
            f"which takes the stop over once this run has ended; or lift the fence of {stop!r} "
            f"(`airflow-mm2-offsets fence lift`) and start its job on the source"
        )

    def _find_unproved(self, context: Context) -> str | None:
        """Return why the result of the stop of a job without a control location counts no more.

        The job may run by now: started by an earlier roll-back of this run, or by a user.
        """
        if given(self.control) or not self._has_result():
            return None
        if (task_id := self.stop_task_id) and (state := _state_of(context, task_id)) != "success":
            return f"{task_id} is {state or 'to run'} now, and its result is of an earlier try"
        checkpoint = storage_path(self.checkpoint)
        is_lost = why_lost(checkpoint) is not None
        return find_missing_proof(self.stopped, self.request_id, checkpoint, is_lost=is_lost)

    def _tidy_up(self, undone: Undone) -> None:
        """Set the plan aside and release the lock; the job itself is not held up by either."""
        problems = [*undone.problems]
        try:
            for kept in filter(given, (self.plan_path, self.forecast_path)):
                if undone.mark:
                    set_plan_aside(storage_path(str(kept)))
            places = places_of(
                checkpoint=self.checkpoint,
                target_checkpoint=self.target_checkpoint,
                locks=self.locks,
            )
            release_lock(places, self.request_id, source_may_be_gone=True)
        except Mm2OffsetsError as error:
            problems.append(str(error))
        for problem in problems:
            self.log.warning("Not tidied up: %s", problem)

    def _restart(self, context: Context, undone: Undone) -> dict[str, Any] | None:
        """Trigger the job's DAG for the source, unless the job was started since."""
        assert undone.mark is not None  # noqa: S101 - the caller has seen it
        stamp = "".join(each for each in undone.mark.at.partition("+")[0] if each.isalnum())
        run_id = f"{self.restart_run_id}_{stamp}"
        sentence = f"The run {run_id} of DAG {self.trigger_dag_id} starts the job on the source."
        if has_dag_run(context, self.trigger_dag_id, run_id):
            return self._say(context, "rolled_back", "restarted", sentence, run_id)
        if undone.was_started_since:
            already = "The job was started on the source since: it is not started twice."
            return self._say(context, "rolled_back", "runs", already)
        with _telling_not_restarted():
            self._check_not_moved()
            if problems := find_dag_problems(context, self.trigger_dag_id):
                raise NotReadyError(
                    f"{'; '.join(problems)}. Then clear this task, or start the job yourself"
                )
            conf = complete_restart_conf(context, self.restart_conf, self.checkpoint)
        self.trigger_run_id = run_id
        self.conf = with_output(conf, self.restart_output)
        # Triggering ends the task, and what it returns is lost.
        answer = self._say(context, "rolled_back", "restarted", sentence, run_id)
        context["ti"].xcom_push(key="return_value", value=answer)
        super().execute(context)
        return answer

    def _check_not_moved(self) -> None:
        """Raise where another run works on the job, or has moved it: two jobs would run.

        This task may be cleared long after the roll-back.
        """
        checkpoint = storage_path(self.checkpoint)
        control = given(self.control)
        fence = read_fence(storage_path(control)) if control else None
        if fence is not None:
            raise HandoverError(
                f"{self.control}: {fence}. See that run; if it has failed, let it roll back"
            )
        check_unlocked(checkpoint, self.request_id)

    def _describe(self, undone: Undone, unproved: str | None) -> tuple[str, str, str]:
        if undone.mark is None:
            why = f" The stop counts no more: {unproved}." if unproved else ""
            return "nothing_to_undo", "untouched", f"There was nothing to undo.{why}"
        if undone.job_runs_on:
            return "rolled_back", "runs", "The stop was withdrawn before the job had stopped."
        if undone.was_started_since:
            return "rolled_back", "runs", "The job was started on the source since."
        return (
            "rolled_back",
            "stopped",
            (
                f"The job has stopped and may run again on the source: {self._how_to_start()}; "
                f"it continues where it stopped."
            ),
        )

    def _how_to_start(self) -> str:
        if self.trigger_dag_id:
            return f"trigger {self.trigger_dag_id} with its folder there"
        return "this failover does not restart it: start it on its platform with its checkpoint"

    def _lost_fence(self) -> str:
        return (
            f"The control location did not answer. When it is back, a fence of this run may stand "
            f"there, and no driver of the job would run: `airflow-mm2-offsets fence show "
            f"{self.control}`; lift it by `airflow-mm2-offsets fence lift {self.control} "
            f"--request-id '{self.request_id}'` before the job is started on the source."
        )

    def _how_to_go_on(self) -> str:
        return (
            "Nothing was undone. Correct what the failed task names, and clear it to go on; or "
            "give the failover up: lift the fence (airflow-mm2-offsets fence lift), and start the "
            "job on the source again. Until then no driver of the job runs there."
        )

    def _say(
        self, context: Context, done: str, job: str, sentence: str, run_id: str | None = None
    ) -> dict[str, Any]:
        self.log.info("%s", sentence)
        context["ti"].xcom_push(key="summary", value=sentence)
        return {
            "schema_version": 1,
            "done": done,
            "job": job,
            "restart_run_id": run_id,
            "next": sentence,
        }


@contextmanager
def _telling_not_restarted() -> Iterator[None]:
    """Let each error say how far the roll-back has come: the job stands still on the source."""
    try:
        yield
    except Mm2OffsetsError as error:
        message = f"the failover was rolled back, but the job was not restarted: {error}"
        raise as_class(type(error), error, message) from error


def _state_of(context: Context, task_id: str) -> str | None:
    """Return the state of a task for the same job."""
    instance: Any = context["ti"]
    return states_of(instance, [task_id]).get((task_id, instance.map_index))
