"""The operators that start, pause and stop a connector on Kafka Connect, and their base."""

import time
from collections.abc import Sequence
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.connect.admin import ConnectorAdmin, TargetState
from airflow_mm2_offsets.connectors.apply import connect_of
from airflow_mm2_offsets.errors import ConfigurationError, ConnectError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.polling import PollingTask
from airflow_mm2_offsets.triggers.connectors import ConnectorStateTrigger
from airflow_mm2_offsets.triggers.polling import NotYet


class ConnectorTask(PollingTask):
    """The base of operators that tell connectors something, and wait until they have done it.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2`` that names Kafka Connect.
        timeout: Seconds to wait at most; 300 by default.
        poll_interval: Seconds between two looks; 2 by default.
        deferrable: Wait in the triggerer; None: as ``[operators] default_deferrable`` says.
    """

    wait_for = ConnectorStateTrigger.wait_for
    error = ConnectError
    default_timeout = 300.0

    operator_extra_links = page_links("connection")

    def __init__(
        self,
        *,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.mm2_conn_id = mm2_conn_id

    def admin(self, connector: str) -> ConnectorAdmin:
        """Return what changes a connector."""
        connect = connect_of(Mm2OffsetHook(str(self.mm2_conn_id)).get_conn())
        return ConnectorAdmin(connect=connect, name=connector)

    def wait_for_state(
        self, context: Context, connectors: Sequence[str], state: TargetState, **settings: Any
    ) -> dict[str, Any]:
        """Return the trigger's result, or defer until there is one."""
        trigger = ConnectorStateTrigger(
            mm2_conn_id=str(self.mm2_conn_id),
            connectors=connectors,
            state=state.value,
            deadline=time.time() + self.timeout,
            poll_interval=self.poll_interval,
            **settings,
        )
        event = trigger.look() if self.deferrable else trigger.wait()
        if isinstance(event, NotYet):
            self.wait_in_triggerer(trigger)
        return self.execute_complete(context, event)


class SetConnectorStateOperator(ConnectorTask):
    """Tells a connector to run, to pause or to stop, and waits until it and its tasks do so.

    Args:
        connector: Its name.
        state: ``RUNNING`` (resume), ``PAUSED``, or ``STOPPED`` (KIP-875, Connect 3.5): its tasks
            are gone then, and its offsets can be changed.
        kwargs: See ``ConnectorTask``.

    Returns:
        ``connectors`` and ``state``.

    Raises:
        ConfigurationError: ``state`` is none of these.
        ConnectError: There is no such connector, Connect refused, or it took too long.
        ClusterUnreachableError: Connect did not answer.
    """

    template_fields: Sequence[str] = ("connector", "state", "mm2_conn_id")

    def __init__(self, *, connector: str, state: str, **kwargs: Any) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.connector = connector
        self.state = state

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Tell it, and wait."""
        state = parse_state(self.task_id, self.state)
        self.admin(self.connector).set_state(state)
        return self.wait_for_state(context, [self.connector], state)


class RestartFailedTasksOperator(ConnectorTask):
    """Restarts a connector's failed parts, and only those (KIP-745), and waits until all run.

    What fails again and again fails the task when the time has passed, with the reason that the
    task's trace names.

    Args:
        connector: Its name.
        kwargs: See ``ConnectorTask``.

    Returns:
        ``connectors`` and ``state``.

    Raises:
        ConnectError: There is no such connector, Connect refused, or not all parts run.
        ClusterUnreachableError: Connect did not answer.
    """

    template_fields: Sequence[str] = ("connector", "mm2_conn_id")

    def __init__(self, *, connector: str, **kwargs: Any) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.connector = connector

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Restart, and wait."""
        self.admin(self.connector).restart_failed()
        return self.wait_for_state(context, [self.connector], TargetState.RUNNING)


def parse_state(task_id: str, value: object) -> TargetState:
    """Return the state that a field names.

    Raises:
        ConfigurationError: It names none.
    """
    try:
        return TargetState(str(value).upper())
    except ValueError as error:
        raise ConfigurationError(
            f"task {task_id}: state is {value!r}; give one of {', '.join(TargetState)}"
        ) from error
