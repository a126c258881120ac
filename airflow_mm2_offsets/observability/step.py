"""A step of a failover, and what it is called in metrics, spans and logs."""

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One try of a task; the task's waits in the triggerer belong to it."""

    name: str
    """The task's id without the group's prefix: ``translate``."""
    dag_id: str
    run_id: str
    task_id: str
    began: float
    """When the task first started, in seconds since 1970: before its first deferral."""
    policy: str | None = None
    """The name of a ``Policy``; None outside a failover."""
    conn_id: str | None = None
    """Id of the ``mm2`` connection."""
    is_wait: bool = False
    """It is the part in the triggerer: seconds and errors are counted when the task resumes."""

    def tags(self) -> dict[str, str | None]:
        """Return the tags that metrics take from here."""
        return {
            "dag_id": self.dag_id,
            "conn_id": self.conn_id,
            "policy": self.policy,
            "step": self.name,
        }

    def log_fields(self) -> dict[str, str]:
        """Return what each line of the log has, by Airflow's own names where it has them."""
        fields = {"dag_id": self.dag_id, "run_id": self.run_id, "task_id": self.task_id}
        return fields | ({"failover_policy": self.policy} if self.policy else {})

    def attributes(self) -> dict[str, str]:
        """Return the attributes of a span; Airflow's own spans have the same names."""
        attributes = {
            "airflow.dag_id": self.dag_id,
            "airflow.dag_run.run_id": self.run_id,
            "airflow.task_id": self.task_id,
            "mm2_offsets.policy": self.policy,
            "mm2_offsets.conn_id": self.conn_id,
        }
        return {name: value for name, value in attributes.items() if value}


CURRENT: ContextVar[Step | None] = ContextVar("mm2_offsets_step", default=None)
"""The step that runs here. A triggerer runs many waits in one process, so it is no plain global."""


def current_step() -> Step | None:
    """Return the step that runs here, if one does."""
    return CURRENT.get()
