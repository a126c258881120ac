"""The step that ends a drill: it stops the drill's job and removes its folder."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.errors import DrillError, Mm2OffsetsError, StopError
from airflow_mm2_offsets.hooks.spark_kill import SparkKillHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.drill import close_drill, drill_home
from airflow_mm2_offsets.moves.folders import JobFolders
from airflow_mm2_offsets.moves.jobs import Home
from airflow_mm2_offsets.moves.journal import Journal
from airflow_mm2_offsets.operators.drill import folder_of_drill
from airflow_mm2_offsets.operators.failing import fails_at_once, final
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.moving import (
    AnyContext,
    MoveArgument,
    job_of,
    request_of,
    run_name,
    to_template,
)
from airflow_mm2_offsets.operators.polling import PollingTask
from airflow_mm2_offsets.operators.stop import UNSEEN_END_SECONDS
from airflow_mm2_offsets.operators.stop_times import check_times
from airflow_mm2_offsets.spark.control import (
    Acknowledgement,
    Driver,
    StopProof,
    read_driver,
    read_last_acknowledgement,
)
from airflow_mm2_offsets.spark.drill import DrillMark, check_mark, read_mark, remove_drill
from airflow_mm2_offsets.triggers.drill import DagRunEndedTrigger, DrillStoppedTrigger

HEARTBEAT_TIMEOUT = 60.0
"""Seconds of silence after which a drill's driver counts as dead, unless the job says another."""
_NOTHING: Mapping[str, Any] = {"removed": 0, "seconds": 0.0, "stopped": None, "moved": None}


class TearDownDrillOperator(PollingTask):
    """Stops a drill's job, waits for the proof, and removes all that the drill has made.

    A second fence in the drill's folder asks the job to stop, and keeps it from starting later. No
    answer is needed: the silence of a driver that has died is enough. Then its DAG run must end,
    and only then the folder is removed, if its ``drill.json`` says that this drill has made it. A
    job that can't be stopped fails the task, and the folder stays, because the job writes there.

    It also cleans up after a drill that failed half way: its trigger rule is ``all_done``. It may
    be tried again at any time. The running job is not touched, and its journal is only read.

    Args:
        move: What would be moved, by the policy ``drill``. The job's ``kill_after`` and
            ``heartbeat_timeout`` (60 s by default) count here, too.
        folder: The drill's folder.
        quiet_period: Seconds for which heartbeat and checkpoint must not change.
        timeout: Seconds to wait at most, each for the stop and for the end of the DAG run; 600 by
            default.
        poll_interval: Seconds between two looks; 2 by default.

    Returns:
        ``removed`` (files), ``seconds`` since the folder was marked, ``stopped`` (acknowledged,
        ended, or silent, as a driver that was killed; None: the job never ran), and ``moved``:
        None, or a sentence if the running job was moved meanwhile, or its journal can't be read.

    Raises:
        StopError: The job did not prove its stop in time. The folder stays.
        DrillError: The DAG run has not ended, the folder's record names another folder, or it can't
            be removed.
        ConfigurationError: The policy is another one, or the folder is missing.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = ("move", "folder")
    wait_for = DrillStoppedTrigger.wait_for
    error = StopError

    def __init__(
        self,
        *,
        move: MoveArgument,
        folder: str,
        quiet_period: float = 6.0,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**{"trigger_rule": "all_done", **kwargs})
        self.move = to_template(move)
        self.folder = folder
        self.quiet_period = quiet_period

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Write the fence, wait for the end of job and DAG run, and remove the folder."""
        self.parse_settings()
        mark = self._mark(context)
        if mark is None:
            self.log.info("This run has marked no folder %s: nothing is removed", self.folder)
            return {**_NOTHING}
        home = self._home(mark)
        close_drill(home, storage_path(home.control), mark)
        # Read after that: a driver that begins later finds the fence and ends.
        if read_driver(storage_path(home.control)) is None:
            return self._wait_for_run(context, mark, method_name="look_again")
        return self._wait_for_proof(context, mark)

    def parse_settings(self) -> tuple[float | None, float | None]:
        """Return the job's ``heartbeat_timeout`` and ``kill_after``, and check the settings.

        Raises:
            ConfigurationError: One is invalid, or the stop could never be proved.
        """
        folder_of_drill(self)
        for field in ("timeout", "poll_interval", "quiet_period"):
            self.check_number(field)
        job = job_of(request_of(self))
        heartbeat_timeout = job.heartbeat_timeout
        if heartbeat_timeout is None and job.kill_after is None:
            heartbeat_timeout = HEARTBEAT_TIMEOUT
        check_times(
            self.task_id,
            heartbeat_timeout=heartbeat_timeout,
            kill_after=job.kill_after,
            timeout=self.timeout,
        )
        return heartbeat_timeout, job.kill_after

    def execute_complete(
        self, context: Mapping[str, Any], event: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Go on when the job has stopped."""
        super().execute_complete(context, event)
        mark = self._mark(context)
        return {**_NOTHING} if mark is None else self._wait_for_run(context, mark)

    def kill_then_wait(
        self, context: Mapping[str, Any], event: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Go on when the job has stopped; kill a driver that gave no proof in time."""
        mark = self._mark(context)
        if "timeout" not in event or mark is None:
            return self.execute_complete(context, event)
        home = self._home(mark)
        self.log.warning("Not stopped after its time to answer: %s", event["timeout"])
        folders = JobFolders.of(home, storage_path)
        driver = read_driver(folders.control)
        if driver is not None and (problem := folders.control_problem(driver)):
            raise DrillError(f"nothing was killed: {problem}")
        end_is_seen = SparkKillHook(home.spark_conn_id).kill(driver)
        return self._wait_for_stop(
            context,
            mark,
            self.quiet_period if end_is_seen else max(self.quiet_period, UNSEEN_END_SECONDS),
            self.timeout,
            proof_if_silent=StopProof.KILLED.value,
        )

    def timed_out(self, missing: str) -> Mm2OffsetsError:
        """Return the error of a job that does not stop; its folder stays."""
        error = super().timed_out(missing)
        return type(error)(
            f"THE DRILL'S JOB MAY STILL RUN and write to {self.folder}, which stays: {error}. End "
            f"the job, or give the job kill_after, and clear this task"
        )

    def look_again(self, context: Mapping[str, Any], event: Mapping[str, Any]) -> dict[str, Any]:
        """Go on when the DAG run of a job without a driver has ended; one may have begun since."""
        mark = self._mark(context)
        if mark is None or read_driver(storage_path(self._home(mark).control)) is None:
            return self.remove_after_run(context, event)
        return self._wait_for_proof(context, mark)

    def remove_after_run(
        self, context: Mapping[str, Any], event: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Remove the folder when the DAG run has ended."""
        mark = self._mark(context)
        if mark is None:
            return {**_NOTHING}
        if "timeout" in event:
            raise final(
                DrillError(
                    f"{self.folder} stays, because {event['timeout']}: see why it does not end, or "
                    f"delete that run, and clear this task"
                )
            )
        control = storage_path(self._home(mark).control)
        driver = read_driver(control)
        if driver is None and event["result"]["state"] == "success":
            raise DrillError(
                f"{self.folder} stays: the run {mark.run_id!r} of DAG {mark.dag_id} has succeeded, "
                f"and its job has not begun yet, so it may begin later. If it does not run, delete "
                f"that run and clear this task"
            )
        stopped = None if driver is None else _proof_of(driver, read_last_acknowledgement(control))
        moved = self._moved_since(mark)
        removed = remove_drill(storage_path(self.folder), mark.request_id)
        seconds = (datetime.now(UTC) - mark.at).total_seconds()
        self.log.info("The drill is over after %.0f s; %d files are removed", seconds, removed)
        if moved:
            self.log.warning("%s", moved)
        return {"removed": removed, "seconds": seconds, "stopped": stopped, "moved": moved}

    def _mark(self, context: AnyContext) -> DrillMark | None:
        """Return this drill's record; None if it is removed, or another drill has the folder.

        Raises:
            DrillError: The record names another folder: nothing is removed.
        """
        folder, run = storage_path(self.folder), run_name(context)
        mark = read_mark(folder)
        if mark is not None and mark.request_id != run:
            self.log.warning("%s is of the drill %r, so it stays", folder, mark.request_id)
            return None
        if mark is not None:
            check_mark(folder, mark, run)
        return mark

    def _home(self, mark: DrillMark) -> Home:
        job = job_of(request_of(self))
        for home in job.homes:
            if home.cluster == mark.cluster:
                return drill_home(home, folder_of_drill(self))
        raise DrillError(
            f"{self.folder} stays: its job runs at {mark.cluster!r}, and job {job.name} has no "
            f"home there any more"
        )

    def _moved_since(self, mark: DrillMark) -> str | None:
        """Return a sentence if the running job's journal has gone on since the drill began."""
        job = job_of(request_of(self))
        try:
            entries = Journal(storage_path(job.journal)).entries()
        except Mm2OffsetsError as error:
            return f"It is not known whether job {job.name} was moved during the drill: {error}"
        new = [each for each in entries if each.number > mark.last_entry]
        if not new:
            return None
        return (
            f"Job {job.name} was moved, or a move was begun, while the drill ran "
            f"({new[0].run!r}, entries {new[0].number} to {new[-1].number} of its journal): "
            f"{new[-1]}. The drill is of where it was before"
        )

    def _wait_for_proof(self, context: AnyContext, mark: DrillMark) -> dict[str, Any]:
        """Wait for the proof of the stop, and kill the driver where the job says when."""
        heartbeat_timeout, kill_after = self.parse_settings()
        if kill_after is None:
            return self._wait_for_stop(context, mark, heartbeat_timeout, self.timeout)
        return self._wait_for_stop(
            context, mark, heartbeat_timeout, kill_after, method_name="kill_then_wait"
        )

    def _wait_for_stop(
        self,
        context: AnyContext,
        mark: DrillMark,
        heartbeat_timeout: float | None,
        timeout: float,
        *,
        method_name: str = "execute_complete",
        proof_if_silent: str = StopProof.SILENT.value,
    ) -> dict[str, Any]:
        """Wait for the proof, and go on with the method."""
        home = self._home(mark)
        trigger = DrillStoppedTrigger(
            folder=home.folder,
            spark_folder=home.spark_folder,
            request_id=mark.request_id,
            quiet_period=self.quiet_period,
            heartbeat_timeout=heartbeat_timeout,
            proof_if_silent=proof_if_silent,
            deadline=time.time() + timeout,
            poll_interval=self.poll_interval,
        )
        if self.deferrable:
            self.wait_in_triggerer(trigger, method_name)
        result: dict[str, Any] = getattr(self, method_name)(context, trigger.wait())
        return result

    def _wait_for_run(
        self, context: AnyContext, mark: DrillMark, *, method_name: str = "remove_after_run"
    ) -> dict[str, Any]:
        """Wait until the drill's DAG run has ended, and go on with the method."""
        trigger = DagRunEndedTrigger(
            dag_id=mark.dag_id,
            run_id=mark.run_id,
            deadline=time.time() + self.timeout,
            poll_interval=self.poll_interval,
        )
        if self.deferrable:
            self.wait_in_triggerer(trigger, method_name)
        result: dict[str, Any] = getattr(self, method_name)(context, trigger.wait())
        return result


def _proof_of(driver: Driver, answer: Acknowledgement | None) -> str:
    if answer is not None:
        return str(answer.proof)
    return str(StopProof.ENDED if driver.ended else StopProof.SILENT)
