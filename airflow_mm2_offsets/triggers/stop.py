"""The wait for the proof that a Spark job has stopped; ``StopSparkStreamingOperator`` uses it."""

from collections.abc import Mapping
from typing import Any, ClassVar

from asgiref.sync import sync_to_async

from airflow_mm2_offsets.core.policy import parse_policy
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.move import Mover
from airflow_mm2_offsets.moves.stop_watch import StopRules, StopWatch
from airflow_mm2_offsets.moves.stopping import Withdrawal, withdraw
from airflow_mm2_offsets.spark.control import StopProof
from airflow_mm2_offsets.triggers.polling import Done, NotYet, PollingTrigger


def withdrawal_line(mover: Mover, request_id: str) -> str:
    """Withdraw a stop that has no proof; return the outcome as a line for the log."""
    try:
        outcome = withdraw(mover, request_id)
    except Mm2OffsetsError as error:
        return f"The stop of {mover.job.name} can't be withdrawn, so it may stop later: {error}"
    if outcome is Withdrawal.WITHDRAWN:
        return (
            f"The stop of {mover.job.name} is withdrawn: the job runs on, and was not moved. If "
            f"its driver has died or was killed, start it again"
        )
    return (
        f"The stop of {mover.job.name} can't be withdrawn: the job HAS stopped, or is about to, "
        f"and must not start. Clear the task to move it on"
    )


class SparkStoppedTrigger(PollingTrigger):
    """Waits until ``StopWatch`` has the proof.

    Args:
        job: The job, as ``SparkJob.to_json`` has it.
        run_name: The run that stops it, as the journal has it.
        policy: The policy's name.
        folder: The home that the job is stopped at.
        request_id: The stop.
        quiet_period: See ``StopRules``, as for all that follow.
    """

    wait_for = "the proof that the Spark job has stopped"
    settings: ClassVar[tuple[str, ...]] = (
        *("job", "run_name", "policy", "folder", "request_id"),
        *("quiet_period", "heartbeat_timeout", "proof_if_silent"),
    )

    def __init__(
        self,
        *,
        job: Mapping[str, Any],
        run_name: str,
        policy: str,
        folder: str,
        request_id: str,
        quiet_period: float,
        heartbeat_timeout: float | None = None,
        proof_if_silent: str = StopProof.SILENT,
        **times: float,
    ) -> None:
        """Keep the settings."""
        super().__init__(**times)
        self.job = job
        self.run_name = run_name
        self.policy = policy
        self.folder = folder
        self.request_id = request_id
        self.quiet_period = quiet_period
        self.heartbeat_timeout = heartbeat_timeout
        self.proof_if_silent = str(proof_if_silent)
        self._watch: StopWatch | None = None

    async def on_kill(self) -> None:
        """Withdraw the stop: a user marked or cleared the task before there was a proof."""
        withdraw = sync_to_async(withdrawal_line, thread_sensitive=False)
        line = await withdraw(self._mover(), self.request_id)
        self.log.warning("%s", line)

    def poll(self) -> Done | NotYet:
        """Look at answer, heartbeat and checkpoint."""
        self._watch = self._watch or self._new_watch()
        found = self._watch.look()
        return NotYet(reason=found) if isinstance(found, str) else Done(result=found)

    def _mover(self) -> Mover:
        return Mover(
            SparkJob.from_json(self.job), self.run_name, parse_policy(self.policy), storage_path
        )

    def _new_watch(self) -> StopWatch:
        mover = self._mover()
        return StopWatch(
            home=mover.job.home_of(self.folder),
            request_id=self.request_id,
            rules=StopRules(
                quiet_period=self.quiet_period,
                heartbeat_timeout=self.heartbeat_timeout,
                proof_if_silent=StopProof(self.proof_if_silent),
                checkpoint_may_be_lost=mover.policy.source_may_be_lost,
            ),
            open_path=storage_path,
            interval=self.poll_interval,
        )
