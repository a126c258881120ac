"""What is asked directly before each step of a fleet's job: whether it may be moved now."""

from dataclasses import dataclass
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.fleet.order_now import check_order_now
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.operators.failing import fails_at_once


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOrderGuard:
    """Refuses a step of a job whose order has changed since its turn.

    A later step may be cleared hours after the turn: meanwhile a reader may have come home, or a
    writer been moved singly.
    """

    turn_task_id: str
    """The first task of the job, whose XCom ``job`` has its settings."""
    mode: str
    """The mode of the failover; may be a template."""

    @fails_at_once()
    def __call__(self, context: Context) -> None:
        """Ask the fences.

        Raises:
            HandoverError: See ``check_order_now``; or the settings of the job are not there.
            StopError: A control location can't be read.
            CheckpointError: A target's checkpoint can't be read.
        """
        instance: Any = context["ti"]
        task: Any = context["task"]
        job = instance.xcom_pull(
            task_ids=self.turn_task_id, key="job", map_indexes=instance.map_index
        )
        if job is None:
            raise HandoverError(
                f"task {self.turn_task_id} has told no settings of the job: this try did nothing. "
                f"Clear that task, with all after it"
            )
        mode = task.render_template(self.mode, context)
        check_order_now(job, storage_path, mode=str(mode))
