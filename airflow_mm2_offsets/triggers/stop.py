"""The wait for the proof that a Spark job has stopped; ``StopSparkStreamingOperator`` uses it."""

import time
from typing import Any, ClassVar, Protocol

from asgiref.sync import sync_to_async

from airflow_mm2_offsets.errors import CheckpointError, Mm2OffsetsError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.spark.answers import check_answer, check_ended
from airflow_mm2_offsets.spark.checkpoint import ListedFile, listing
from airflow_mm2_offsets.spark.control import (
    Acknowledgement,
    Driver,
    StopProof,
    read_driver,
    read_last_acknowledgement,
)
from airflow_mm2_offsets.spark.lost_storage import why_lost
from airflow_mm2_offsets.spark.originals import JobLocations, check_stopped
from airflow_mm2_offsets.spark.stop_proof import FILES, digest_of
from airflow_mm2_offsets.spark.stopping import (
    Withdrawal,
    check_not_withdrawn,
    keep_asking,
    withdraw_request,
)
from airflow_mm2_offsets.triggers.polling import Done, NotYet, PollingTrigger


class StopSettings(Protocol):
    """The settings that the operators and the trigger of a stop have in common."""

    control: str | None
    checkpoint: str
    request_id: str
    spark_control: str | None
    spark_checkpoint: str | None

    @property
    def checkpoint_may_be_lost(self) -> bool:
        """Whether this is a disaster, in which the checkpoint's storage may be gone."""


def job_locations(stop: StopSettings) -> JobLocations:
    """Return the folders of a job that has a control location."""
    checkpoint = storage_path(stop.checkpoint)
    return JobLocations(
        control=storage_path(str(stop.control)),
        checkpoint=checkpoint,
        spark_control=stop.spark_control,
        spark_checkpoint=stop.spark_checkpoint,
        checkpoint_is_lost=stop.checkpoint_may_be_lost and why_lost(checkpoint) is not None,
    )


def withdraw(stop: StopSettings) -> str:
    """Withdraw a stop that has no proof; return the outcome as a line for the log."""
    control = storage_path(str(stop.control))
    try:
        withdrawal = withdraw_request(control, stop.request_id)
    except Mm2OffsetsError as error:
        return (
            f"The stop {stop.request_id!r} can't be withdrawn, so the job may stop later: {error}. "
            f"Then: airflow-mm2-offsets fence lift {control} --request-id '{stop.request_id}'"
        )
    if withdrawal is Withdrawal.WITHDRAWN:
        return (
            f"The stop {stop.request_id!r} is withdrawn: the job runs on, and was not "
            f"moved. If its driver has died or was killed, start it again"
        )
    return (
        f"The stop {stop.request_id!r} can't be withdrawn: the job HAS stopped, or is about to, "
        f"and its fence stands, so it does not run. Clear the task or start another failover to "
        f"move it; to let it run here again: airflow-mm2-offsets fence lift {control} --request-id "
        f"'{stop.request_id}'"
    )


class SparkStoppedTrigger(PollingTrigger):
    """Waits for the acknowledgement, then until driver and checkpoint no longer change.

    The answer to an earlier stop counts too, if no driver has run since. So does a job whose
    queries have ended by themselves: the fence keeps the next run from starting. The trigger
    compares the answer with the checkpoint, and both locations with those that the job wrote down.

    No wait is shorter than the driver's own times: a stopped driver must miss several heartbeats,
    and the lease of a driver without connection must have run out.

    Args:
        control: The job's control location; None for a job without stop control.
        checkpoint: The job's checkpoint location.
        request_id: The request that must be acknowledged.
        quiet_period: Seconds for which heartbeat and checkpoint must not change.
        heartbeat_timeout: The same for a driver that has not answered and then counts as dead;
            None: never.
        proof_if_silent: The ``StopProof`` of the end of such a driver.
        spark_control: The control location as Spark names it, where that differs.
        spark_checkpoint: The checkpoint location as Spark names it, where that differs.
        checkpoint_may_be_lost: In a disaster: the proof does without a checkpoint that is gone.
    """

    wait_for = "the proof that the Spark job has stopped"
    settings: ClassVar[tuple[str, ...]] = (
        *("control", "checkpoint", "request_id", "quiet_period", "heartbeat_timeout"),
        *("proof_if_silent", "spark_control", "spark_checkpoint", "checkpoint_may_be_lost"),
    )

    def __init__(
        self,
        *,
        control: str | None,
        checkpoint: str,
        request_id: str,
        quiet_period: float,
        heartbeat_timeout: float | None = None,
        proof_if_silent: str = StopProof.SILENT,
        spark_control: str | None = None,
        spark_checkpoint: str | None = None,
        checkpoint_may_be_lost: bool = False,
        **times: float,
    ) -> None:
        """Keep the settings."""
        super().__init__(**times)
        self.control = control
        self.checkpoint = checkpoint
        self.request_id = request_id
        self.quiet_period = quiet_period
        self.heartbeat_timeout = heartbeat_timeout
        self.proof_if_silent = str(proof_if_silent)
        self.spark_control = spark_control
        self.spark_checkpoint = spark_checkpoint
        self.checkpoint_may_be_lost = checkpoint_may_be_lost
        self._last_state: tuple[object, ...] = ()
        self._unchanged_since = 0.0

    async def on_kill(self) -> None:
        """Withdraw the stop: a user marked or cleared the task before there was a proof."""
        if self.control is not None:
            self.log.warning("%s", await sync_to_async(withdraw, thread_sensitive=False)(self))

    def poll(self) -> Done | NotYet:
        """Look at acknowledgement, heartbeat and checkpoint."""
        driver, answer = self._read_control()
        files = self._files()
        unchanged = self._unchanged_seconds(driver, answer, files)
        required = self._required_seconds(driver, answer)
        if required is not None and unchanged >= required:
            self._check_proof(driver, answer)
            # Without a control location nothing else tells that the job was started again.
            proved = {FILES: digest_of(files)} if self.control is None else {}
            return Done(result={**self._result(driver, answer), **proved})
        if self.control is not None and answer is None:
            keep_asking(storage_path(self.control), self.request_id, self.poll_interval)
        return NotYet(reason=self._missing(driver, answer, unchanged, required))

    def _check_proof(self, driver: Driver | None, answer: Acknowledgement | None) -> None:
        """Raise if the proof is of another job, or of a copy of this job's folders."""
        if self.control is None:
            return
        locations = job_locations(self)
        agrees = False
        if not locations.checkpoint_is_lost:
            if driver is not None:
                check_ended(driver, locations.checkpoint)
            agrees = answer is not None and check_answer(answer, locations.checkpoint)
        check_stopped(locations, self.request_id, driver, answer, agrees=agrees)

    def _files(self) -> frozenset[ListedFile]:
        """Return the files of the checkpoint; none where it is lost."""
        location = storage_path(self.checkpoint)
        try:
            return listing(location)
        except CheckpointError:
            if not (self.checkpoint_may_be_lost and why_lost(location)):
                raise
            return frozenset()

    def _missing(
        self,
        driver: Driver | None,
        answer: Acknowledgement | None,
        unchanged: float,
        required: float | None,
    ) -> str:
        seconds = f"{unchanged:.0f}" + ("" if required is None else f" of {required:.0f}")
        if self.control is None:
            return f"{self.checkpoint} has stood still for {seconds} s"
        beat = f"heartbeat {driver.heartbeat}" if driver else "no driver"
        stillness = f"heartbeat and checkpoint have stood still for {seconds} s"
        if answer is not None:
            return f"acknowledged; {stillness} (driver {answer.application_id}, {beat})"
        if driver is not None and driver.ended:
            return f"its queries have ended; {stillness} (driver {driver.application_id}, {beat})"
        where = f"driver {driver.host}:{driver.pid}, {beat}" if driver else beat
        return (
            f"{self.control} holds no acknowledgement of {self.request_id} ({where}), {stillness}; "
            f"does the job run, and under StopControl with this control location?"
        )

    def _required_seconds(
        self, driver: Driver | None, answer: Acknowledgement | None
    ) -> float | None:
        """Return for how many seconds nothing must change; None if silence proves nothing.

        With an acknowledgement it is the quiet period, and at least as long as a running driver
        may write no heartbeat.

        Without one it is the heartbeat timeout. If the driver wrote that all its queries have
        ended, the quiet period is enough. In both cases the driver's lease must be over: until
        then it may begin a batch.
        """
        if answer is not None:
            return max(self.quiet_period, driver.longest_silence if driver else 0.0)
        timeouts = [] if self.heartbeat_timeout is None else [self.heartbeat_timeout]
        if driver is not None and driver.ended:
            timeouts.append(self.quiet_period)
        # The driver may have renewed its lease up to one interval after its last heartbeat.
        until_lease_ends = driver.lease + driver.interval if driver else 0.0
        return max(min(timeouts), until_lease_ends) if timeouts else None

    def _read_control(self) -> tuple[Driver | None, Acknowledgement | None]:
        if self.control is None:
            return None, None
        control = storage_path(self.control)
        check_not_withdrawn(control, self.request_id)
        # The driver first: a later heartbeat starts the wait again.
        driver, answer = read_driver(control), read_last_acknowledgement(control)
        counts = answer is not None and answer.answers(self.request_id, driver)
        return driver, answer if counts else None

    def _unchanged_seconds(
        self,
        driver: Driver | None,
        answer: Acknowledgement | None,
        files: frozenset[ListedFile],
    ) -> float:
        """Return for how many seconds nothing has changed."""
        state = (driver and (driver.run_id, driver.heartbeat), answer is None, files)
        if state != self._last_state:
            self._last_state, self._unchanged_since = state, time.monotonic()
        return time.monotonic() - self._unchanged_since

    def _result(self, driver: Driver | None, answer: Acknowledgement | None) -> dict[str, Any]:
        return {
            "request_id": self.request_id,
            "application_id": getattr(answer or driver, "application_id", None),
            "batch_id": answer and answer.batch_id,
            "clean": answer is not None and answer.clean,
            "error": answer and answer.error,
            "proof": str(answer.proof if answer else self._proof(driver)),
        }

    def _proof(self, driver: Driver | None) -> str:
        return StopProof.ENDED if driver is not None and driver.ended else self.proof_if_silent
