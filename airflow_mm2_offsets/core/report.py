"""What a failover did, as one document and as Markdown; pure. ``operators.report`` fills it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from airflow_mm2_offsets.core.approval import code_block
from airflow_mm2_offsets.core.brief import LOCATION
from airflow_mm2_offsets.core.mode import FailoverMode

SCHEMA_VERSION = 1
STEPS = (
    *("check", "cancel_source", "stop_source", "read_positions", "wait_replicated", "translate"),
    *("forecast", "approve", "hand_over", "submit_target", "wait_started", "verify", "tear_down"),
    "roll_back",
)
"""The tasks of a failover in their order, without a group's prefix."""


class Outcome(StrEnum):
    """Where a failover ended."""

    MOVED = "moved"
    DRILLED = "drilled"
    ROLLED_BACK = "rolled_back"
    FAILED_BEFORE_STOP = "failed_before_stop"
    FAILED_IN_STOP = "failed_in_stop"
    """The platform was told to cancel the job, and nothing proves that it has stopped."""
    FAILED_BEFORE_HANDOVER = "failed_before_handover"
    FAILED_AFTER_HANDOVER = "failed_after_handover"
    FAILED_DRILL = "failed_drill"
    DRY_RUN = "dry_run"
    """Nothing was changed: the steps said what they would do."""
    UNFINISHED = "unfinished"
    """No task failed, and the job was not moved: somebody marked or skipped tasks."""


NEXT: Mapping[Outcome, str] = {
    Outcome.MOVED: "The job runs on the target. Keep this report: a failback needs the plan.",
    Outcome.DRILLED: "Nothing was moved: the job runs on the source as before.",
    Outcome.ROLLED_BACK: "The failover was given up, and the job may run on the source. Correct "
    "what the failed task names, then start a new run.",
    Outcome.FAILED_BEFORE_STOP: "This run has not stopped the job: it runs where it ran before. "
    "Correct what the failed task names, then clear it or start a new run.",
    Outcome.FAILED_IN_STOP: "The job's platform was told to cancel it, and nothing proves that it "
    "has stopped: see there whether it runs. Nothing was moved. Correct what the failed task "
    "names, and clear cancel_source with all after it; or give the failover up, and start the job "
    "on the source if it does not run.",
    Outcome.FAILED_BEFORE_HANDOVER: "The job has stopped, and no job runs on the target. Correct "
    "what the failed task names and clear it; or give the failover up: lift the fence "
    "(airflow-mm2-offsets fence lift), and start the job on the source again.",
    Outcome.FAILED_AFTER_HANDOVER: "The job is handed over. Look for it on the target before "
    "anything else: if it runs there from the planned offsets, clear the failed task; if it began "
    "elsewhere, stop it. Start nothing on the source.",
    Outcome.FAILED_DRILL: "Nothing was moved: the job runs on the source. If tear_down failed, "
    "clear it, so that nothing of the drill is left.",
    Outcome.DRY_RUN: "This was a dry run: nothing was changed.",
    Outcome.UNFINISHED: "No task failed, and the job was not moved. See which tasks were skipped "
    "or marked.",
}


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


def order_steps(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return steps in the order of a failover, unknown ones last."""
    places = {name: place for place, name in enumerate(STEPS)}
    return tuple(sorted(steps, key=lambda step: (places.get(step.name, len(places)), step.task_id)))


def outcome(
    mode: str,
    steps: Sequence[Step],
    *,
    is_handed_over: bool | None,
    is_fenced: bool = False,
    is_dry_run: bool = False,
    rollback: Mapping[str, Any] | None = None,
) -> Outcome:
    """Return where a failover ended.

    Args:
        mode: The failover's.
        steps: Its tasks.
        is_handed_over: Whether a target job may run: the fence or the claim says so; None: neither
            can be read.
        is_fenced: Whether the run's fence stands: then the job has stopped, or is stopping.
        is_dry_run: Whether the steps only said what they would do.
        rollback: What ``RollbackFailoverOperator`` returned, if it ran.
    """
    states = {step.name: step.state for step in steps}
    has_failed = any(step.has_failed for step in steps)
    if is_dry_run and not has_failed:
        return Outcome.DRY_RUN
    if mode == FailoverMode.DRILL:
        return Outcome.FAILED_DRILL if has_failed else Outcome.DRILLED
    if is_handed_over is None:
        starts = (states.get("hand_over"), states.get("submit_target"))
        is_handed_over = not {"success", "failed"}.isdisjoint(starts)
    if is_handed_over or states.get("wait_started") == "success":
        return Outcome.FAILED_AFTER_HANDOVER if has_failed else Outcome.MOVED
    if not has_failed:
        return Outcome.UNFINISHED
    return _outcome_before_handover(states, is_fenced=is_fenced, rollback=rollback)


def _outcome_before_handover(
    states: Mapping[str, str | None], *, is_fenced: bool, rollback: Mapping[str, Any] | None
) -> Outcome:
    if states.get("roll_back") == "success" and rollback and rollback.get("done") == "rolled_back":
        return Outcome.ROLLED_BACK
    if is_fenced or states.get("stop_source") == "success":
        return Outcome.FAILED_BEFORE_HANDOVER
    if states.get("cancel_source") in {"success", "failed"}:
        return Outcome.FAILED_IN_STOP
    return Outcome.FAILED_BEFORE_STOP


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverReport:
    """What was done, when, by which run, with which numbers, who approved, and what comes next."""

    mode: str
    outcome: Outcome
    run: Mapping[str, Any]
    """DAG id, run id, logical date, start, who triggered it, and the time of the report."""
    folders: Mapping[str, str | None]
    steps: tuple[Step, ...]
    results: Mapping[str, Any] = field(default_factory=dict)
    """What the tasks returned, by a short name; None where a task was skipped or failed."""
    intents: tuple[str, ...] = ()
    """Of a dry run: what each step would have done."""
    remarks: tuple[str, ...] = ()
    """What the report could not find out, or did not do."""

    @property
    def failed(self) -> tuple[str, ...]:
        """The tasks that failed themselves."""
        return tuple(step.task_id for step in self.steps if step.has_failed)

    @property
    def next(self) -> tuple[str, ...]:
        """What to do, as sentences."""
        rollback = self.results.get("rollback") or {}
        own = rollback.get("next")
        kept = [str(own)] if own and rollback.get("done") != "nothing_to_undo" else []
        if self.intents:
            return (NEXT[Outcome.DRY_RUN],)
        stopped = self.results.get("stopped") or {}
        is_moved = self.outcome in {Outcome.MOVED, Outcome.FAILED_AFTER_HANDOVER}
        # Of a stop by the user's word: the fence is still to be raised.
        unfenced = [str(stopped["next"])] if is_moved and stopped.get("next") else []
        return (NEXT[self.outcome], *unfenced, *kept)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON, with what the tasks returned: of long plans a brief."""
        return {
            "schema_version": SCHEMA_VERSION,
            "mode": self.mode,
            "outcome": self.outcome.value,
            "run": {**self.run},
            "folders": {**self.folders},
            "steps": [
                {"task_id": step.task_id, "state": step.state, "seconds": step.seconds}
                for step in self.steps
            ],
            "failed": list(self.failed),
            "numbers": self._numbers(),
            "intents": list(self.intents),
            "next": list(self.next),
            "remarks": list(self.remarks),
            **self.results,
        }

    def to_markdown(self) -> str:
        """Return the summary that a person reads first."""
        texts = {name: _summary(self.results.get(name)) for name in ("forecast", "plan")}
        parts = [
            f"# Failover ({self.mode}): {self.outcome.value.replace('_', ' ')}",
            "\n".join(f"- {sentence}" for sentence in self.next),
            _table(("", ""), [*self._facts(), *self._approval(), *self._number_rows()]),
            _table(("task", "state", "seconds"), [*map(_step_row, self.steps)]),
        ]
        if self.intents:
            parts.append("\n".join(["## Intents", "", *(f"- {each}" for each in self.intents)]))
        parts += [
            f"## {name.capitalize()}\n\n{code_block(text)}" for name, text in texts.items() if text
        ]
        if self.remarks:
            parts.append("\n".join(["## Remarks", "", *(f"- {each}" for each in self.remarks)]))
        return "\n\n".join(parts) + "\n"

    def _facts(self) -> list[tuple[str, object]]:
        values = {**self.run, **{f"{name} folder": each for name, each in self.folders.items()}}
        facts = [(name.replace("_", " "), each) for name, each in values.items()]
        facts += [(f"whole {name}", self._whole(name)) for name in ("plan", "forecast")]
        return [(name, each) for name, each in facts if each is not None]

    def _whole(self, name: str) -> str | None:
        """Return where the plan or forecast lies of which the report has the brief.

        A roll-back renames a plan's file, and a later run may write another one in its place: the
        digest tells them apart.
        """
        result = self.results.get(name)
        if not isinstance(result, Mapping) or LOCATION not in result:
            return None
        renamed = ", then .rolled-back at its end" if self.outcome is Outcome.ROLLED_BACK else ""
        return f"{result[LOCATION]}{renamed} (digest {result.get('digest')})"

    def _approval(self) -> list[tuple[str, object]]:
        approval = self.results.get("approval")
        if not isinstance(approval, Mapping):
            return []
        return [("approval", approval.get("why"))]

    def _number_rows(self) -> list[tuple[str, object]]:
        return [
            (f"{part}: {name.replace('_', ' ')}", _range(value))
            for part, totals in self._numbers().items()
            for name, value in totals.items()
        ]

    def _numbers(self) -> dict[str, dict[str, Any]]:
        """Return the totals of each task that has some; a report lists no partitions."""
        numbers = {}
        for name, result in self.results.items():
            totals = result.get("totals") if isinstance(result, Mapping) else None
            if isinstance(totals, Mapping):
                numbers[name] = {**totals}
        return numbers


def _summary(result: object) -> str | None:
    summary = result.get("summary") if isinstance(result, Mapping) else None
    return str(summary) if summary else None


def _range(value: object) -> object:
    if isinstance(value, Mapping) and {"at_least", "at_most"} <= set(value):
        most = "unknown" if value["at_most"] is None else value["at_most"]
        return f"{value['at_least']} to {most}"
    return "unknown" if value is None else value


def _step_row(step: Step) -> tuple[object, ...]:
    seconds = "" if step.seconds is None else f"{step.seconds:.1f}"
    return step.task_id, step.state or "not run", seconds


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
