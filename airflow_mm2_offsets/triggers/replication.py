"""Waits until MirrorMaker 2 has copied everything before some positions."""

from typing import Any

from airflow_mm2_offsets.core import Positions, Translation, check_positions
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.service.planning import still_copying
from airflow_mm2_offsets.triggers.polling import Over, PollingTrigger, Waiting


class ReplicatedTrigger(PollingTrigger):
    """Waits until every position is behind what is known to be copied.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2``.
        positions: Positions on the source; keys and numbers may be text.
    """

    wait_for = "MirrorMaker 2 to copy everything before the positions"

    def __init__(self, *, mm2_conn_id: str, positions: Positions, **times: float) -> None:
        """Keep the settings."""
        super().__init__(**times)
        self.mm2_conn_id = mm2_conn_id
        self.positions = positions

    def settings(self) -> dict[str, Any]:
        """Return the arguments for Airflow's database."""
        return {"mm2_conn_id": self.mm2_conn_id, "positions": self.positions}

    def poll(self) -> Over | Waiting:
        """Read what is new on the clusters."""
        pair = Mm2OffsetHook(self.mm2_conn_id).get_conn()
        behind = still_copying(pair, check_positions(self.positions))
        if not behind:
            return Over()
        return Waiting(reason="; ".join(map(_describe, behind)))


def _describe(answer: Translation) -> str:
    return f"{answer.topic}[{answer.partition}] at {answer.position} {answer.reason}"
