"""The wait for the state of connectors; ``operators/connectors.py`` polls with it."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.admin import TargetState
from airflow_mm2_offsets.connectors.apply import connect_of, missing_topics
from airflow_mm2_offsets.connectors.description import ConnectorKind
from airflow_mm2_offsets.connectors.states import find_missing
from airflow_mm2_offsets.errors import ConnectError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.triggers.polling import Done, NotYet, PollingTrigger


class ConnectorStateTrigger(PollingTrigger):
    """Waits until connectors and their tasks have a state.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2``.
        connectors: Their names.
        state: One of ``TargetState``.
        with_tasks: The connectors that must have a task; see ``find_missing``.
        kinds: The connectors of MirrorMaker 2 whose internal topics must be there, too.
        report: What the event's result says beside names and state, as plain JSON.
    """

    wait_for = "the connectors to have their state"
    settings = ("mm2_conn_id", "connectors", "state", "with_tasks", "kinds", "report")

    def __init__(
        self,
        *,
        mm2_conn_id: str,
        connectors: Sequence[str],
        state: str,
        with_tasks: Sequence[str] = (),
        kinds: Sequence[str] = (),
        report: Mapping[str, Any] | None = None,
        **times: float,
    ) -> None:
        """Keep the settings."""
        super().__init__(**times)
        self.mm2_conn_id = mm2_conn_id
        self.connectors = list(connectors)
        self.state = state
        self.with_tasks = list(with_tasks)
        self.kinds = list(kinds)
        self.report = dict(report or {})

    def poll(self) -> Done | NotYet:
        """Ask Connect, and then the clusters for the internal topics."""
        pair = Mm2OffsetHook(self.mm2_conn_id).get_conn()
        try:
            missing = self._missing(pair)
        except ConnectError as error:
            if not error.retryable:
                raise
            # A worker tells of a new connector when it has read its own writing.
            missing = [str(error)]
        if missing:
            return NotYet(reason="; ".join(missing))
        return Done(result={"connectors": self.connectors, "state": self.state, **self.report})

    def _missing(self, pair: ClusterPair) -> list[str]:
        missing = find_missing(
            connect_of(pair), self.connectors, TargetState(self.state), with_tasks=self.with_tasks
        )
        kinds = [ConnectorKind(each) for each in self.kinds]
        return missing or missing_topics(pair, kinds)
