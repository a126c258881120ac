"""Where each job is, and what became of its moves: for the command line and the page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from upath import UPath

from airflow_mm2_offsets.core.policy import PLANNED, parse_policy
from airflow_mm2_offsets.errors import HandoverError
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.moves.fences import derive_fences, raise_fence
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.journal import Entry, Event, Journal, State, Step
from airflow_mm2_offsets.moves.move import Move
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
            "folder": without_login(self.home.folder),
            "since": self.since.isoformat(timespec="seconds") if self.since else None,
            "is_moving": self.is_moving,
            "journal": without_login(self.job.journal),
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
    asks = [each for each in entries if each.event is Event.ASK]
    return [
        Move(
            run=ask.run,
            job=job,
            policy=parse_policy(ask.facts.get("policy", PLANNED.name)),
            here=job.home_of(ask.home),
            there=job.home_of(ask.target) if ask.target else None,
            number=ask.number,
            entries=tuple(entries),
        )
        for ask in asks
    ]


def settle(
    job: SparkJob,
    home: Home,
    open_path: Callable[[str], UPath],
    *,
    by: str,
    seen: int,
) -> Entry:
    """Record a person's word where a job runs; fences follow from it.

    Stop the job at its other homes first, or two drivers read the same records.

    Args:
        job: The job.
        home: Where it runs.
        open_path: Makes a path of a location.
        by: Who says so.
        seen: The number of the last entry that the person has seen.

    Raises:
        HandoverError: The journal has gone on, or can't be read or written.
        StopError: A fence can't be written.
    """
    journal = Journal(open_path(job.journal))
    step = Step(event=Event.SETTLE, run=by, move=seen, home=home.folder)
    entry = journal.record(step).entry
    for folder, fence in derive_fences(journal.entries(), job.journal).items():
        raise_fence(open_path(f"{folder}/control"), fence)
    return entry


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
