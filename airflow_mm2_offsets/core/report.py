"""What a move did, as one document and as Markdown; pure. ``operators.report`` fills it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_mm2_offsets.core.approval import code_block

SCHEMA_VERSION = 2
STEPS = (
    *("check", "cancel_source", "stop_source", "wait_replicated", "translate", "approve"),
    *("hand_over", "start_target", "start_drill", "wait_started", "verify", "tear_down"),
)
"""The tasks of a move in their order, without a group's prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One task of the run."""

    task_id: str
    state: str | None
    """Airflow's; None: it has not run."""
    seconds: float | None = None
    """From its start to its end, its wait included."""

    @property
    def name(self) -> str:
        """Its id without a group's prefix."""
        return self.task_id.rpartition(".")[2]

    @property
    def has_failed(self) -> bool:
        """Whether it failed itself, and not only a task before it."""
        return self.state == "failed"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"task_id": self.task_id, "state": self.state, "seconds": self.seconds}


def order_steps(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return steps in the order of a move, unknown ones last."""
    places = {name: place for place, name in enumerate(STEPS)}
    return tuple(sorted(steps, key=lambda step: (places.get(step.name, len(places)), step.task_id)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReport:
    """What was done, when, by which run, with which numbers, who approved, and what comes next."""

    status: Mapping[str, Any]
    """The move's, as ``MoveStatus.to_json`` has it."""
    lines: Sequence[str]
    """The same as lines."""
    run: Mapping[str, Any]
    """DAG id, run id, logical date, start, who triggered it, and the time of the report."""
    steps: tuple[Step, ...]
    rollback: Mapping[str, Any] | None = None
    """What was taken back, if the move failed."""
    summaries: Mapping[str, str] = field(default_factory=dict)
    """Of forecast and plan."""
    results: Mapping[str, Any] = field(default_factory=dict)
    """What further tasks returned: ``verified``, ``drill``."""
    remarks: tuple[str, ...] = ()
    """What the report could not find out, or did not do."""

    @property
    def failed(self) -> tuple[str, ...]:
        """The tasks that failed themselves."""
        return tuple(step.task_id for step in self.steps if step.has_failed)

    @property
    def next(self) -> tuple[str, ...]:
        """What to do, as sentences."""
        undone = (self.rollback or {}).get("next")
        sentences = (str(each) for each in (self.status["next"], undone) if each)
        return tuple(dict.fromkeys(sentences))

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "outcome": self.status["state"],
            "status": {**self.status},
            "run": {**self.run},
            "steps": [step.to_json() for step in self.steps],
            "failed": list(self.failed),
            "rollback": self.rollback,
            "next": list(self.next),
            "remarks": list(self.remarks),
            **self.results,
        }

    def to_markdown(self) -> str:
        """Return the summary that a person reads first."""
        parts = [
            f"# Job {self.status['job']}: {self.status['state']}",
            "\n".join(f"- {line}" for line in self.lines),
            _table(("run", ""), [*self.run.items()]),
            _table(("task", "state", "seconds"), [*map(_step_row, self.steps)]),
        ]
        if self.rollback:
            parts.append(f"## Rolled back\n\n{self.rollback['next']}")
        parts += [f"## {name}\n\n{code_block(text)}" for name, text in self.summaries.items()]
        if self.remarks:
            parts.append("\n".join(["## Remarks", "", *(f"- {each}" for each in self.remarks)]))
        return "\n\n".join(parts) + "\n"


def _step_row(step: Step) -> tuple[object, ...]:
    seconds = "" if step.seconds is None else f"{step.seconds:.1f}"
    return step.task_id, step.state or "not run", seconds


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value: object) -> str:
    return "" if value is None else str(value).replace("|", "\\|").replace("\n", " ")
