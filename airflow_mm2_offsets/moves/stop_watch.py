"""Looks until the stop of a job is proved: trigger and command line call it again and again.

The answer to an earlier stop counts too, if no driver has run since. So does a job whose queries
have ended by themselves: the fence keeps the next run from starting. The answer is compared with
the checkpoint, and both folders with those that the job wrote down.

No wait is shorter than the driver's own times: a stopped driver must miss several heartbeats, and
the lease of a driver without connection must have run out.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.moves.folders import JobFolders, check_stopped
from airflow_mm2_offsets.moves.jobs import Home
from airflow_mm2_offsets.moves.stopping import check_asked, keep_asking
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

LOST_BROKERS = (
    "a batch that waits for lost brokers takes minutes: end the driver in its cluster manager to "
    "go on sooner"
)
"""What a person can do while a driver lives whose cluster is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRules:
    """What proves a stop."""

    quiet_period: float = 6.0
    """Seconds for which heartbeat and checkpoint must not change."""
    heartbeat_timeout: float | None = None
    """The same for a driver that has not answered and then counts as dead; None: never."""
    proof_if_silent: StopProof = StopProof.SILENT
    """The proof of the end of such a driver."""
    checkpoint_may_be_lost: bool = False
    """In a disaster: the proof does without a checkpoint that is gone."""

    def required_seconds(
        self, driver: Driver | None, answer: Acknowledgement | None
    ) -> float | None:
        """Return for how many seconds nothing must change; None if silence proves nothing.

        With an answer it is the quiet period, and at least as long as a running driver may write no
        heartbeat. Without one it is the heartbeat timeout; the quiet period is enough if the driver
        wrote that all its queries have ended. In both cases the driver's lease must be over: until
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


@dataclass(slots=True, kw_only=True)
class StopWatch:
    """Looks at one home for the proof of one stop."""

    home: Home
    request_id: str
    rules: StopRules
    open_path: Callable[[str], UPath]
    interval: float
    """Seconds until the next look."""
    _last: tuple[object, ...] = field(default=(), init=False)
    _unchanged_since: float = field(default=0.0, init=False)
    _lives: bool = field(default=False, init=False)
    """Whether two looks have differed."""

    def look(self) -> Mapping[str, Any] | str:
        """Return the proof as plain JSON, or what is missing, as a sentence.

        Raises:
            StopError: The stop was withdrawn or taken over, the proof contradicts the checkpoint or
                is of a copy, or the home can't be read.
            CheckpointError: The checkpoint can't be read.
        """
        driver, answer = self._read_control()
        files = self._files()
        unchanged = self._unchanged_seconds(driver, answer, files)
        required = self.rules.required_seconds(driver, answer)
        if required is not None and unchanged >= required:
            self._check_proof(driver, answer)
            return self._proof(driver, answer)
        if answer is None:
            keep_asking(self.open_path(self.home.control), self.request_id, self.interval)
        return self._missing(driver, answer, unchanged, required)

    def _read_control(self) -> tuple[Driver | None, Acknowledgement | None]:
        control = self.open_path(self.home.control)
        check_asked(control, self.request_id)
        # The driver first: a later heartbeat starts the wait again.
        driver, answer = read_driver(control), read_last_acknowledgement(control)
        counts = answer is not None and answer.answers(self.request_id, driver)
        return driver, answer if counts else None

    def _files(self) -> frozenset[ListedFile]:
        """Return the files of the checkpoint; none where it is lost."""
        location = self.open_path(self.home.checkpoint)
        try:
            return listing(location)
        except CheckpointError:
            if not (self.rules.checkpoint_may_be_lost and why_lost(location)):
                raise
            return frozenset()

    def _unchanged_seconds(
        self, driver: Driver | None, answer: Acknowledgement | None, files: frozenset[ListedFile]
    ) -> float:
        state = (driver and (driver.run_id, driver.heartbeat), answer is None, files)
        if state != self._last:
            self._lives = bool(self._last)
            self._last, self._unchanged_since = state, time.monotonic()
        return time.monotonic() - self._unchanged_since

    def _is_alive(self, driver: Driver, unchanged: float) -> bool:
        return self._lives and unchanged <= max(driver.longest_silence, self.interval)

    def _check_proof(self, driver: Driver | None, answer: Acknowledgement | None) -> None:
        """Raise if the proof is of another job, or of a copy of this job's folders."""
        may_be_lost = self.rules.checkpoint_may_be_lost
        folders = JobFolders.of(self.home, self.open_path, may_be_lost=may_be_lost)
        agrees = False
        if not folders.checkpoint_is_lost:
            if driver is not None:
                check_ended(driver, folders.checkpoint)
            agrees = answer is not None and check_answer(answer, folders.checkpoint)
        check_stopped(folders, self.request_id, driver, answer, agrees=agrees)

    def _missing(
        self,
        driver: Driver | None,
        answer: Acknowledgement | None,
        unchanged: float,
        required: float | None,
    ) -> str:
        seconds = f"{unchanged:.0f}" + ("" if required is None else f" of {required:.0f}")
        beat = f"heartbeat {driver.heartbeat}" if driver else "no driver"
        unchanged_for = f"heartbeat and checkpoint have not changed for {seconds} s"
        if answer is not None:
            return f"acknowledged; {unchanged_for} (driver {answer.application_id}, {beat})"
        if driver is not None and driver.ended:
            return (
                f"its queries have ended; {unchanged_for} (driver {driver.application_id}, {beat})"
            )
        no_answer = f"{self.home} holds no answer to {self.request_id}"
        if driver is not None and self._is_alive(driver, unchanged):
            lives = f"driver {driver.host}:{driver.pid} lives ({beat}), and answers after its batch"
            if self.rules.checkpoint_may_be_lost:
                lives += f" ({LOST_BROKERS})"
            return f"{no_answer}: {lives}"
        where = f"driver {driver.host}:{driver.pid}, {beat}" if driver else beat
        return (
            f"{no_answer} ({where}), {unchanged_for}; does the job run, and under StopControl with "
            f"this home?"
        )

    def _proof(self, driver: Driver | None, answer: Acknowledgement | None) -> dict[str, Any]:
        ended = StopProof.ENDED if driver is not None and driver.ended else None
        return {
            "request_id": self.request_id,
            "application_id": getattr(answer or driver, "application_id", None),
            "batch_id": answer and answer.batch_id,
            "clean": answer is not None and answer.clean,
            "error": answer and answer.error,
            "proof": str(answer.proof if answer else ended or self.rules.proof_if_silent),
        }
