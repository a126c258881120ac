"""Where each job is, and what became of its moves: for the command line and the page."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from upath import UPath

from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.journal import Entry, Event, Journal, State
from airflow_mm2_offsets.moves.move import Move, move_of
from airflow_mm2_offsets.moves.status import MoveStatus, status_of

HISTORY: Final = ("entry", "at", "event", "home", "target", "by", "facts")
"""The columns of a job's history."""
_AT_ONCE: Final = 16
"""How many journals are read at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOverview:
    """One job by its journal."""

    job: SparkJob
    home: Home
    """Where it runs, or has run last."""
    entries: tuple[Entry, ...]
    """Its journal, oldest first."""
    moves: tuple[MoveStatus, ...]
    """Its moves, oldest first."""

    @property
    def since(self) -> datetime | None:
        """When it came to where it is, or was handed over to it; None: it has never moved."""
        came = {Event.HAND_OVER, Event.ARRIVE, Event.SETTLE}
        return next((each.at for each in reversed(self.entries) if each.event in came), None)

    @property
    def is_moving(self) -> bool:
        """Whether a run moves it, or has stopped it."""
        return bool(self.entries) and self.entries[-1].state is not State.HOME

    @property
    def state(self) -> str:
        """The state of the move that is under way; ``at home`` without one."""
        return self.moves[-1].state if self.is_moving and self.moves else "at home"

    @property
    def last_move(self) -> MoveStatus | None:
        """The move under way, or the last one; None: it has never moved."""
        return self.moves[-1] if self.moves else None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "job": self.job.name,
            "cluster": self.home.cluster,
            "folder": self.home.folder,
            "since": self.since.isoformat(timespec="seconds") if self.since else None,
            "is_moving": self.is_moving,
            "journal": self.job.journal,
            "last_entry": self.entries[-1].number if self.entries else 0,
            "moves": [each.to_json() for each in self.moves],
        }

    @property
    def place(self) -> str:
        """Where it is, as one line."""
        since = f" since {self.since.isoformat(timespec='seconds')}" if self.since else ""
        return f"{self.job.name}: at {self.home}{since}"

    def __str__(self) -> str:
        """Return where it is, and the move that is under way, as one line."""
        last = self.last_move
        if not self.is_moving or last is None:
            return self.place
        way = f"{last.policy} move to {last.there}: " if last.there else ""
        since = f" since {last.since.isoformat(timespec='seconds')}" if last.since else ""
        return f"{self.place}; {way}{last.state}{since}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadJob:
    """A job whose journal can't be read: where it runs is not known."""

    job: SparkJob
    problem: str

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"job": self.job.name, "journal": self.job.journal, "problem": self.problem}

    def __str__(self) -> str:
        """Return one line."""
        return f"{self.job.name}: not known: {self.problem}"


def overview_of(job: SparkJob, open_path: Callable[[str], UPath]) -> JobOverview:
    """Return where a job is, and its moves.

    Raises:
        HandoverError: The journal can't be read, or is damaged.
        ConfigurationError: The journal names a folder that is none of the job's.
    """
    entries = tuple(Journal(open_path(job.journal)).entries())
    return JobOverview(
        job=job,
        home=job.home_of(entries[-1].home) if entries else job.homes[0],
        entries=entries,
        moves=tuple(status_of(each) for each in moves_in(job, entries)),
    )


def overviews_of(
    jobs: Sequence[SparkJob], open_path: Callable[[str], UPath], *, timeout: float | None = None
) -> list[JobOverview | UnreadJob]:
    """Return where each of several jobs is; a journal that can't be read hides no other job.

    Args:
        jobs: The jobs.
        open_path: Makes a path of a location; it is called in several threads.
        timeout: Seconds until a journal must have been read; None: as long as its storage takes.
    """
    pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="mm2-journal")
    reads = [pool.submit(overview_of, job, open_path) for job in jobs]
    try:
        wait(reads, timeout)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return [_read(job, read, timeout) for job, read in zip(jobs, reads, strict=True)]


def _read(
    job: SparkJob, read: Future[JobOverview], timeout: float | None
) -> JobOverview | UnreadJob:
    if not read.done() or read.cancelled():
        late = f"its journal {job.journal} was not read within {timeout:g} s"
        return UnreadJob(job=job, problem=late)
    try:
        return read.result()
    except Mm2OffsetsError as error:
        return UnreadJob(job=job, problem=without_login(str(error)))


def moves_in(job: SparkJob, entries: Sequence[Entry]) -> list[Move]:
    """Return the moves of a journal, oldest first."""
    return [move_of(job, each, entries) for each in entries if each.event is Event.ASK]


def history_of(entries: Iterable[Entry]) -> list[tuple[str, ...]]:
    """Return the rows of a job's history, one for each entry, with the columns of ``HISTORY``."""
    rows = (
        (
            *(str(each.number), each.at.isoformat(timespec="seconds"), each.event.value),
            *(each.home, each.target or "", each.run, tell_facts(each)),
        )
        for each in entries
    )
    return [tuple(map(without_login, row)) for row in rows]


def history_text(rows: Iterable[Sequence[str]]) -> str:
    """Return the rows of ``history_of`` as text: what happened, then where, and what it says."""
    lines = []
    for number, at, event, home, target, by, facts in rows:
        lines.append(f"{number}  {at}  {event}  by {by}")
        where = f"{home} -> {target}" if target and target != home else home
        lines += [f"   {each}" for each in (where, facts) if each]
    return "\n".join(lines)


def tell_facts(entry: Entry) -> str:
    """Return what an entry says beside its event and its homes, in words."""
    facts, numbers = entry.facts, entry.facts.get("numbers") or {}
    approval = entry.facts.get("approval") or {}
    told = {
        **{name: facts.get(name) for name in ("policy", "proof", "ended_by", "plan")},
        **{name: facts.get(name) for name in ("waits_for", "asked_in", "until")},
        **numbers,
        **{name: approval.get(name) for name in ("approved", "by")},
    }
    return ", ".join(
        f"{name.replace('_', ' ')}: {value}" for name, value in told.items() if value is not None
    )
