"""The step that stops the source job and proves that it has stopped."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.hooks.spark_kill import SparkKillHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import STOPS, page_links
from airflow_mm2_offsets.operators.locking import forget_roll_back, take_lock
from airflow_mm2_offsets.operators.polling import DeferrablePolling
from airflow_mm2_offsets.operators.settings import check_location, is_true
from airflow_mm2_offsets.operators.stop_by_word import take_word
from airflow_mm2_offsets.operators.stop_times import check_times
from airflow_mm2_offsets.spark.closing import close_request
from airflow_mm2_offsets.spark.control import StopProof, read_driver
from airflow_mm2_offsets.spark.fence import new_fence
from airflow_mm2_offsets.spark.lost_storage import why_lost
from airflow_mm2_offsets.spark.originals import check_before_stop
from airflow_mm2_offsets.spark.rollback import FailoverRun, check_not_handed_over
from airflow_mm2_offsets.spark.stopping import begin_stop, check_not_withdrawn
from airflow_mm2_offsets.triggers.stop import SparkStoppedTrigger, job_locations, withdraw

UNSEEN_END_SECONDS = 60.0
"""What a cluster may take to carry out a kill: Kubernetes leaves a pod 30 s by default."""


class StopSparkStreamingOperator(DeferrablePolling):
    """Asks a Spark job to stop between batches, and waits for the proof that it has.

    The proof is the answer of a job that runs under ``StopControl``
    (``airflow_mm2_offsets.job``), together with a heartbeat and a checkpoint that no longer
    change. The answer must agree with the checkpoint. A retry does not ask again; it continues to
    wait.

    Before it asks, it raises a fence in the control location: from then on no driver of the job
    starts there until the fence is lifted. A stop that ends without a proof (an error, the timeout,
    a kill of the task) is withdrawn with its fence, and the job runs on.

    A driver that has died can't answer. ``heartbeat_timeout`` accepts its silence instead, and
    ``kill_after`` ends a driver that does not stop. Both leave the running batch pending: the
    target job writes its records again. A job without stop control can only be killed: leave out
    ``control``.

    Args:
        checkpoint: The job's checkpoint location.
        control: The job's control location; None for a job without stop control.
        request_id: Names this stop; by default the ids of DAG and run.
        moved_to: Where the job goes, for the messages about the fence.
        quiet_period: Seconds for which heartbeat and checkpoint must not change; at least three of
            the job's heartbeats, if it says how often it beats.
        heartbeat_timeout: Seconds without such a change after which a driver that has not answered
            counts as dead; None: never. Give more than any pause of a driver that lives, and less
            than ``kill_after``, or else ``timeout``. May be a templated string.
        kill_after: Seconds after which a driver is killed that has not stopped, or can't be asked;
            None: never. May be a templated string.
        spark_conn_id: Id of the connection that the job was submitted with; it says how to kill.
        driver_id: What the cluster calls the driver, where the control location does not say it:
            an application of YARN, ``namespace:pod``, or ``driver-...`` of a standalone cluster.
        spark_control: The control location as Spark names it. Give it only where Airflow reaches
            the same folder by another name, such as a mount, and the job can't answer any more.
        spark_checkpoint: The same of the checkpoint location.
        target_checkpoint: In a failover: where the target job is to keep its checkpoint. Without
            ``control``, or with ``locks``, the stop then locks both checkpoints for the run;
            ``ReportFailoverOperator`` releases the lock.
        mode: The mode of the failover, for the lock. In a ``disaster`` the checkpoint may be gone:
            then the control location alone proves the stop.
        locks: A folder of locks that outlives the source's storage; None: there is none.
        source_is_gone: Your word that no driver of the job runs, and that none will be started on
            the source. It counts only where the job's folder can't be reached: then no stop can be
            requested and no fence raised. May be a templated string.
        timeout: Seconds to wait at most; after a kill, from there on.
        poll_interval: Seconds between two looks.
        deferrable: Wait in the triggerer; None: as ``[operators] default_deferrable`` says.

    Returns:
        ``request_id``, ``application_id``, ``batch_id`` (the last one that the job says it
        committed), ``clean`` (stopped between batches), ``error`` (why the query had failed, if
        it had) and ``proof``: acknowledged, ended, silent, killed or asserted. Asserted, it has
        ``next``, too: the command that raises the fence later. Without ``control`` it has
        ``checkpoint_files``, a digest that the hand-over compares.

    Raises:
        HandoverError: This run has handed the job over before, and its fence was lifted since.
        StopError: The proof did not come in time, or differs from the checkpoint; another run
            moves the job, or has; the control location can't be used, or the driver killed.
        ConfigurationError: Neither ``control`` nor ``kill_after`` is given, or a duration is
            invalid or can never elapse.
    """

    operator_extra_links = page_links("run", job=STOPS)
    template_fields: Sequence[str] = (
        "control",
        "checkpoint",
        "request_id",
        "moved_to",
        "heartbeat_timeout",
        "kill_after",
        "spark_conn_id",
        "driver_id",
        "spark_control",
        "spark_checkpoint",
        *("source_is_gone", "target_checkpoint", "mode", "locks"),
    )
    wait_for = SparkStoppedTrigger.wait_for
    error = StopError
    trigger_class: ClassVar[type[SparkStoppedTrigger]] = SparkStoppedTrigger

    def __init__(
        self,
        *,
        checkpoint: str,
        control: str | None = None,
        request_id: str = "{{ dag.dag_id }}:{{ run_id }}",
        moved_to: str = "",
        quiet_period: float = 6.0,
        heartbeat_timeout: float | str | None = None,
        kill_after: float | str | None = None,
        spark_conn_id: str = "spark_default",
        driver_id: str | None = None,
        spark_control: str | None = None,
        spark_checkpoint: str | None = None,
        source_is_gone: bool | str = False,
        target_checkpoint: str | None = None,
        mode: str = FailoverMode.PLANNED.value,
        locks: str | None = None,
        timeout: float = 600.0,
        poll_interval: float = 2.0,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.timeout = timeout
        self.poll_interval = poll_interval
        self.control = control
        self.checkpoint = checkpoint
        self.request_id = request_id
        self.moved_to = moved_to
        self.quiet_period = quiet_period
        self.heartbeat_timeout = heartbeat_timeout
        self.kill_after = kill_after
        self.spark_conn_id = spark_conn_id
        self.driver_id = driver_id
        self.spark_control = spark_control
        self.spark_checkpoint = spark_checkpoint
        self.source_is_gone = source_is_gone
        self.target_checkpoint = target_checkpoint
        self.mode = mode
        self.locks = locks

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Ask, and wait for the proof."""
        heartbeat_timeout, kill_after = self.parse_settings()
        is_gone = is_true(self, "source_is_gone")
        lost = why_lost(storage_path(self.control or self.checkpoint)) if is_gone else None
        if not lost:
            self._check_not_handed_over()
        for problem in take_lock(self, source_may_be_gone=is_gone):
            self.log.warning("%s", problem)
        forget_roll_back(self.target_checkpoint, self.request_id)
        if lost:
            return take_word(self, lost)
        if self.control is None:
            heartbeat_timeout = None  # only a kill proves the end of a job without stop control
        else:
            check_before_stop(job_locations(self), self.request_id)
            begin_stop(storage_path(self.control), new_fence(self.request_id, self.moved_to))
        with self._withdrawal_on_error():
            return self._wait(
                context,
                heartbeat_timeout,
                timeout=kill_after,
                method_name="execute_complete" if kill_after is None else "kill_then_wait",
            )

    def parse_settings(self) -> tuple[float | None, float | None]:
        """Return ``heartbeat_timeout`` and ``kill_after``, and check the other settings.

        Raises:
            ConfigurationError: One is invalid, or the stop could never be proved.
        """
        for field in ("timeout", "poll_interval", "quiet_period"):
            self.check_number(field)
        check_location(self, "locks")
        times = self.seconds("heartbeat_timeout"), self.seconds("kill_after")
        self.check_times(*times)
        return times

    @property
    def checkpoint_may_be_lost(self) -> bool:
        """Whether this is a disaster, in which the checkpoint's storage may be gone."""
        return self.mode == FailoverMode.DISASTER

    def _check_not_handed_over(self) -> None:
        """Raise where this run has moved the job before, and the job may have come home since."""
        if self.control is not None and self.target_checkpoint:
            check_not_handed_over(
                FailoverRun(
                    request_id=self.request_id,
                    control=storage_path(self.control),
                    target_checkpoint=storage_path(self.target_checkpoint),
                )
            )

    def check_times(self, heartbeat_timeout: float | None, kill_after: float | None) -> None:
        """Raise ConfigurationError where the stop could never be proved; see ``stop_times``."""
        check_times(
            self.task_id,
            can_be_asked=self.control is not None,
            heartbeat_timeout=heartbeat_timeout,
            kill_after=kill_after,
            timeout=self.timeout,
        )

    def on_kill(self) -> None:
        """Withdraw the stop: the job runs on."""
        if self.control is not None:
            self.log.warning("%s", withdraw(self))

    def kill_then_wait(
        self, context: Mapping[str, Any], event: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the proof, or kill a driver that gave no proof in time, and wait again."""
        if "timeout" not in event:
            return self.execute_complete(context, event)
        self.log.warning("Not stopped after %s s: %s", self.kill_after, event["timeout"])
        end_is_seen = self._kill()
        return self._wait(
            context,
            self.quiet_period if end_is_seen else max(self.quiet_period, UNSEEN_END_SECONDS),
            proof_if_silent=StopProof.KILLED.value,
        )

    def execute_complete(
        self, context: Mapping[str, Any], event: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the proof; write ``stopped.json`` in place of a job that has not answered.

        A driver that was only paused finds this answer when it wakes, and runs no further batch.
        The hand-over reads from the file which checkpoint was proved.
        """
        result = super().execute_complete(context, event)
        if self.control is not None:
            close_request(
                storage_path(self.control),
                self.request_id,
                StopProof(result["proof"]),
                checkpoint=storage_path(self.checkpoint),
            )
        return result

    @fails_at_once()
    def resume_execution(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - Airflow's
        """Go on after a wait in the triggerer.

        When Airflow's own limit of the wait has passed, it calls only this method.
        """
        with self._withdrawal_on_error():
            return super().resume_execution(*arguments, **named)

    @contextmanager
    def _withdrawal_on_error(self) -> Iterator[None]:
        """Withdraw the stop where an error comes before the proof."""
        try:
            yield
        except Exception:
            self.on_kill()
            raise

    def _kill(self) -> bool:
        """Kill the driver, and tell whether the cluster has confirmed its end."""
        driver = None
        if self.control is not None:
            # Since the trigger's last look, minutes may have passed without a free worker.
            check_not_withdrawn(storage_path(self.control), self.request_id)
            driver = read_driver(storage_path(self.control))
        if driver is not None:
            locations = job_locations(self)
            if problem := locations.control_problem(driver) or locations.note_problem(driver):
                raise StopError(f"nothing was killed: {problem}")
        return SparkKillHook(self.spark_conn_id).kill(driver, self.driver_id)

    def _wait(
        self,
        context: Mapping[str, Any],
        heartbeat_timeout: float | None,
        *,
        timeout: float | None = None,
        method_name: str = "execute_complete",
        **settings: Any,
    ) -> dict[str, Any]:
        """Wait for the proof, and go on with the method."""
        trigger = self.trigger_class(
            control=self.control,
            checkpoint=self.checkpoint,
            request_id=self.request_id,
            spark_control=self.spark_control,
            spark_checkpoint=self.spark_checkpoint,
            checkpoint_may_be_lost=self.checkpoint_may_be_lost,
            quiet_period=self.quiet_period,
            heartbeat_timeout=heartbeat_timeout,
            deadline=time.time() + (self.timeout if timeout is None else timeout),
            poll_interval=self.poll_interval,
            **settings,
        )
        if self.deferrable:
            self.wait_in_triggerer(trigger, method_name)
        proof: dict[str, Any] = getattr(self, method_name)(context, trigger.wait())
        return proof
