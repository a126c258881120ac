"""Waits for the proof that a Spark job has stopped."""

import time
from typing import Any

from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.spark.checkpoint import ListedFile, listing
from airflow_mm2_offsets.spark.control import (
    Acknowledgement,
    Driver,
    Proof,
    read_acknowledgement,
    read_driver,
)
from airflow_mm2_offsets.triggers.polling import Over, PollingTrigger, Waiting


class SparkStoppedTrigger(PollingTrigger):
    """Waits for the acknowledgement, then until driver and checkpoint have stood still.

    Args:
        control: The job's control location; None for a job without stop control.
        checkpoint: The job's checkpoint location.
        request_id: The request that must be acknowledged.
        still_for: Seconds for which heartbeat and checkpoint must not change.
        gone_after: The same for a driver that has not acknowledged, and is then taken for gone;
            None: it never is.
        unanswered: What proves the end of such a driver, as ``Proof`` has it.
    """

    wait_for = "the proof that the Spark job has stopped"

    def __init__(
        self,
        *,
        control: str | None,
        checkpoint: str,
        request_id: str,
        still_for: float,
        gone_after: float | None = None,
        unanswered: str = Proof.SILENT,
        **times: float,
    ) -> None:
        """Keep the settings."""
        super().__init__(**times)
        self.control = control
        self.checkpoint = checkpoint
        self.request_id = request_id
        self.still_for = still_for
        self.gone_after = gone_after
        self.unanswered = unanswered
        self._seen: tuple[object, ...] = ()
        self._since = 0.0

    def settings(self) -> dict[str, Any]:
        """Return the arguments for Airflow's database."""
        return {
            "control": self.control,
            "checkpoint": self.checkpoint,
            "request_id": self.request_id,
            "still_for": self.still_for,
            "gone_after": self.gone_after,
            "unanswered": str(self.unanswered),
        }

    def poll(self) -> Over | Waiting:
        """Look at acknowledgement, heartbeat and checkpoint."""
        driver, answer = self._read_control()
        still = self._still(driver, answer, listing(storage_path(self.checkpoint)))
        needed = self.gone_after if answer is None else self.still_for
        if needed is not None and still >= needed:
            return Over(result=self._result(driver, answer))
        beat = f"heartbeat {driver.heartbeat}" if driver else "no driver"
        stillness = f"heartbeat and checkpoint have stood still for {still:.0f}"
        if answer is not None:
            return Waiting(
                reason=f"acknowledged; {stillness} of {needed:.0f} s (driver "
                f"{answer.application_id}, {beat})"
            )
        if needed is not None:
            stillness += f" of {needed:.0f}"
        where = f"driver {driver.host}:{driver.pid}, {beat}" if driver else beat
        return Waiting(
            reason=f"{self.control or self.checkpoint} holds no acknowledgement of "
            f"{self.request_id} ({where}), {stillness} s; does the job run, and under StopControl "
            f"with this control location?"
        )

    def _read_control(self) -> tuple[Driver | None, Acknowledgement | None]:
        if self.control is None:
            return None, None
        place = storage_path(self.control)
        # The driver first: a later heartbeat begins the stillness anew.
        return read_driver(place), read_acknowledgement(place, self.request_id)

    def _still(
        self,
        driver: Driver | None,
        answer: Acknowledgement | None,
        files: frozenset[ListedFile],
    ) -> float:
        """Return for how many seconds nothing has changed."""
        seen = (driver and (driver.run_id, driver.heartbeat), answer is None, files)
        if seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        return time.monotonic() - self._since

    def _result(self, driver: Driver | None, answer: Acknowledgement | None) -> dict[str, Any]:
        return {
            "request_id": self.request_id,
            "application_id": getattr(answer or driver, "application_id", None),
            "batch_id": answer and answer.batch_id,
            "clean": answer is not None and answer.clean,
            "error": answer and answer.error,
            "proof": str(answer.proof if answer else self.unanswered),
        }
