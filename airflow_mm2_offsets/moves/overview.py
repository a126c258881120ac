"""Where each job is, and what became of its moves: for the command line and the page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from upath import UPath

from airflow_mm2_offsets.errors import HandoverError
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
    since: datetime | None
    """When it came there; None: it has never moved."""
    moves: tuple[MoveStatus, ...]
    """Its moves, oldest first."""
    is_moving: bool
    """Whether a run moves it now."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "job": self.job.name,
            "cluster": self.home.cluster,
            "folder": self.home.folder,
            "since": self.since.isoformat(timespec="seconds") if self.since else None,
            "is_moving": self.is_moving,
            "journal": self.job.journal,
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
    entries = Journal(open_path(job.journal)).entries()
    arrived = [each for each in entries if each.event in {Event.ARRIVE, Event.SETTLE}]
    last = entries[-1] if entries else None
    return JobOverview(
        job=job,
        home=job.home_of(last.home) if last else job.homes[0],
        since=arrived[-1].at if arrived else None,
        moves=tuple(status_of(each) for each in moves_in(job, entries)),
        is_moving=last is not None and last.state is not State.HOME,
    )


def moves_in(job: SparkJob, entries: Sequence[Entry]) -> list[Move]:
    """Return the moves of a journal, oldest first."""
    return [move_of(job, each, entries) for each in entries if each.event is Event.ASK]


def home_at(job: SparkJob, place: str, entries: Sequence[Entry]) -> Home:
    """Return the home that a person names: by its folder, or by its cluster, where it was last.

    Raises:
        HandoverError: It is none of the job's.
    """
    for home in job.homes:
        if place == home.cluster:
            used = [each.home for each in entries if job.home_of(each.home).cluster == place]
            return job.home_of(used[-1]) if used else home
    try:
        return job.home_of(place.rstrip("/"))
    except ValueError as error:
        raise HandoverError(str(error)) from error
