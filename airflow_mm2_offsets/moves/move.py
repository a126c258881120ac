"""One attempt to move one job: where it is, where it goes, and each step in the job's journal.

Every step of a failover finds its move here. ``find_move`` changes nothing. All other functions
record their event, and then write the fences that follow from it; whatever was killed in between
does the same again.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from upath import UPath

from airflow_mm2_offsets.core.policy import Policy
from airflow_mm2_offsets.errors import ConfigurationError, HandoverError, StopError
from airflow_mm2_offsets.locations import same_folder
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.moves.fences import Fence, derive_fences, raise_fence
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.journal import Entry, Event, FenceState, Journal, Step
from airflow_mm2_offsets.storage import create_new, list_files, open_location, read_text

log = logging.getLogger(__name__)

CLAIM: Final = "journal.json"
"""In a home's control location: the journal that the home belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One attempt to move one job."""

    run: str
    """Who moves it: DAG id and run id."""
    job: SparkJob
    policy: Policy
    here: Home
    """Where the job is."""
    there: Home | None
    """Where it goes: a folder that no stay of the job has used. None: it is only stopped."""
    number: int = 0
    """The number of the journal's entry that it began with; 0: it has not begun."""
    entries: tuple[Entry, ...] = ()
    """The journal, when the move was found."""

    @property
    def request_id(self) -> str:
        """What its stop is called."""
        return f"{self.run}#{self.number}"

    @property
    def last(self) -> Entry | None:
        """The journal's last entry."""
        return self.entries[-1] if self.entries else None

    def entry(self, event: Event) -> Entry | None:
        """Return the move's own entry of an event, the latest one."""
        own = (each for each in reversed(self.entries) if each.move == self.number)
        return next((each for each in own if each.event is event), None)

    def facts(self, event: Event) -> Mapping[str, Any]:
        """Return what the move's own entry of an event says; nothing where there is none."""
        entry = self.entry(event)
        return entry.facts if entry else {}

    def noted(self, name: str) -> Any:  # noqa: ANN401 - plain JSON
        """Return what the move's latest entry says that has a fact of this name; None without."""
        own = (each.facts for each in reversed(self.entries) if each.move == self.number)
        return next((facts[name] for facts in own if name in facts), None)

    @property
    def has_begun_there(self) -> bool:
        """Whether its job has begun where it was handed over to."""
        return self.entry(Event.HAND_OVER) is not None and self.entry(Event.ARRIVE) is not None

    @property
    def is_way_home(self) -> bool:
        """Whether the job goes to a cluster where it has been before."""
        homes = {each.home for each in self.entries if each.number < (self.number or len(self))}
        cluster = self.there and self.there.cluster
        return any(self.job.home_of(home).cluster == cluster for home in homes)

    def __len__(self) -> int:
        """Return the number of the next entry."""
        return len(self.entries) + 1


@dataclass(frozen=True, slots=True)
class Mover:
    """Carries the steps of one run's moves out."""

    job: SparkJob
    run: str
    policy: Policy
    open_path: Callable[[str], UPath]
    """Makes a path of a location."""

    @property
    def journal(self) -> Journal:
        """The job's journal."""
        return Journal(self.open_path(self.job.journal))

    def find(self) -> Move:
        """Return this run's move; one that has not begun goes to a folder that is free now.

        Raises:
            HandoverError: The journal can't be read, or is damaged.
            ConfigurationError: The journal names a folder that is none of the job's.
        """
        entries = tuple(self.journal.entries())
        own = [each for each in entries if each.run == self.run and each.event is Event.ASK]
        if own:
            ask = own[-1]
            here, number = self.job.home_of(ask.home), ask.number
            there = self.job.home_of(ask.target) if ask.target else None
        else:
            here = self.job.home_of(entries[-1].home) if entries else self.job.homes[0]
            there, number = self._free_home(self.job.other_home(here), entries), 0
        return Move(
            run=self.run,
            job=self.job,
            policy=self.policy,
            here=here,
            there=there,
            number=number,
            entries=entries,
        )

    def ask(self, *, takes_over: str | None = None) -> Move:
        """Begin the move, or go on with it: from now on no driver starts where the job is.

        Args:
            takes_over: The run that has ended, and that this one may take the job over from.

        Raises:
            LockedError: Another run moves the job.
            HandoverError: This run has handed the job over before; a folder belongs to another
                journal; or the journal can't be read or written.
            StopError: The fence can't be written, and nothing of the source may be lost.
        """
        move = self.find()
        self._claim(move.here, may_be_lost=self.policy.source_may_be_lost)
        if move.there is not None:
            self._claim(move.there, may_be_lost=False)
        asked = Step(
            event=Event.ASK,
            run=self.run,
            home=move.here.folder,
            target=move.there.folder if move.there else None,
            takes_over=takes_over,
            facts={"policy": self.policy.name},
        )
        self.journal.record(asked)
        return self._with_fences()

    def record(self, event: Event, **facts: Any) -> Move:
        """Record a step of the move that has begun, and write the fences that follow from it.

        Raises:
            LockedError: Another run has taken the job over.
            HandoverError: The move has not begun, the step is not possible now, or the journal
                can't be read or written.
            StopError: A fence can't be written, and nothing of the source may be lost.
        """
        self.attempt(event, **facts)
        return self._with_fences()

    def attempt(self, event: Event, **facts: Any) -> bool:
        """Record a step, and return whether this call was the first one; see ``record``."""
        move = self.find()
        if not move.number:
            raise HandoverError(
                f"job {self.job.name}: {self.run!r} has not begun to move it; clear the task that "
                f"stops it, with all after it"
            )
        step = Step(
            event=event,
            run=self.run,
            move=move.number,
            is_fenced=self.job.is_controlled,
            facts=facts,
        )
        return self.journal.record(step).is_new

    def fences(self) -> dict[str, Fence]:
        """Return what the journal says to the drivers of each home, by its folder.

        Raises:
            HandoverError: The journal can't be read.
        """
        return derive_fences(self.journal.entries(), self.job.journal)

    def write_fences(self) -> list[str]:
        """Write each fence that follows from the journal; return what could not be, as sentences.

        Raises:
            HandoverError: The journal can't be read.
        """
        problems: list[str] = []
        for folder, fence in self.fences().items():
            if problems and fence.state is FenceState.OPEN and not self.policy.source_may_be_lost:
                break  # a job that is not closed elsewhere must not start here
            try:
                raise_fence(self.open_path(f"{folder}/control"), fence)
            except (StopError, ConfigurationError) as error:
                problems.append(f"no fence was written in {without_login(folder)}: {error}")
        return problems

    def _with_fences(self) -> Move:
        problems = self.write_fences()
        if problems and not self.policy.source_may_be_lost:
            raise StopError("; ".join(problems))
        for problem in problems:
            log.warning("%s", problem)
        return self.find()

    def _free_home(self, home: Home | None, entries: Sequence[Entry]) -> Home | None:
        """Return the first stay whose folder no stay of the job, and no other job, has used."""
        if home is None:
            return None
        used = {each.home for each in entries}
        stays = (home.stay(number) for number in count(1))
        return next(each for each in stays if each.folder not in used and self._is_free(each))

    def _is_free(self, home: Home) -> bool:
        control = self.open_path(home.control)
        files = list_files(self.open_path(home.checkpoint), HandoverError)
        return not files and "driver.json" not in list_files(control, HandoverError)

    def _claim(self, home: Home, *, may_be_lost: bool) -> None:
        """Note in a home which journal it belongs to; no second journal may move its job.

        Raises:
            HandoverError: It belongs to another journal, or it can't be read or written.
        """
        try:
            control = self.open_path(home.control)
            if (claim := read_claim(control)) is None:
                own = {"schema_version": 2, "job": self.job.name, "journal": self.job.journal}
                data = json.dumps(own, indent=1).encode()
                if create_new(control / CLAIM, data, HandoverError):
                    return
                claim = read_claim(control)
        except (HandoverError, ConfigurationError) as error:
            if not (may_be_lost and (error.retryable or isinstance(error, ConfigurationError))):
                raise
            log.warning("%s is not claimed: %s", home, error)
            return
        noted = claim["journal"] if claim else ""
        if noted != self.job.journal and not same_folder(self.open_path(self.job.journal), noted):
            raise HandoverError(
                f"{home} belongs to the journal {noted}, and job {self.job.name} has "
                f"{without_login(self.job.journal)}: two journals could start two jobs there. Give "
                f"the same records, or another folder",
                file=str(control / CLAIM),
            )


def read_claim(control: UPath) -> Mapping[str, Any] | None:
    """Return the job and the journal that a control location belongs to; None if none is noted.

    Raises:
        HandoverError: It can't be read, or is damaged.
    """
    path = open_location(control, HandoverError) / CLAIM
    text = read_text(path, HandoverError)
    if text is None:
        return None
    try:
        claim = json.loads(text)
        return {name: str(claim[name]) for name in ("job", "journal")}
    except (KeyError, TypeError, ValueError) as error:
        raise HandoverError(f"it is damaged: {error}", file=str(path)) from error


def job_at(folder: str, open_path: Callable[[str], UPath]) -> SparkJob:
    """Return the job that lives in a folder, to stop it without a file of jobs.

    Raises:
        HandoverError: The folder can't be read.
    """
    home = Home(cluster="here", folder=folder)
    claim = read_claim(open_path(home.control))
    records, _, name = (claim["journal"] if claim else home.folder).rpartition("/")
    return SparkJob(name=name, homes=(home,), records=records if claim else None)
