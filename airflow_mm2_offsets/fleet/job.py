"""A job of a fleet, as the manifest has it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetJob:
    """One job of a fleet. ``manifest.schema.json`` explains each field."""

    name: str
    stream_dag_id: str
    source_folder: str
    target_folder: str
    source_output: str
    target_output: str
    wave: int = 1
    after: tuple[str, ...] = ()
    """In a parsed manifest also those that follow from ``reads`` and ``writes``."""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    spark_folder: str | None = None
    heartbeat_timeout: float | None = None
    kill_after: float | None = None
    quiet_after: float | None = None
    subscribe_pattern: str | None = None
    txn_app_id: str | None = None
    changed_records: bool = False
    give_up: int = 0
    source_is_gone: bool = False
    saved_positions: str | None = None
    on_failure: str = "withdraw"
    max_refused: int = 0
    max_read_again: int = 0
    max_at_risk: int = 0
    line: int | None = field(default=None, compare=False)
    """Where the manifest has it."""

    @property
    def checkpoint(self) -> str:
        """Its checkpoint location on the source."""
        return f"{self.source_folder}/checkpoint"

    @property
    def control(self) -> str:
        """Its control location on the source."""
        return f"{self.source_folder}/control"

    @property
    def target_checkpoint(self) -> str:
        """Its checkpoint location on the target."""
        return f"{self.target_folder}/checkpoint"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "FleetJob":
        """Return the job that ``to_json`` wrote; further keys are ignored."""
        names = {each.name for each in fields(cls)}
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
            if name in names
        }
        return cls(**known)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any field
    return [*value] if isinstance(value, tuple) else value
