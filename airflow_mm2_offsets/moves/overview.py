"""Where each job is, and what became of its moves: for the command line and the page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from upath import UPath

from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.journal import Entry, Event, Journal, State
from airflow_mm2_offsets.moves.move import Move, move_of
from airflow_mm2_offsets.moves.status import MoveStatus, status_of


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
        """When it came to where it is; None: it has never moved."""
        came = {Event.ARRIVE, Event.SETTLE}
        return next((each.at for each in reversed(self.entries) if each.event in came), None)

    @property
    def is_moving(self) -> bool:
        """Whether a run moves it, or has stopped it."""
        return bool(self.entries) and self.entries[-1].state is not State.HOME

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

    def __str__(self) -> str:
        """Return one line."""
        since = f" since {self.since.isoformat(timespec='seconds')}" if self.since else ""
        line = f"{self.job.name}: at {self.home}{since}"
        return f"{line}; {self.moves[-1].sentence()}" if self.is_moving else line


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


def moves_in(job: SparkJob, entries: Sequence[Entry]) -> list[Move]:
    """Return the moves of a journal, oldest first."""
    return [move_of(job, each, entries) for each in entries if each.event is Event.ASK]


def tell_facts(entry: Entry) -> str:
    """Return what an entry says beside its event and its homes, in words."""
    facts, numbers = entry.facts, entry.facts.get("numbers") or {}
    approval = entry.facts.get("approval") or {}
    told = {
        **{name: facts.get(name) for name in ("policy", "proof", "ended_by", "plan")},
        **numbers,
        **{name: approval.get(name) for name in ("approved", "by")},
    }
    return ", ".join(
        f"{name.replace('_', ' ')}: {value}" for name, value in told.items() if value is not None
    )
