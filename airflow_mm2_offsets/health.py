"""Asks several parts of a pair of clusters at the same time, and keeps why some do not answer.

``connection_check`` and the planner of a disaster ask by it.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from airflow_mm2_offsets.errors import Mm2OffsetsError


@dataclass(frozen=True, slots=True, kw_only=True)
class PartHealth:
    """Whether one part answers."""

    part: str
    """``source``, ``target``, the syncs topic, or ``Connect``."""
    answer: str = ""
    """What the part says of itself, if it answers."""
    error: Mm2OffsetsError | None = None
    """Why the part can't be used, if it does not."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON; see ``Mm2OffsetsError.to_json`` for the error."""
        return {
            "part": self.part,
            "ok": self.error is None,
            "answer": self.answer or None,
            "error": self.error.to_json() if self.error else None,
        }


def ask_parts(questions: Mapping[str, Callable[[], str]]) -> tuple[PartHealth, ...]:
    """Ask each part its question, all at the same time; the answers have the same order."""
    pool = ThreadPoolExecutor(len(questions))
    try:
        return tuple(pool.map(_health, questions, questions.values()))
    finally:
        # All parts are done, or the caller was interrupted and must not wait for them.
        pool.shutdown(wait=False)


def _health(part: str, ask: Callable[[], str]) -> PartHealth:
    try:
        return PartHealth(part=part, answer=ask())
    except Mm2OffsetsError as error:
        return PartHealth(part=part, error=error)
