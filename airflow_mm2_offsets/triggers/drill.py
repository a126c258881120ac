"""The waits of a drill's tear-down; ``TearDownDrillOperator`` uses them."""

from typing import Any

from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from airflow_mm2_offsets.triggers.polling import Done, NotYet, PollingTrigger
from airflow_mm2_offsets.triggers.stop import SparkStoppedTrigger

ENDED = ("success", "failed")


class DrillStoppedTrigger(SparkStoppedTrigger):
    """Waits for the proof that a drill's job has stopped; the stop is never withdrawn."""

    async def on_kill(self) -> None:
        """Keep the stop: nothing needs a drill's job, whoever ended the wait."""
        self.log.warning("The stop of the drill's job in %s stays requested", self.folder)


class DagRunEndedTrigger(PollingTrigger):
    """Waits until a DAG run has ended.

    Args:
        dag_id: The run's DAG.
        run_id: The run; one that does not exist has ended.
    """

    wait_for = "the end of the drill's DAG run"
    settings = ("dag_id", "run_id")

    def __init__(self, *, dag_id: str, run_id: str, **times: float) -> None:
        """Keep the settings."""
        super().__init__(**times)
        self.dag_id = dag_id
        self.run_id = run_id

    def poll(self) -> Done | NotYet:
        """Ask Airflow for the run's state."""
        try:
            state = read_run_state(self.dag_id, self.run_id)
        except AirflowRuntimeError as error:
            return NotYet(reason=f"Airflow does not tell the state of {self.run_id!r}: {error}")
        if state is None or state in ENDED:
            return Done(result={"state": state})
        return NotYet(reason=f"the run {self.run_id!r} of DAG {self.dag_id} is {state}")


def read_run_state(dag_id: str, run_id: str) -> str | None:
    """Return the state of a DAG run; None if there is no such run.

    Raises:
        AirflowRuntimeError: Airflow did not answer.
    """
    if not RuntimeTaskInstance.get_dr_count(dag_id=dag_id, run_ids=[run_id]):
        return None
    state: Any = RuntimeTaskInstance.get_dagrun_state(dag_id, run_id)
    return str(getattr(state, "value", state))
