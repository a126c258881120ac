"""The wait for the silence of a cancelled job's checkpoint; ``SparkStoppedSensor`` uses it."""

import time
from datetime import UTC, datetime
from typing import Any

from airflow_mm2_offsets.errors import ConfigurationError, StopError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.spark.cadence import Cadence, read_cadence
from airflow_mm2_offsets.spark.checkpoint import ListedFile, listing
from airflow_mm2_offsets.spark.control import StopProof
from airflow_mm2_offsets.spark.stop_proof import FILES, digest_of
from airflow_mm2_offsets.triggers.polling import Done, NotYet, PollingTrigger

MISSED_BATCHES = 3
"""How many of a job's longest recent gaps between batches silence must outlast."""


class CancelledJobTrigger(PollingTrigger):
    """Waits until the checkpoint of a cancelled job has not changed for long enough.

    Long enough is ``quiet_period``, and at least three times the longest of the last gaps between
    two batches: a job with a trigger of ten minutes is silent for ten minutes while it runs.

    Args:
        checkpoint: The job's checkpoint location.
        quiet_period: Seconds for which nothing must change.
        request_id: The run's stop.
        cancelled_by: What has cancelled the job, for the proof.
        trigger_interval: The user's word for the longest gap of a job that has records to read, in
            seconds; None: the checkpoint's own gaps count.
        cancelled_at: When the platform had cancelled the job, in seconds since 1970: no batch may
            have begun since, but for ``quiet_period``. None: it is not known, and not compared.
    """

    wait_for = "the checkpoint of the cancelled job to stand still"
    settings = (
        *("checkpoint", "quiet_period", "request_id", "cancelled_by"),
        *("trigger_interval", "cancelled_at"),
    )

    def __init__(
        self,
        *,
        checkpoint: str,
        quiet_period: float,
        request_id: str,
        cancelled_by: str,
        trigger_interval: float | None = None,
        cancelled_at: float | None = None,
        **times: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**times)
        self.checkpoint = checkpoint
        self.request_id = request_id
        self.quiet_period = quiet_period
        self.cancelled_by = cancelled_by
        self.trigger_interval = trigger_interval
        self.cancelled_at = cancelled_at
        self._unchanged_since = 0.0
        self._files_before: frozenset[ListedFile] | None = None
        self._changed: tuple[str, ...] = ()
        self._cadence = Cadence()

    def poll(self) -> Done | NotYet:
        """Look at the checkpoint."""
        files = self._listed()
        unchanged = time.monotonic() - self._unchanged_since
        required = self._required()
        if unchanged >= required:
            self._check_not_begun_since()
            return Done(result=self._proved(files, unchanged))
        where = f" ({', '.join(self._changed)} changed last)" if self._changed else ""
        return NotYet(
            reason=f"{self.checkpoint} has stood still for {unchanged:.0f} of {required:.0f} s"
            f"{where}: {self._why(required)}"
        )

    def _listed(self) -> frozenset[ListedFile]:
        """Return the checkpoint's files, and note which have changed."""
        files = listing(storage_path(self.checkpoint))
        before, self._files_before = self._files_before, files
        if files == before:
            return files
        self._unchanged_since = time.monotonic()
        if not any(_is_batch(file) for file in files):
            raise ConfigurationError(
                f"{self.checkpoint} holds no batch: its silence proves nothing; give the "
                f"checkpoint location of the job that was cancelled"
            )
        self._cadence = read_cadence(storage_path(self.checkpoint))
        if before is None:
            self._check_time_left()
        else:
            changed = {"/".join(file.path.split("/")[-2:]) for file in files ^ before}
            self._changed = tuple(sorted(changed))
        return files

    def _longest_gap(self) -> float:
        """Return the longest time between two batches of a job that has something to read.

        Gaps may have been an idle topic's, which a user knows. The shortest of them was not longer
        than the job's own interval, whatever the user says.
        """
        if self.trigger_interval is None:
            return self._cadence.longest
        return max(self.trigger_interval, self._cadence.shortest)

    def _check_not_begun_since(self) -> None:
        """Raise where the job has run since the cancel: another driver may run, and be idle.

        A cancel stops the drivers of its own time. The clocks of platform and Airflow may differ,
        and a driver may end its last batches: by ``quiet_period`` at most.
        """
        newest, cancelled_at = self._cadence.newest, self.cancelled_at
        if newest is None or cancelled_at is None or newest <= cancelled_at + self.quiet_period:
            return
        raise StopError(
            f"{self.checkpoint}: a batch was begun since the cancel, at {_utc(newest)}, and the "
            f"job was cancelled at {_utc(cancelled_at)} (quiet_period is {self.quiet_period:.0f} "
            f"s): clear the task that cancels (cancel_source), with all after it"
        )

    def _required(self) -> float:
        return max(self.quiet_period, MISSED_BATCHES * self._longest_gap())

    def _check_time_left(self) -> None:
        left, required = self.deadline - time.time(), self._required()
        if required > left:
            raise ConfigurationError(
                f"{self.checkpoint}: {self._why(required)}, and this wait ends in {left:.0f} s: "
                f"give a longer timeout; or trigger_interval, the longest time between two batches "
                f"while there are records to read, if the job's topics were idle"
            )

    def _why(self, required: float) -> str:
        if required <= self.quiet_period:
            return f"quiet_period is {self.quiet_period:.0f} s"
        gaps = len(self._cadence.gaps)
        named = (
            f"the longest of the last {gaps} gaps between batches was {self._cadence.longest:.0f} s"
            if self.trigger_interval is None
            else f"trigger_interval is {self.trigger_interval:.0f} s, and the shortest of the last "
            f"{gaps} gaps between batches was {self._cadence.shortest:.0f} s"
        )
        return (
            f"quiet_period is {self.quiet_period:.0f} s, and {named}; silence counts after "
            f"{required:.0f} s"
        )

    def _proved(self, files: frozenset[ListedFile], unchanged: float) -> dict[str, Any]:
        return {
            "request_id": self.request_id,
            "application_id": None,
            "batch_id": None,
            "clean": False,
            "error": None,
            "proof": StopProof.SILENT.value,
            FILES: digest_of(files),
            "basis": f"quiet checkpoint after cancel by {self.cancelled_by}",
            "quiet_seconds": round(unchanged, 1),
            "longest_gap": self._longest_gap(),
        }


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _is_batch(file: ListedFile) -> bool:
    folder, name = file.path.split("/")[-2:]
    return folder == "offsets" and name.isdecimal()
