"""The step that stops a job, proves that it has stopped, and reads where."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.core.policy import PLANNED
from airflow_mm2_offsets.errors import ConfigurationError, StopError
from airflow_mm2_offsets.hooks.spark_kill import SparkKillHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.folders import JobFolders, check_before_stop
from airflow_mm2_offsets.moves.handover import has_not_begun
from airflow_mm2_offsets.moves.journal import Event
from airflow_mm2_offsets.moves.move import Move, Mover, job_here
from airflow_mm2_offsets.moves.stop_watch import LOST_BROKERS
from airflow_mm2_offsets.moves.stopping import answer_for, check_asked
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.moving import (
    AnyContext,
    JobArgument,
    MoveArgument,
    ask,
    find_users_word,
    job_of_task,
    job_to_template,
    mover_of,
    note_wait,
    record_proof,
    request_of,
    run_name,
    skip_in_dry_run,
    to_template,
)
from airflow_mm2_offsets.operators.polling import PollingTask
from airflow_mm2_offsets.operators.settings import given_positions
from airflow_mm2_offsets.operators.stop_times import check_times
from airflow_mm2_offsets.spark.control import StopProof, read_driver
from airflow_mm2_offsets.triggers.stop import SparkStoppedTrigger, withdrawal_line

UNSEEN_END_SECONDS = 60.0
"""What a cluster may take to carry out a kill: Kubernetes leaves a pod 30 s by default."""


class StopSparkStreamingOperator(PollingTask):
    """Asks a Spark job to stop between batches, and waits for the proof that it has.

    The proof is the answer of a job that runs under ``StopControl`` (``airflow_mm2_offsets.job``),
    together with a heartbeat and a checkpoint that no longer change. The answer must agree with the
    checkpoint. A retry does not ask again; it continues to wait.

    From the moment it asks, no driver of the job starts at its home. A stop that ends without a
    proof (an error, the timeout, a kill of the task) is withdrawn, and the job runs on.

    A driver that has died can't answer. The job's ``heartbeat_timeout`` accepts its silence
    instead, and ``kill_after`` ends a driver that does not stop. Both leave the running batch
    pending: the target job writes its records again.

    Give ``move`` as a step of a move, or ``job`` to stop a job alone.

    Args:
        move: What is moved, and how.
        job: A job, or its name in the file of jobs: it is stopped where its journal says that it
            is, and not moved.
        positions: In a disaster, where nothing else says so: where the job stands. Topic to
            partition to next offset, as a mapping or as Spark's JSON text; or a mapping of
            ``positions`` and ``as_of``, when it stood there: ISO 8601 with a zone, by default the
            time of this task.
        quiet_period: Seconds for which heartbeat and checkpoint must not change; at least three of
            the job's heartbeats, if it says how often it beats.
        timeout: Seconds to wait at most; after a kill, from there on. 600 by default.
        poll_interval: Seconds between two looks; 2 by default.

    Returns:
        The proof (``request_id``, ``application_id``, ``batch_id``, ``clean``, ``error``,
        ``proof``: acknowledged, ended, silent, killed or asserted), and what
        ``ReadSparkCheckpointOperator`` returns.

    Raises:
        LockedError: Another run moves the job.
        HandoverError: This run has handed the job over before, or the journal can't be used.
        StopError: The proof did not come in time, or differs from the checkpoint; the control
            location can't be used, or the driver killed.
        CheckpointError: The job has stopped, and its checkpoint can't be read.
        ConfigurationError: A setting is wrong, or a duration can never elapse.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = ("move", "job", "positions")
    wait_for = SparkStoppedTrigger.wait_for
    error = StopError
    trigger_class: ClassVar[type[SparkStoppedTrigger]] = SparkStoppedTrigger

    def __init__(
        self,
        *,
        move: MoveArgument | None = None,
        job: JobArgument | None = None,
        positions: Mapping[str, Any] | str | None = None,
        quiet_period: float = 6.0,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.move = to_template(move)
        self.job = job_to_template(job)
        self.positions = positions
        self.quiet_period = quiet_period
        self._asked: tuple[Mover, str] | None = None

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Ask, and wait for the proof."""
        mover = self._mover(context)
        heartbeat_timeout, kill_after = self.parse_settings(mover)
        own = mover.find()
        if own.is_handed_over:
            self.log.info(
                "This run has handed %s over to %s: it is not stopped", own.job.name, own.there
            )
            return dict(own.facts(Event.PROVE))
        before = mover.find_to_ask()
        if self.move is not None:
            intent = f"stop job {before.job.name} at {before.here}, and wait for the proof"
            skip_in_dry_run(self, context, intent)
        if self.move is not None and (by_word := find_users_word(request_of(self), before)):
            self.log.warning("%s", by_word)
            asserted = {"proof": StopProof.ASSERTED.value, "error": by_word}
            return self._prove(mover, ask(mover), asserted)
        if not has_not_begun(before, storage_path):
            check_before_stop(JobFolders.of(before.here, storage_path), before.request_id)
        move = ask(mover)
        if has_not_begun(move, storage_path):
            self.log.info("Nothing has begun at %s since the job was handed over", move.here)
            return self._prove(mover, move, {"proof": StopProof.NOT_BEGUN.value, "error": None})
        with self._withdrawal_on_error(mover, move.request_id):
            return self._wait(
                context,
                move,
                heartbeat_timeout,
                timeout=kill_after,
                method_name="execute_complete" if kill_after is None else "kill_then_wait",
            )

    def parse_settings(self, mover: Mover) -> tuple[float | None, float | None]:
        """Return ``heartbeat_timeout`` and ``kill_after``, and check the other settings.

        Raises:
            ConfigurationError: One is invalid, or the stop could never be proved.
        """
        for field in ("timeout", "poll_interval", "quiet_period"):
            self.check_number(field)
        given_positions(self)
        if not mover.job.is_controlled:
            raise ConfigurationError(
                f"task {self.task_id}: job {mover.job.name} has is_controlled=False, so it can't "
                f"be asked to stop; cancel it on its platform, and wait by SparkStoppedSensor"
            )
        times = silence_of(mover), mover.job.kill_after
        check_times(
            self.task_id,
            heartbeat_timeout=times[0],
            kill_after=times[1],
            timeout=self.timeout,
        )
        return times

    def execute_complete(
        self, context: Mapping[str, Any], event: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Record the proof, and read where the job has stopped."""
        proof = super().execute_complete(context, event)
        mover = self._mover(context)
        move = mover.find()
        answer_for(
            storage_path(move.here.control),
            move,
            StopProof(proof["proof"]),
            checkpoint=storage_path(move.here.checkpoint),
        )
        return self._prove(mover, move, proof)

    def kill_then_wait(
        self, context: Mapping[str, Any], event: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the proof, or kill a driver that gave no proof in time, and wait again."""
        if "timeout" not in event:
            return self.execute_complete(context, event)
        mover = self._mover(context)
        move = mover.find()
        self.log.warning("Not stopped after its time to answer: %s", event["timeout"])
        end_is_seen = self._kill(mover, move)
        return self._wait(
            context,
            move,
            self.quiet_period if end_is_seen else max(self.quiet_period, UNSEEN_END_SECONDS),
            proof_if_silent=StopProof.KILLED.value,
        )

    @fails_at_once()
    def resume_execution(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - Airflow's
        """Go on after a wait in the triggerer.

        When Airflow's own limit of the wait has passed, it calls only this method.
        """
        context = next(each for each in (*arguments, *named.values()) if "ti" in (each or {}))
        mover = self._mover(context)
        with self._withdrawal_on_error(mover, mover.find().request_id):
            return super().resume_execution(*arguments, **named)

    def on_kill(self) -> None:
        """Withdraw the stop: the job runs on."""
        if self._asked is not None:
            self.log.warning("%s", withdrawal_line(*self._asked))

    def _mover(self, context: AnyContext) -> Mover:
        if (self.move is None) == (self.job is None):
            both = "neither is given" if self.job is None else "both are given"
            raise ConfigurationError(f"task {self.task_id}: move or job: {both}; give one of them")
        if self.job is None:
            return mover_of(self, context)
        job = job_here(job_of_task(self), storage_path)
        return Mover(job, run_name(context), PLANNED, storage_path)

    def _prove(self, mover: Mover, move: Move, proof: Mapping[str, Any]) -> dict[str, Any]:
        """Read where the job has stopped, and record it with the proof."""
        facts = record_proof(mover, move, proof, positions=given_positions(self))
        self.log.info("Stopped at batch %s: %s", facts["committed_batch"], facts["proof"])
        return facts

    @contextmanager
    def _withdrawal_on_error(self, mover: Mover, request_id: str) -> Iterator[None]:
        """Withdraw the stop where an error comes before the proof, or Airflow ends the task."""
        self._asked = mover, request_id
        try:
            yield
        except Exception:
            self.on_kill()
            raise

    def _kill(self, mover: Mover, move: Move) -> bool:
        """Kill the driver, and tell whether the cluster has confirmed its end.

        The journal has the kill before it is made: whatever fails then, the job may not run.
        """
        folders = JobFolders.of(move.here, storage_path)
        # Since the trigger's last look, minutes may have passed without a free worker.
        check_asked(folders.control, move.request_id)
        driver = read_driver(folders.control)
        if driver is not None and (
            problem := folders.control_problem(driver) or folders.note_problem(driver)
        ):
            raise StopError(f"nothing was killed: {problem}")
        conn_id = move.here.spark_conn_id
        mover.record(move, Event.NOTE, ended_by=f"A kill by the connection {conn_id}")
        end_is_seen = SparkKillHook(conn_id).kill(driver)
        mover.record(move, Event.NOTE, has_ended=end_is_seen)
        return end_is_seen

    def _wait(
        self,
        context: Mapping[str, Any],
        move: Move,
        heartbeat_timeout: float | None,
        *,
        timeout: float | None = None,
        method_name: str = "execute_complete",
        **settings: Any,
    ) -> dict[str, Any]:
        """Wait for the proof, and go on with the method."""
        trigger = self.trigger_class(
            job=move.job.to_json(),
            run_name=move.run,
            policy=move.policy.name,
            folder=move.here.folder,
            request_id=move.request_id,
            quiet_period=self.quiet_period,
            heartbeat_timeout=heartbeat_timeout,
            deadline=time.time() + (self.timeout if timeout is None else timeout),
            poll_interval=self.poll_interval,
            **settings,
        )
        mover = self._mover(context)
        hint = f" ({LOST_BROKERS})" if move.policy.source_may_be_lost else ""
        note_wait(mover, f"{self.wait_for}{hint}", trigger.deadline, ends_with=Event.PROVE)
        if self.deferrable:
            self.wait_in_triggerer(trigger, method_name)
        proof: dict[str, Any] = getattr(self, method_name)(context, trigger.wait())
        return proof


def silence_of(mover: Mover) -> float | None:
    """Return the seconds of silence after which a job's driver counts as dead; None: never.

    Where the policy alone says so, and the driver is killed before that, the kill decides.
    """
    job, policy = mover.job, mover.policy
    if job.heartbeat_timeout is not None or policy.heartbeat_timeout is None:
        return job.heartbeat_timeout
    is_killed_before = job.kill_after is not None and job.kill_after <= policy.heartbeat_timeout
    return None if is_killed_before else policy.heartbeat_timeout
