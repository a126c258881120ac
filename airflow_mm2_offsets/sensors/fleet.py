"""The first task of each job of a fleet."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.core.mode import FailoverMode
from airflow_mm2_offsets.errors import (
    ConfigurationError,
    HandoverError,
    NotReadyError,
    StopError,
)
from airflow_mm2_offsets.fleet.job import FleetJob
from airflow_mm2_offsets.fleet.order_now import check_order_now
from airflow_mm2_offsets.fleet.progress import is_of_run, moved_before
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.settings import parse_mode, whole_number
from airflow_mm2_offsets.sensors.polling import PollingSensor
from airflow_mm2_offsets.spark.fence import FenceState, read_fence
from airflow_mm2_offsets.triggers.fleet import FleetTurnTrigger

JOB, MOVED = "job", "moved"
"""The XComs of the job's settings, and of why it need not be moved."""
DAY_SECONDS = 86_400.0


class FleetTurnSensor(PollingSensor):
    """Waits until it is a job's turn in its wave, and tells whether it was moved before.

    A job begins when fewer than ``at_once`` of the jobs before it in the wave have not ended,
    however the others ended, nor of those behind it that are at work; and when the jobs that it is
    after are moved. That those of every wave are moved, and that no job is that writes what this
    one reads, is asked of their fences: a task may be skipped, or marked as success by hand.

    It pushes two XComs for the tasks after it: ``job`` (its settings, pushed before the wait) and
    ``moved`` (the sentence that an earlier run has moved the job, or empty text).

    Args:
        job: One of the dicts that ``FleetWaveOperator`` returned.
        last_task_id: The last task of each job of the wave: the report of its failover.
        at_once: How many jobs of a wave may be at work at once; may be a templated string.
        failover_mode: The mode of the failover.
        timeout: Seconds to wait at most; a day by default.
        poke_interval: Seconds between two looks; 5 by default.
        kwargs: See ``PollingSensor``.

    Raises:
        HandoverError: A job that it is after has failed, or was not moved; a job that writes what
            it reads was moved, or is being moved; or the job was moved elsewhere, has left its
            target, or was handed over without a job having begun; or the time has passed.
        NotReadyError: Another run of this DAG moves the job now.
    """

    template_fields: Sequence[str] = ("job", "at_once", "failover_mode")
    wait_for = FleetTurnTrigger.wait_for
    error = HandoverError

    def __init__(
        self,
        *,
        job: Mapping[str, Any],
        last_task_id: str,
        at_once: int | str,
        failover_mode: str = FailoverMode.PLANNED.value,
        timeout: float = DAY_SECONDS,
        poke_interval: float = 5.0,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(timeout=timeout, poke_interval=poke_interval, **kwargs)
        self.job = job
        self.last_task_id = last_task_id
        self.at_once = at_once
        self.failover_mode = failover_mode
        self._of_run: tuple[str, str, int] | None = None

    @fails_at_once()
    def execute(self, context: Context) -> Any:  # noqa: ANN401 - Airflow's signature
        """Wait for the turn; then see whether the job was moved before."""
        parse_mode(self.task_id, self.failover_mode)
        instance: Any = context["ti"]
        self._of_run = instance.dag_id, instance.run_id, instance.map_index
        # The tasks after a failed turn need it, too: they say what is left to do.
        instance.xcom_push(key=JOB, value={**self.job})
        instance.xcom_push(key=MOVED, value="")
        return super().execute(context)

    def new_trigger(self, context: Context, **times: float) -> FleetTurnTrigger:  # noqa: ARG002
        """Return the trigger that asks Airflow."""
        assert self._of_run is not None  # noqa: S101 - execute has set it
        dag_id, run_id, map_index = self._of_run
        return FleetTurnTrigger(
            dag_id=dag_id,
            run_id=run_id,
            task_id=self.last_task_id,
            turn_task_id=self.task_id,
            map_index=map_index,
            at_once=self._places(),
            after=self.job["waits_for"],
            **times,
        )

    def _places(self) -> int:
        places = whole_number(self, "at_once")
        if not places:
            raise ConfigurationError(f"task {self.task_id}: at_once is 0; give a number from 1")
        return places

    def execute_complete(
        self, context: Mapping[str, Any], event: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return ``moved``: the sentence that the job was moved before, or empty text."""
        super().execute_complete(context, event)
        instance, job = context["ti"], FleetJob.from_json(self.job)
        own = f"{instance.dag_id}:{instance.run_id}"
        self._refuse_if_moving(instance, job, own)
        mode = str(self.failover_mode)
        check_order_now(self.job, storage_path, mode=mode)
        moved = moved_before(job, storage_path, own=own, mode=mode)
        if moved is not None:
            self.log.info("Moved already: %s", moved)
            instance.xcom_push(key=MOVED, value=moved)
        began_at = datetime.now(UTC).isoformat(timespec="seconds")
        return {"name": job.name, "moved": moved or "", "began_at": began_at}

    def _refuse_if_moving(self, instance: Any, job: FleetJob, own: str) -> None:  # noqa: ANN401 - Airflow's, of any release
        """Raise where another run of this DAG works on the job; an ended one is taken over."""
        try:
            fence = read_fence(storage_path(job.control))
        except StopError:
            if self.failover_mode == FailoverMode.DISASTER:
                return
            raise
        if fence is None or fence.state is not FenceState.STOPPING:
            return
        of_this_dag = f"{instance.dag_id}:"
        if not fence.request_id.startswith(of_this_dag) or is_of_run(fence.request_id, own):
            return
        # Behind the run's id stand the group and the job.
        run_id = fence.request_id.removeprefix(of_this_dag).rsplit(":", 2)[0]
        if not instance.get_dr_count(dag_id=instance.dag_id, run_ids=[run_id]):
            return
        if instance.get_dagrun_state(instance.dag_id, run_id) in {"running", "queued"}:
            raise NotReadyError(
                f"{fence}, and that run has not ended: nothing was done to the job by this one. "
                f"Wait for it, or end it; then clear this task"
            )
