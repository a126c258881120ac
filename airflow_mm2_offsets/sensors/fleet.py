"""The first task of each job of a fleet."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.errors import ConfigurationError, HandoverError
from airflow_mm2_offsets.fleet.order import order_jobs
from airflow_mm2_offsets.hooks.jobs import jobs_of_file
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.fleet import check_order, fleet_request_of
from airflow_mm2_offsets.operators.moving import MoveArgument, to_template
from airflow_mm2_offsets.operators.settings import whole_number
from airflow_mm2_offsets.sensors.polling import PollingSensor
from airflow_mm2_offsets.triggers.fleet import FleetTurnTrigger

DAY_SECONDS = 86_400.0


class FleetTurnSensor(PollingSensor):
    """Waits until it is a job's turn in its wave.

    A job begins when fewer than ``at_once`` of the jobs before it in the wave have not ended,
    however the others ended, nor of those behind it that are at work; and when the jobs that it is
    after have ended. That those are moved, and that no job is that writes what this one reads, say
    their journals.

    Args:
        move: The job, and where it goes.
        wave: The names of the jobs of the wave, in their order.
        last_task_id: The last task of each job of the wave: the report of its move.
        at_once: How many jobs of a wave may be at work at once; may be a templated string.
        timeout: Seconds to wait at most; a day by default.
        poke_interval: Seconds between two looks; 5 by default.
        kwargs: See ``PollingSensor``.

    Returns:
        The job's name.

    Raises:
        HandoverError: See ``fleet.order.check_order_now``; or the time has passed.
        ConfigurationError: ``at_once`` is no number from 1; or see ``check_order``.
    """

    template_fields: Sequence[str] = ("move", "wave", "at_once")
    wait_for = FleetTurnTrigger.wait_for
    error = HandoverError
    default_timeout = DAY_SECONDS
    default_poke_interval = 5.0

    def __init__(
        self,
        *,
        move: MoveArgument,
        wave: Sequence[str],
        last_task_id: str,
        at_once: int | str,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.move = to_template(move)
        self.wave = wave
        self.last_task_id = last_task_id
        self.at_once = at_once

    def new_trigger(self, context: Context, **times: float) -> FleetTurnTrigger:
        """Return the trigger that asks Airflow."""
        instance: Any = context["ti"]
        name, wave = str(fleet_request_of(self).job), [*self.wave]
        jobs, file = jobs_of_file()
        after = next((job.after for job in order_jobs(jobs, file) if job.name == name), ())
        return FleetTurnTrigger(
            dag_id=instance.dag_id,
            run_id=instance.run_id,
            task_id=self.last_task_id,
            turn_task_id=self.task_id,
            map_index=instance.map_index,
            at_once=self._places(),
            after={each: wave.index(each) for each in after if each in wave},
            **times,
        )

    @fails_at_once()
    def execute_complete(self, context: Mapping[str, Any], event: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as of PollingSensor
        """Ask the journals whether the job may be moved now; return its name."""
        super().execute_complete(context, event)
        check_order(cast("Context", context))
        return str(fleet_request_of(self).job)

    def _places(self) -> int:
        places = whole_number(self, "at_once")
        if not places:
            raise ConfigurationError(f"task {self.task_id}: at_once is 0; give a number from 1")
        return places
