"""The step that ends a drill: it stops the drill's job and removes its folder."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException, Context

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import DrillError, Mm2OffsetsError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once, final
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.stop import StopSparkStreamingOperator
from airflow_mm2_offsets.spark.control import Driver, read_driver, read_last_acknowledgement
from airflow_mm2_offsets.spark.drill import DrillMark, read_mark, remove_drill
from airflow_mm2_offsets.spark.fence import new_fence, raise_fence
from airflow_mm2_offsets.spark.stopping import request_stop
from airflow_mm2_offsets.triggers.drill import DagRunEndedTrigger, DrillStoppedTrigger


class TearDownDrillOperator(StopSparkStreamingOperator):
    """Stops a drill's job, waits for the proof, and removes all that the drill has made.

    A fence in the drill's own control location keeps the job from starting later. The job is then
    asked to stop, and its DAG run must end. Only then the folder is removed. A job that can't be
    stopped fails the task, and the folder stays, because the job writes there.

    It also cleans up after a drill that failed half way: by default its trigger rule is
    ``all_done``. It may be tried again at any time.

    Args:
        folder: The drill's folder.
        mode: In any other mode than ``drill`` the task is skipped.
        request_id: The drill, as ``StartDrillOperator`` has it.
        heartbeat_timeout: Seconds of silence after which a driver that has not answered counts as
            dead; None: never. May be a templated string.
        kwargs: ``kill_after``, ``spark_conn_id``, ``timeout``, ``deferrable`` and the other
            arguments of ``StopSparkStreamingOperator``.

    Returns:
        ``removed`` (files), ``seconds`` since the folder was marked, and ``stopped``: the stop
        proof, or None if the job never ran.

    Raises:
        StopError: The job did not prove its stop in time. The folder stays.
        DrillError: The DAG run has not ended, or the folder can't be removed.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = (
        *StopSparkStreamingOperator.template_fields,
        *("folder", "mode"),
    )
    trigger_class = DrillStoppedTrigger

    def __init__(
        self,
        *,
        folder: str,
        mode: str = FailoverMode.DRILL.value,
        heartbeat_timeout: float | str | None = 60.0,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(
            checkpoint=f"{folder}/checkpoint",
            control=f"{folder}/control",
            heartbeat_timeout=heartbeat_timeout,
            **{"trigger_rule": "all_done", **kwargs},
        )
        self.folder = folder
        self.mode = mode

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Raise the fence, ask the job to stop, wait for its end, and remove the folder."""
        if self.mode != FailoverMode.DRILL:
            raise AirflowSkipException(f"the mode is {self.mode}, and only a drill is torn down")
        heartbeat_timeout, kill_after = self.parse_settings()
        if self._mark() is None:
            self.log.info("No drill has marked %s: there is nothing to remove", self.folder)
            return {"removed": 0, "seconds": 0.0, "stopped": None}
        if not self._ask():
            return self._wait_for_run(context)
        return self._wait(
            context,
            heartbeat_timeout,
            timeout=kill_after,
            method_name="execute_complete" if kill_after is None else "kill_then_wait",
        )

    def on_kill(self) -> None:
        """Keep the stop: nothing needs the drill's job."""
        self.log.warning("The stop of the drill's job stays requested; clear the task to go on")

    def execute_complete(
        self, context: Mapping[str, Any], event: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Go on when the job has stopped."""
        super().execute_complete(context, event)
        return self._wait_for_run(context)

    def timed_out(self, missing: str) -> Mm2OffsetsError:
        """Return the error of a job that does not stop; its folder stays."""
        error = super().timed_out(missing)
        return type(error)(
            f"THE DRILL'S JOB MAY STILL RUN and write to {self.folder}, which stays: {error}. End "
            f"the job, or give kill_after, and clear this task"
        )

    def remove_after_run(
        self,
        context: Mapping[str, Any],  # noqa: ARG002 - Airflow's signature
        event: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Remove the folder when the DAG run has ended."""
        folder, mark = storage_path(self.folder), self._mark()
        if mark is None:
            return {"removed": 0, "seconds": 0.0, "stopped": None}
        driver, run = self._driver(), f"the run {mark.run_id!r} of DAG {mark.dag_id}"
        if "timeout" in event:
            raise final(
                DrillError(
                    f"{self.folder} stays, because {event['timeout']}: see why it does not end, or "
                    f"delete that run, and clear this task"
                )
            )
        if driver is None and event["result"]["state"] == "success":
            raise DrillError(
                f"{self.folder} stays: {run} has succeeded, and its job has not begun yet, so it "
                f"may begin later. If it does not run, delete that run and clear this task"
            )
        answer = read_last_acknowledgement(storage_path(str(self.control)))
        removed = remove_drill(folder, self.request_id)
        seconds = (datetime.now(UTC) - mark.at).total_seconds()
        stopped = answer.proof.value if driver and answer else None
        self.log.info("The drill is over after %.0f s; %d files are removed", seconds, removed)
        return {"removed": removed, "seconds": seconds, "stopped": stopped}

    def _ask(self) -> bool:
        """Raise the fence and ask the job to stop; return False if it has never run."""
        control = storage_path(str(self.control))
        raise_fence(control, new_fence(self.request_id, "nowhere, because its drill is over"))
        # Read after that: a driver that begins later finds the fence and ends.
        if self._driver() is None:
            return False
        # A request without the stop step's sign of life: it counts whether this task lives or not.
        request_stop(control, self.request_id)
        return True

    def _wait_for_run(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """Wait until the drill's DAG run has ended, then remove the folder."""
        mark = self._mark()
        if mark is None or not mark.run_id:
            return self.remove_after_run(context, {"result": {"state": None}})
        trigger = DagRunEndedTrigger(
            dag_id=mark.dag_id,
            run_id=mark.run_id,
            deadline=time.time() + self.timeout,
            poll_interval=self.poll_interval,
        )
        if self.deferrable:
            self.wait_in_triggerer(trigger, "remove_after_run")
        return self.remove_after_run(context, trigger.wait())

    def _mark(self) -> DrillMark | None:
        """Return this drill's mark; None if it is removed, or another drill has the folder."""
        folder = storage_path(self.folder)
        mark = read_mark(folder)
        if mark is not None and mark.request_id != self.request_id:
            self.log.warning("%s is of the drill %r, so it stays", folder, mark.request_id)
            return None
        return mark

    def _driver(self) -> Driver | None:
        return read_driver(storage_path(str(self.control)))
