"""The wait of a fleet's job for its turn; ``FleetTurnSensor`` polls with its trigger."""

from collections.abc import Mapping
from typing import Any

from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from airflow_mm2_offsets.triggers.polling import Done, NotYet, PollingTrigger

GOOD = frozenset({"success", "skipped"})
BAD = frozenset({"failed", "upstream_failed", "removed"})
"""The states of a task that has ended."""


class FleetTurnTrigger(PollingTrigger):
    """Waits until few enough jobs of a wave are at work, and those before this job have ended.

    Args:
        dag_id: Of the run.
        run_id: Of the run.
        task_id: The last task of each job of the wave.
        map_index: The number of this job in the wave.
        at_once: How many jobs of the wave may be at work.
        after: The numbers of the jobs that must have ended before, by name.
        turn_task_id: The first task of each job of the wave: where it has ended well, the job is at
            work until its last task has ended.
    """

    wait_for = "the turn of the job in its wave"
    settings = ("dag_id", "run_id", "task_id", "map_index", "at_once", "after", "turn_task_id")

    def __init__(
        self,
        *,
        dag_id: str,
        run_id: str,
        task_id: str,
        map_index: int,
        at_once: int,
        after: Mapping[str, int],
        turn_task_id: str,
        **times: float,
    ) -> None:
        """Keep the settings."""
        super().__init__(**times)
        self.dag_id = dag_id
        self.run_id = run_id
        self.task_id = task_id
        self.map_index = map_index
        self.at_once = at_once
        self.after = after
        self.turn_task_id = turn_task_id

    def poll(self) -> Done | NotYet:
        """Ask Airflow for the states of the wave's last tasks."""
        try:
            states, turns = self._states(str(self.task_id)), self._states(self.turn_task_id)
        except AirflowRuntimeError as error:  # its API server may be started again
            return NotYet(reason=f"Airflow did not answer: {error}")
        waits = sorted(
            name for name, index in self.after.items() if states.get(index) not in GOOD | BAD
        )
        if waits:
            return NotYet(reason=f"{', '.join(waits)} must be moved before it")
        # One behind it may be at work where this one was cleared.
        begun = {
            index for index, state in turns.items() if state in GOOD and index > self.map_index
        }
        at_work = sum(
            states.get(index) not in GOOD | BAD for index in {*range(self.map_index), *begun}
        )
        if at_work >= self.at_once:
            return NotYet(
                reason=f"{at_work} jobs of the wave come before it or are at work, and "
                f"{self.at_once} may be at work at once"
            )
        return Done()

    def _states(self, task_id: str) -> dict[int, str | None]:
        """Return the state of a task of each job by its number in the wave."""
        runs: Mapping[str, Mapping[str, Any]] = RuntimeTaskInstance.get_task_states(
            dag_id=self.dag_id, task_ids=[task_id], run_ids=[self.run_id]
        )
        found = {}
        for name, state in runs.get(self.run_id, {}).items():
            # Airflow appends the number to the id of a mapped task.
            number = name.removeprefix(f"{task_id}_")
            if number.isdecimal():
                found[int(number)] = None if state is None else str(getattr(state, "value", state))
        return found
