"""The waits of a drill's tear-down; ``TearDownDrillOperator`` uses them."""

from typing import Any, ClassVar

from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.moves.jobs import Home
from airflow_mm2_offsets.moves.stop_watch import StopRules, StopWatch
from airflow_mm2_offsets.spark.control import StopProof
from airflow_mm2_offsets.triggers.polling import Done, NotYet, PollingTrigger

ENDED = ("success", "failed")


class DrillStoppedTrigger(PollingTrigger):
    """Waits for the proof that a drill's job has stopped; the stop is never withdrawn.

    Args:
        folder: The drill's folder.
        spark_folder: The folder as Spark names it, where that differs; else an empty text.
        request_id: The drill.
        quiet_period: See ``StopRules``, as for all that follow.
    """

    wait_for = "the proof that the drill's job has stopped"
    settings: ClassVar[tuple[str, ...]] = (
        *("folder", "spark_folder", "request_id"),
        *("quiet_period", "heartbeat_timeout", "proof_if_silent"),
    )

    def __init__(
        self,
        *,
        folder: str,
        spark_folder: str,
        request_id: str,
        quiet_period: float,
        heartbeat_timeout: float | None,
        proof_if_silent: str = StopProof.SILENT,
        **times: float,
    ) -> None:
        """Keep the settings."""
        super().__init__(**times)
        self.folder = folder
        self.spark_folder = spark_folder
        self.request_id = request_id
        self.quiet_period = quiet_period
        self.heartbeat_timeout = heartbeat_timeout
        self.proof_if_silent = str(proof_if_silent)
        self._watch: StopWatch | None = None

    def poll(self) -> Done | NotYet:
        """Look at answer, heartbeat and checkpoint."""
        self._watch = self._watch or self._new_watch()
        found = self._watch.look()
        return NotYet(reason=found) if isinstance(found, str) else Done(result=found)

    def _new_watch(self) -> StopWatch:
        return StopWatch(
            home=Home(cluster="drill", folder=self.folder, spark_folder=self.spark_folder),
            request_id=self.request_id,
            rules=StopRules(
                quiet_period=self.quiet_period,
                heartbeat_timeout=self.heartbeat_timeout,
                proof_if_silent=StopProof(self.proof_if_silent),
                checkpoint_may_be_lost=True,  # a copy that was ended early has none
            ),
            open_path=storage_path,
            interval=self.poll_interval,
        )


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
