"""Changes a connector through Kafka Connect's REST API; ``connectors`` and the operators call it.

Each request may be repeated: a second one finds what the first has done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.connect.worker import Method, connector_path
from airflow_mm2_offsets.errors import ConnectError


class TargetState(StrEnum):
    """The state that a connector is told to take."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    """Its tasks are idle, and stay assigned."""
    STOPPED = "STOPPED"
    """Its tasks are gone; only now its offsets can be changed (KIP-875, Connect 3.5)."""


_ACTIONS: Mapping[TargetState, str] = {
    TargetState.RUNNING: "resume",
    TargetState.PAUSED: "pause",
    TargetState.STOPPED: "stop",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorAdmin:
    """Changes one connector; see ``ConnectWorker`` for the errors of each method."""

    connect: ConnectClient
    name: str

    def put_config(self, config: Mapping[str, str]) -> None:
        """Create the connector, or replace all of its settings."""
        self._send("PUT", "config", body=dict(config))

    def set_state(self, state: TargetState) -> None:
        """Tell the connector to run, to pause or to stop; it takes a moment to do so."""
        self._send("PUT", _ACTIONS[state])

    def restart_failed(self) -> None:
        """Restart the connector and its tasks, those of them that have failed (KIP-745)."""
        self._send("POST", "restart", params={"includeTasks": "true", "onlyFailed": "true"})

    def delete(self) -> None:
        """Delete the connector. Its offsets stay: one of the same name would go on from them."""
        self._send("DELETE", "")

    def alter_offsets(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Change the offsets of some partitions of a stopped connector (KIP-875, Connect 3.6).

        Args:
            entries: As ``ConnectClient.offset_entries`` returns them; an ``offset`` of None forgets
                the partition's.
        """
        self._require_stopped()
        self._send("PATCH", "offsets", body={"offsets": [dict(each) for each in entries]})

    def reset_offsets(self) -> None:
        """Forget all offsets of a stopped connector: it copies from the beginning again."""
        self._require_stopped()
        self._send("DELETE", "offsets")

    def _require_stopped(self) -> None:
        state = self.connect.status(self.name).state
        if state != TargetState.STOPPED:
            raise ConnectError(
                f"Connect at {self.connect.url}, connector {self.name} is {state}, and its offsets "
                f"can be changed only while it is STOPPED: stop it first "
                f"(SetConnectorStateOperator, or PUT /connectors/{self.name}/stop)"
            )

    def _send(
        self,
        method: Method,
        what: str,
        *,
        body: object = None,
        params: dict[str, str] | None = None,
    ) -> None:
        self.connect.request(
            method,
            connector_path(self.name, what),
            f"connector {self.name}",
            body=body,
            params=params,
            connector=self.name,
        )
