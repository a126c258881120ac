"""Waits for the proof that a Spark job has stopped."""

import time
from typing import Any

from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.spark.checkpoint import ListedFile, listing
from airflow_mm2_offsets.spark.control import Acknowledgement, read_acknowledgement, read_driver
from airflow_mm2_offsets.triggers.polling import Over, PollingTrigger, Waiting


class SparkStoppedTrigger(PollingTrigger):
    """Waits for the acknowledgement, then until driver and checkpoint have stood still.

    Args:
        control: The job's control location.
        checkpoint: The job's checkpoint location.
        request_id: The request that must be acknowledged.
        still_for: Seconds for which heartbeat and checkpoint must not change.
    """

    wait_for = "the proof that the Spark job has stopped"

    def __init__(
        self, *, control: str, checkpoint: str, request_id: str, still_for: float, **times: float
    ) -> None:
        """Keep the settings."""
        super().__init__(**times)
        self.control = control
        self.checkpoint = checkpoint
        self.request_id = request_id
        self.still_for = still_for
        self._seen: tuple[int, frozenset[ListedFile]] | None = None
        self._since = 0.0

    def settings(self) -> dict[str, Any]:
        """Return the arguments for Airflow's database."""
        return {
            "control": self.control,
            "checkpoint": self.checkpoint,
            "request_id": self.request_id,
            "still_for": self.still_for,
        }

    def poll(self) -> Over | Waiting:
        """Look at acknowledgement, heartbeat and checkpoint."""
        driver = read_driver(storage_path(self.control))
        answer = read_acknowledgement(storage_path(self.control), self.request_id)
        beat = driver.heartbeat if driver else 0
        if answer is None:
            where = (
                f"driver {driver.host}:{driver.pid}, heartbeat {beat}" if driver else "no driver"
            )
            return Waiting(
                reason=f"{self.control} holds no acknowledgement of {self.request_id} ({where}); "
                f"does the job run, and under StopControl with this control location?"
            )
        seen = (beat, listing(storage_path(self.checkpoint)))
        if seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        if (still := time.monotonic() - self._since) < self.still_for:
            return Waiting(
                reason=f"acknowledged; heartbeat ({beat}) and checkpoint have stood still for "
                f"{still:.0f} of {self.still_for:.0f} s"
            )
        return Over(result=_result(answer))


def _result(answer: Acknowledgement) -> dict[str, Any]:
    return {
        "request_id": answer.request_id,
        "application_id": answer.application_id,
        "batch_id": answer.batch_id,
        "clean": answer.clean,
        "error": answer.error,
    }
