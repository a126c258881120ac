"""Asks several parts of a pair of clusters at the same time, and keeps why some do not answer.

``connection_check`` and the planner of a disaster ask by it.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

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


Walk: TypeAlias = Callable[[], Iterable[PartHealth]]
"""The steps to one part; it raises what ends it early."""


def walk_parts(walks: Mapping[str, Walk]) -> tuple[PartHealth, ...]:
    """Take the steps to every part, all parts at the same time; the parts keep their order."""
    pool = ThreadPoolExecutor(len(walks))
    try:
        return tuple(chain.from_iterable(pool.map(_steps, walks, walks.values())))
    finally:
        # All parts are done, or the caller was interrupted and must not wait for them.
        pool.shutdown(wait=False)


def ask_parts(questions: Mapping[str, Callable[[], str]]) -> tuple[PartHealth, ...]:
    """Ask each part its question, all at the same time; the answers have the same order."""
    return walk_parts({part: partial(_answer, part, ask) for part, ask in questions.items()})


def _steps(part: str, walk: Walk) -> list[PartHealth]:
    steps: list[PartHealth] = []
    try:
        steps.extend(walk())
    except Mm2OffsetsError as error:
        steps.append(PartHealth(part=part, error=error))
    return steps


def _answer(part: str, ask: Callable[[], str]) -> list[PartHealth]:
    return [PartHealth(part=part, answer=ask())]
