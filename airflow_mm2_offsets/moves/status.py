"""What is going on with a move: made once, for log, tab, approval, report and command line."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Final

from airflow_mm2_offsets.logins import without_login, without_logins
from airflow_mm2_offsets.moves.jobs import settle_command
from airflow_mm2_offsets.moves.journal import Entry, Event, State
from airflow_mm2_offsets.moves.move import Move

_STATES: Final = {
    Event.ASK: "stopping",
    Event.PROVE: "stopped",
    Event.WITHDRAW: "withdrawn",
    Event.HAND_OVER: "handed over",
    Event.SUBMIT: "handed over",
    Event.RETURN: "given up",
}
"""What a move's own last entry makes of it, but for ``note`` and ``arrive``."""
_NEXT: Final = {
    "not begun": "Nothing was changed: {job} runs at {here}. If a task has failed, correct what it "
    "names, and start a new run.",
    "stopping": "{job} is being stopped at {here}, and runs until it answers. If the run has "
    "ended, start a new one: it takes {job} over.",
    "stopped": "{job} runs nowhere since {since}. Correct what the failed task names, and clear it "
    "to go on; or start a new run, which takes {job} over; or let it run again: "
    "{settle}, and start it there.",
    "waiting": "{job} runs nowhere since {since}. The run goes on by itself when what it waits for "
    "has come, and gives up at {until}.",
    "asked": "{job} runs nowhere since {since}. Answer in task {asked_in} of this move's run.",
    "withdrawn": "{job} runs at {here} as before. Correct what the failed task names, then start a "
    "new run.",
    "unclear": "{job} was not moved. {ended_by} was to end it at {here}, and its end was not seen: "
    "see whether it runs there. If not, start it there; it continues where it stopped.",
    "handed over": "{job} was handed over to {there}, and its first batch was not seen. See "
    "whether it runs there: if so, clear wait_started. If it runs nowhere, start it there: clear "
    "the run of its DAG, or submit it. Start nothing at {here}.",
    "moved": "{job} runs at {there}. A new move brings it back.",
    "moved in a disaster": "{job} runs at {there}. Move its producers. When {here} is back, start "
    "nothing there: a new move brings {job} home.",
    "given up": "{job} was not moved, and may run at {here}. If it does not run there by now, "
    "start it: it continues where it stopped.",
    "settled": "A person has said where {job} runs: {here}.",
    "taken over": "Another run moves {job} now. See that run.",
    "past": "Nothing by this move: it is over, and the journal has gone on. Now {now}. See "
    "`airflow-mm2-offsets jobs show {job} --jobs FILE`.",
    "drilled": "{job} is at {here}, and was left alone. A move to {there} would work.",
    "drill failed": "{job} is at {here}, and was left alone. A move to {there} may fail, too: "
    "correct what the failed task names, then start a new drill.",
}
"""What a person does next, in each state, and while a move that has stopped waits."""
_NEXT_OF_STOP: Final = {
    **_NEXT,
    "stopping": "{job} is being stopped at {here}, and runs until it answers. If the command that "
    "stops it has ended, say where {job} runs: {settle}.",
    "stopped": "{job} runs nowhere since {since}. A failover moves it from here. To let it run "
    "here again: {settle}, and start it.",
    "withdrawn": "{job} runs at {here} as before.",
}
"""The same for a move that goes nowhere: its job is only stopped, by no task."""

_OVER: Final = frozenset({"given up", "settled", "taken over"})
"""The states in which the move is over, and its job may run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveStatus:
    """One move, as a person on call needs it."""

    job: str
    policy: str
    state: str
    """``not begun``, ``stopping``, ``stopped``, ``withdrawn``, ``handed over``, ``moved``, ``given
    up``, ``unclear``, ``settled``, ``taken over``, ``drilled`` or ``drill failed``."""
    here: str
    there: str | None
    since: datetime | None
    """When it came to this state."""
    stopped_at: datetime | None
    """When the stop was proved."""
    arrived_at: datetime | None
    """When its first batch was seen at the target."""
    next: str
    """What a person does next."""
    next_if_failed: str = ""
    """The same where the task that waits has failed; empty: the same."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """Of plan and forecast: ``refused``, ``lost_at_most``, ``read_again_at_most``."""
    run: str = ""
    """Who moves it: DAG id and run id, with a colon between them."""
    job_dag: str | None = None
    """The DAG that runs the job, once it is handed over."""
    job_run: str | None = None
    """Its run that the move has started."""
    waits_for: str | None = None
    """What a task of it waits for at this moment."""
    cause: str | None = None
    """Why it does not go on."""
    deadline: datetime | None = None
    """When what it waits for must have come."""
    asked_in: str | None = None
    """The task in which a person is asked, with its map index in brackets if it is mapped."""
    approved_by: str | None = None

    def downtime(self, now: datetime) -> float | None:
        """Return for how many seconds the job has not run; None if it was not stopped.

        Of a move that is over without an arrival, it ends when the move was: nothing shows when the
        job was started again.
        """
        if self.stopped_at is None or self.state == "withdrawn":
            return None
        end = self.since if self.state in _OVER else self.arrived_at
        return ((end or now) - self.stopped_at).total_seconds()

    def with_cause(self, cause: str) -> "MoveStatus":
        """Return the status of a move that has failed: it waits for nothing."""
        return replace(
            self,
            cause=without_login(cause),
            next=self.next_if_failed or self.next,
            waits_for=None,
            deadline=None,
            asked_in=None,
        )

    def sentence(self) -> str:
        """Return the state in one sentence."""
        where = f"{self.here} -> {self.there}" if self.there else self.here
        since = f", since {self.since.isoformat(timespec='seconds')}" if self.since else ""
        return f"Job {self.job} ({self.policy}, {where}): {self.state}{since}."

    def to_lines(self, now: datetime | None = None) -> list[str]:
        """Return all of it as lines: state, numbers, cause, next step, deadline."""
        down = self.downtime(now or datetime.now(UTC))
        facts = {
            "down for": None if down is None else f"{down:.0f} s",
            **{name.replace("_", " "): value for name, value in self.numbers.items()},
            "waits for": self.waits_for,
            "answer in task": self.asked_in,
            "until": self.deadline and self.deadline.isoformat(timespec="seconds"),
            "cause": self.cause,
            "approved by": self.approved_by,
            "runs as": self.job_run and f"run {self.job_run} of DAG {self.job_dag}",
        }
        shown = [f"{name}: {value}" for name, value in facts.items() if value is not None]
        return [self.sentence(), *shown, f"Next: {self.next}"]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        times = {name: own[name] and own[name].isoformat(timespec="seconds") for name in _TIMES}
        values: dict[str, Any] = without_logins({**own, **times, "numbers": dict(self.numbers)})
        return {"schema_version": 1, **values}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "MoveStatus":
        """Return the status that ``to_json`` wrote; others may have written something else.

        Raises:
            ValueError: It is no status.
        """
        own = {each.name: values[each.name] for each in fields(cls) if each.name in values}
        try:
            times = {name: _time(own.get(name)) for name in _TIMES}
            return cls(**{**own, **times, "numbers": dict(own.get("numbers") or {})})
        except TypeError as error:
            raise ValueError(f"a field is missing or of another kind: {error}") from error


_TIMES: Final = ("since", "stopped_at", "arrived_at", "deadline")


def _time(value: Any) -> datetime | None:  # noqa: ANN401 - plain JSON
    time = datetime.fromisoformat(value) if value else None
    if time is not None and time.tzinfo is None:
        raise ValueError(f"a time has no zone: {value}")
    return time


def status_of(move: Move) -> MoveStatus:
    """Return the status of a move by its journal."""
    return _status(move, *_last_of(move))


def status_of_drill(move: Move, *, has_failed: bool, numbers: Mapping[str, Any]) -> MoveStatus:
    """Return the status of a drill: its job's journal says nothing of it.

    Args:
        move: What would be moved.
        has_failed: Whether a task of the drill has failed.
        numbers: What a move would cost.
    """
    status = _status(move, None, "drill failed" if has_failed else "drilled")
    return replace(status, numbers=numbers)


def _status(move: Move, entry: Entry | None, state: str) -> MoveStatus:
    stopped, arrived = move.entry(Event.PROVE), move.entry(Event.ARRIVE)
    wait, deadline = move.wait, _time(move.wait.get("until"))
    if deadline and deadline < datetime.now(UTC):
        wait, deadline = {}, None
    words = {
        "until": deadline.isoformat(timespec="seconds") if deadline else "no time",
        "job": move.job.name,
        "here": entry.home if entry and entry.event is Event.SETTLE else move.here,
        "settle": settle_command(move.job.journal, move.here.folder),
        "there": move.there or "nowhere",
        "since": stopped.at.isoformat(timespec="seconds") if stopped else "",
        "ended_by": move.noted("ended_by"),
        "asked_in": wait.get("asked_in"),
        "now": move.last,
    }
    steps = _NEXT if move.there else _NEXT_OF_STOP
    approval = move.noted("approval") or {}
    is_there = state in {"handed over", "moved"} and move.job.dag is not None
    return MoveStatus(
        job=move.job.name,
        policy=move.policy.name,
        state=state,
        here=str(move.here),
        there=str(move.there) if move.there else None,
        since=entry.at if entry else None,
        stopped_at=stopped.at if stopped else None,
        arrived_at=arrived.at if arrived and state == "moved" else None,
        next=steps[_step(move, state, str(words["here"]), wait)].format(**words),
        next_if_failed=steps[_step(move, state, str(words["here"]), {})].format(**words),
        numbers=move.noted("numbers") or {},
        run=move.run,
        job_dag=move.job.dag if is_there else None,
        job_run=move.job_run() if is_there else None,
        waits_for=wait.get("waits_for"),
        deadline=deadline,
        asked_in=wait.get("asked_in"),
        approved_by=approval.get("by") if approval.get("approved") else None,
    )


def _step(move: Move, state: str, here: str, wait: Mapping[str, Any]) -> str:
    """Return which of the next steps counts."""
    if _is_past(move, state, here):
        return "past"
    if wait.get("asked_in"):
        return "asked"
    if state == "moved" and move.policy.source_may_be_lost:
        return "moved in a disaster"
    return "waiting" if state == "stopped" and wait else state


def _is_past(move: Move, state: str, here: str) -> bool:
    """Tell whether the job may be elsewhere by now than the move's state says."""
    if not move.number or move.last is None or move.last.move == move.number:
        return False
    if state == "settled":
        return move.last.event is not Event.SETTLE or move.last.home != here
    return state != "taken over" or move.last.state is State.HOME


def _last_of(move: Move) -> tuple[Entry | None, str]:
    """Return the move's last entry that changes its state, and that state."""
    own = [each for each in move.entries if each.move == move.number and move.number]
    steps = [each for each in own if each.event is not Event.NOTE]
    if not steps:
        return None, "not begun"
    last = steps[-1]
    if last.event is Event.ARRIVE:
        is_back = move.entry(Event.RETURN) is not None
        return last, "given up" if is_back else "moved"
    if last.event is Event.WITHDRAW and move.noted("ended_by"):
        return last, "given up" if move.noted("has_ended") else "unclear"
    after = [each for each in move.entries if each.number > last.number and each.move != last.move]
    if after and last.state is not State.HOME:
        is_settled = after[0].event is Event.SETTLE
        return (after[0], "settled") if is_settled else (last, "taken over")
    return last, _STATES[last.event]
