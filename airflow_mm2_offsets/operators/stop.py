"""The step that stops the source job."""

from collections.abc import Sequence
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.waiting import WaitingOperator
from airflow_mm2_offsets.spark.control import request_stop
from airflow_mm2_offsets.triggers.stop import SparkStoppedTrigger


class StopSparkStreamingOperator(WaitingOperator):
    """Asks a Spark job to stop between batches, and waits for the proof that it has.

    The job must run under ``StopControl`` (``airflow_mm2_offsets.spark.job``). The proof is its
    acknowledgement, a heartbeat that stands still (the driver is gone), and a checkpoint that
    stands still. The same request never asks twice: a retry goes on waiting.

    Args:
        control: The job's control location.
        checkpoint: The job's checkpoint location.
        request_id: Names this stop; the id of the DAG run unless given.
        still_for: Seconds for which heartbeat and checkpoint must not change; more than the
            job's heartbeat interval.
        timeout: Seconds to wait at most.
        poll_interval: Seconds between two looks.

    Returns:
        ``request_id``, ``application_id``, ``batch_id`` (the last one committed), ``clean``
        (stopped between batches) and ``error`` (why the query had failed, if it had).

    Raises:
        StopError: The proof did not come in time, or the control location can't be used.
    """

    template_fields: Sequence[str] = ("control", "checkpoint", "request_id")
    wait_for = SparkStoppedTrigger.wait_for
    error = StopError

    def __init__(
        self,
        *,
        control: str,
        checkpoint: str,
        request_id: str = "{{ dag.dag_id }}:{{ run_id }}",
        still_for: float = 6.0,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.control = control
        self.checkpoint = checkpoint
        self.request_id = request_id
        self.still_for = still_for

    def execute(self, context: Context) -> None:  # noqa: ARG002 - Airflow's signature
        """Ask, and wait for the proof."""
        request_stop(storage_path(self.control), self.request_id)
        self.wait(
            SparkStoppedTrigger,
            control=self.control,
            checkpoint=self.checkpoint,
            request_id=self.request_id,
            still_for=self.still_for,
        )
