"""The wait for the state of a connector."""

from collections.abc import Sequence
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.errors import ConnectError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.operators.connector_states import parse_state
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.sensors.polling import PollingSensor
from airflow_mm2_offsets.triggers.connectors import ConnectorStateTrigger


class ConnectorStateSensor(PollingSensor):
    """Waits until a connector and all its tasks have a state.

    Args:
        connector: Its name.
        state: ``RUNNING``, ``PAUSED`` or ``STOPPED``.
        mm2_conn_id: Id of a connection of type ``mm2`` that names Kafka Connect.
        timeout: Seconds to wait at most; 600 by default.
        poke_interval: Seconds between two looks; 2 by default.
        deferrable: Wait in the triggerer; None: as ``[operators] default_deferrable`` says.
        kwargs: ``mode``, ``soft_fail`` and all other arguments of Airflow's sensors.

    Raises:
        ConnectError: The time has passed; what is missing is named. It is an
            ``AirflowSensorTimeout`` too. Or Connect refused the login.
        ConfigurationError: ``state`` is none of these.
    """

    operator_extra_links = page_links("connection")
    template_fields: Sequence[str] = ("connector", "state", "mm2_conn_id")
    wait_for = ConnectorStateTrigger.wait_for
    error = ConnectError

    def __init__(
        self,
        *,
        connector: str,
        state: str = "RUNNING",
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.connector = connector
        self.state = state
        self.mm2_conn_id = mm2_conn_id

    def new_trigger(self, context: Context, **times: float) -> ConnectorStateTrigger:  # noqa: ARG002
        """Return the trigger that asks Connect."""
        return ConnectorStateTrigger(
            mm2_conn_id=self.mm2_conn_id,
            connectors=[self.connector],
            state=parse_state(self.task_id, self.state).value,
            with_tasks=(),
            kinds=(),
            report=None,
            **times,
        )
