"""One attempt to move one job: where it is, where it goes, and each step in the job's journal.

Every step of a failover finds its move here. ``find_move`` changes nothing. All other functions
record their event, and then write the fences that follow from it; whatever was killed in between
does the same again.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Final

from upath import UPath

from airflow_mm2_offsets.core.policy import PLANNED, Policy, parse_policy
from airflow_mm2_offsets.errors import (
    ConfigurationError,
    HandoverError,
    LostEntriesError,
    Mm2OffsetsError,
)
from airflow_mm2_offsets.locations import location_key, same_folder
from airflow_mm2_offsets.moves.fences import (
    Fence,
    derive_fences,
    is_raised,
    raise_fence,
    read_fence,
)
from airflow_mm2_offsets.moves.jobs import Home, SparkJob, settle_job_command
from airflow_mm2_offsets.moves.journal import Entry, Event, FenceState, Journal, State, Step
from airflow_mm2_offsets.spark.control import DRIVER
from airflow_mm2_offsets.storage import create_new, list_files, open_location, read_text, write_text

OpenPath = Callable[[str], UPath]
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

    def job_run(self, ending: str = "") -> str:
        """Return the id of the DAG run that starts the job: the same in each try of the move.

        It names the job, too: one run of a fleet moves several jobs, which one DAG may run.
        """
        return f"{self.run.replace(':', '__', 1)}__{self.job.name}__{self.number}{ending}"

    @property
    def homes(self) -> tuple[Home, ...]:
        """Where it is, and where it goes."""
        return (self.here, self.there) if self.there else (self.here,)

    @property
    def last(self) -> Entry | None:
        """The journal's last entry."""
        return self.entries[-1] if self.entries else None

    def entries_of(self, event: Event) -> list[Entry]:
        """Return the move's own entries of an event."""
        own = [each for each in self.entries if each.move == self.number]
        return [each for each in own if each.event is event]

    def entry(self, event: Event) -> Entry | None:
        """Return the move's own entry of an event, the latest one."""
        own = self.entries_of(event)
        return own[-1] if own else None

    def facts(self, event: Event) -> Mapping[str, Any]:
        """Return what the move's own entry of an event says; nothing where there is none."""
        entry = self.entry(event)
        return entry.facts if entry else {}

    def noted(self, name: str) -> Any:  # noqa: ANN401 - plain JSON
        """Return what the move's latest note says that has a fact of this name; None without.

        What was decided before the stop was proved again counts no more.
        """
        return next((facts[name] for facts in self._notes() if name in facts), None)

    @property
    def wait(self) -> Mapping[str, Any]:
        """What a task of it waits for: ``waits_for``, ``until``, ``asked_in``; empty: for nothing.

        The journal's last entry says it. Whatever ends a wait is an entry, too.
        """
        last = self.last
        is_own = last is not None and last.move == self.number and last.event is Event.NOTE
        return last.facts if last and is_own and "waits_for" in last.facts else {}

    def _notes(self) -> Iterator[Mapping[str, Any]]:
        """Yield the facts of the move's notes that count, the latest first."""
        own = [each for each in self.entries if each.move == self.number]
        proofs = [each.number for each in own if each.event is Event.PROVE]
        for each in reversed(own):
            is_new = each.state is State.STOPPING or each.number > max(proofs, default=0)
            if each.event is Event.NOTE and is_new:
                yield each.facts

    @property
    def is_handed_over(self) -> bool:
        """Whether its job is handed over, and no later move has begun."""
        is_last = self.last is not None and self.last.move == self.number
        return is_last and self.entry(Event.HAND_OVER) is not None

    @property
    def has_begun_there(self) -> bool:
        """Whether its job has begun where it was handed over to."""
        return self.entry(Event.HAND_OVER) is not None and self.entry(Event.ARRIVE) is not None

    @property
    def is_under_way(self) -> bool:
        """Whether it has begun and not ended, and no other run has taken the job over."""
        last = self.last
        return last is not None and last.move == self.number and last.state is not State.HOME


@dataclass(frozen=True, slots=True)
class Mover:
    """Carries the steps of one run's moves out."""

    job: SparkJob
    run: str
    policy: Policy
    open_path: OpenPath
    """Makes a path of a location."""
    to: str | None = None
    """The cluster that the job goes to; None: its other one."""

    @property
    def journal(self) -> Journal:
        """The job's journal."""
        return Journal(self.open_path(self.job.journal))

    def find(self) -> Move:
        """Return this run's move; one that has not begun goes to a folder that is free now.

        Raises:
            HandoverError: The journal can't be read, is damaged, or has lost its entries.
            ConfigurationError: The journal names a folder that is none of the job's.
        """
        entries = tuple(self.journal.entries())
        return self._own(entries) or self._next(entries)

    def find_to_ask(self) -> Move:
        """Return the move that ``ask`` goes on with, or begins.

        Raises:
            HandoverError: As of ``find``; or the job has come to where this run was to move it.
            ConfigurationError: As of ``find``.
        """
        entries = tuple(self.journal.entries())
        own = self._own(entries)
        if own and own.is_under_way:
            return own
        move = self._next(entries)
        # Cleared after another run has moved the job, it must not move the job back.
        if own and not own.is_handed_over and own.there and own.there.cluster == move.here.cluster:
            raise HandoverError(f"job {self.job.name} is already at {move.here}")
        return move

    def ask(self, *, takes_over: str | None = None) -> Move:
        """Begin the move, or go on with it: from now on no driver starts where the job is.

        Args:
            takes_over: The run that has ended, and that this one may take the job over from.

        Raises:
            LockedError: Another run moves the job.
            HandoverError: This run has handed the job over before; the job is where it is to go; a
                folder belongs to another journal; or the journal has lost entries, or can't be read
                or written.
            StopError: The fence can't be written, and nothing of the source may be lost.
        """
        move = self.find_to_ask()
        if self.to == move.here.cluster:
            raise HandoverError(f"job {self.job.name} is already at {move.here}")
        self._write_missing_fences(move.entries)
        for home in move.homes:
            self._unless_lost(home, move, self._check_claim)
        asked = Step(
            event=Event.ASK,
            run=self.run,
            home=move.here.folder,
            target=move.there.folder if move.there else None,
            takes_over=takes_over,
            facts={"policy": self.policy.name},
        )
        return self._fenced(self.journal.record(asked).entries)

    def _write_missing_fences(self, entries: Sequence[Entry]) -> None:
        """Write what a kill, or a storage that was lost, has left out."""
        try:
            problems = write_fences(self.job, entries, self.open_path)
        except LostEntriesError:
            if len(self.journal.entries()) == len(entries):
                raise
            return  # another run has just gone on, and decides
        for problem in problems:
            log.warning("%s", problem)

    def record(self, move: Move, event: Event, **facts: Any) -> Move:
        """Record a step of a move that has begun, and write the fences that follow from it.

        Args:
            move: The move, as it was when the step was decided. A step that was paused, and goes on
                when the run has begun a later move, changes nothing.
            event: What the step does.
            facts: What it has found or decided, as plain JSON.

        Raises:
            LockedError: Another move of the job has begun since.
            HandoverError: The move has not begun, the step is not possible now, or the journal
                can't be read or written.
            StopError: A fence can't be written, and nothing of the source may be lost.
        """
        if not move.number:
            raise HandoverError(
                f"job {self.job.name}: {self.run!r} has not begun to move it; clear the task that "
                f"stops it, with all after it"
            )
        step = Step(
            event=event,
            run=self.run,
            move=move.number,
            seen=move.last.number if move.last else 0,
            is_fenced=self.job.is_controlled,
            facts=facts,
        )
        return self._fenced(self.journal.record(step).entries)

    def fences(self) -> dict[str, Fence]:
        """Return what the journal says to the drivers of each home, by its folder.

        Raises:
            HandoverError: The journal can't be read.
        """
        return derive_fences(self.journal.entries(), self.job.journal)

    def _own(self, entries: tuple[Entry, ...]) -> Move | None:
        own = [each for each in entries if each.run == self.run and each.event is Event.ASK]
        return move_of(self.job, own[-1], entries) if own else None

    def _next(self, entries: tuple[Entry, ...]) -> Move:
        """Return the move that would begin now."""
        if not entries:
            self._refuse_lost_journal()
        here = self.job.home_of(entries[-1].home) if entries else self.job.homes[0]
        return Move(
            run=self.run,
            job=self.job,
            policy=self.policy,
            here=here,
            there=self._free_home(self.job.other_home(here), entries),
            entries=entries,
        )

    def _refuse_lost_journal(self) -> None:
        """Raise if a home shows that the job had a journal, and it has no entry.

        Raises:
            HandoverError: The journal was lost, or is looked for in another folder.
        """
        for home in self.job.homes:
            try:
                control = self.open_path(home.control)
                has_journal = self._check_claim(home) or read_fence(control) is not None
            except Mm2OffsetsError as error:
                if not (self.policy.source_may_be_lost and _is_unreachable(error)):
                    raise
                log.warning("%s can't be looked at: %s", home, error)
                continue
            if has_journal:
                raise HandoverError(
                    f"job {self.job.name} has no journal in {self.job.journal}, and {home} has "
                    f"been in it: restore it. Who knows where the job runs may say so: "
                    f"{settle_job_command(self.job.name)}",
                    file=str(control),
                )

    def _fenced(self, entries: tuple[Entry, ...]) -> Move:
        """Write the fences of this run's move, closed ones first, and return it."""
        move = self._own(entries)
        if move is None:
            raise AssertionError("the run has recorded a step, and has no move")
        fences = derive_fences(entries, self.job.journal)
        homes = {location_key(home.folder): home for home in move.homes}
        for folder, fence in fences.items():
            if home := homes.get(location_key(folder)):
                self._unless_lost(home, move, partial(self._write, fence))
        return move

    def _unless_lost(self, home: Home, move: Move, do: Callable[[Home], object]) -> None:
        """Do something at a home; in a disaster, the one that the job leaves may be lost."""
        try:
            do(home)
        except Mm2OffsetsError as error:
            may_be_lost = self.policy.source_may_be_lost and home == move.here
            if not (may_be_lost and _is_unreachable(error)):
                raise
            log.warning("%s can't be reached: %s", home, error)

    def _write(self, fence: Fence, home: Home) -> None:
        write_fence(self.open_path(home.control), fence, self.job.name)

    def _check_claim(self, home: Home) -> bool:
        return check_claim(self.open_path(home.control), self.job.journal)

    def _free_home(self, home: Home | None, entries: Sequence[Entry]) -> Home | None:
        """Return the first stay whose folder no stay of the job, and no other job, has used."""
        if home is None:
            return None
        used = {location_key(each.home) for each in entries}
        stays = (home.stay(number) for number in count(1))
        return next(
            each for each in stays if location_key(each.folder) not in used and self._is_free(each)
        )

    def _is_free(self, home: Home) -> bool:
        control = self.open_path(home.control)
        files = list_files(self.open_path(home.checkpoint), HandoverError)
        return not files and DRIVER not in list_files(control, HandoverError)


def _is_unreachable(error: Mm2OffsetsError) -> bool:
    """Tell whether an error says that a storage does not answer, and not what it holds."""
    return error.retryable or isinstance(error, ConfigurationError)


def move_of(job: SparkJob, ask: Entry, entries: Sequence[Entry]) -> Move:
    """Return the move that an ``ask`` began.

    Raises:
        ConfigurationError: It is the journal's last move, and a folder of it is no home of the job.
    """
    is_past = entries[-1].number != ask.number and entries[-1].move != ask.number
    home_of = job.past_home_of if is_past else job.home_of
    return Move(
        run=ask.run,
        job=job,
        policy=parse_policy(ask.facts.get("policy", PLANNED.name)),
        here=home_of(ask.home),
        there=home_of(ask.target) if ask.target else None,
        number=ask.number,
        entries=tuple(entries),
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


def check_claim(control: UPath, journal: str) -> bool:
    """Tell whether a home belongs to a journal yet.

    Raises:
        HandoverError: It belongs to another one, which may start a job there; or it can't be read.
    """
    claim = read_claim(control)
    if claim is None:
        return False
    if is_same_journal(journal, claim["journal"]):
        return True
    raise HandoverError(
        f"it belongs to the journal {claim['journal']}, and not to {journal}: two journals could "
        f"start two jobs there. Give the same records, or another folder. If the journal was "
        f"moved, or the other one has only stopped the job, say where the job runs: "
        f"{settle_job_command(journal.rpartition('/')[2])}",
        file=str(control / CLAIM),
    )


def is_same_journal(journal: str, claimed: str) -> bool:
    """Tell whether a claim names a journal, in any spelling."""
    return location_key(journal) == location_key(claimed) or same_folder(UPath(journal), claimed)


def write_fence(control: UPath, fence: Fence, job: str, *, takes_over: bool = False) -> None:
    """Write the fence of a home, once it is noted there that the home belongs to its journal.

    Args:
        control: The home's control location.
        fence: The fence.
        job: The job's name.
        takes_over: Whether a home that belongs to another journal belongs to this one now.

    Raises:
        HandoverError: The home belongs to another journal, or its claim can't be read or written.
        LostEntriesError: The home has a later fence.
        StopError: Its fence can't be read or written.
    """
    claim = {"schema_version": 2, "job": job, "journal": fence.journal}
    data = json.dumps(claim, indent=1)
    path = open_location(control, HandoverError) / CLAIM
    if takes_over:
        is_raised(control, fence)
        if read_text(path, HandoverError) != data:
            write_text(path, data, HandoverError)
    elif not check_claim(control, fence.journal):
        create_new(path, data.encode(), HandoverError)
        check_claim(control, fence.journal)
    raise_fence(control, fence)


def write_fences(job: SparkJob, entries: Sequence[Entry], open_path: OpenPath) -> list[str]:
    """Write each fence that follows from a journal, and return what could not be, as sentences.

    By a person's word (``settle``) the job's homes belong to this journal, whichever they were of.
    Homes that the job had once, and that are not declared any more, may be another job's by now.

    Raises:
        LostEntriesError: A home of the job has a later fence: no home is opened any more.
    """
    problems = []
    lost: LostEntriesError | None = None
    settled = {each.number for each in entries if each.event is Event.SETTLE}
    for folder, fence in derive_fences(entries, job.journal).items():
        is_own = job.stay_in(folder) is not None
        if lost and fence.state is FenceState.OPEN:
            raise lost
        try:
            write_fence(
                open_path(f"{folder}/control"),
                fence,
                job.name,
                takes_over=is_own and fence.number in settled,
            )
        except Mm2OffsetsError as error:
            if is_own and isinstance(error, LostEntriesError):
                lost = lost or error
            problems.append(f"no fence was written in {folder}: {error}")
    if lost:
        raise lost
    return problems


def job_here(job: SparkJob, open_path: OpenPath) -> SparkJob:
    """Return a job with the one home that its journal says it is at, to stop it there.

    With no other home it is only stopped, so that any run may take it over.

    Raises:
        HandoverError: The journal can't be read.
        ConfigurationError: The journal names a folder that is none of the job's.
    """
    entries = Journal(open_path(job.journal)).entries()
    here = job.home_of(entries[-1].home) if entries else job.homes[0]
    return replace(job, homes=(here,), records=job.journal.rpartition("/")[0])


def job_at(folder: str, open_path: OpenPath) -> SparkJob:
    """Return the job that lives in a folder, to stop it without a file of jobs.

    A folder that belongs to no journal yet gets one beside its checkpoint.

    Raises:
        HandoverError: The folder can't be read, or the job lives in another one by now.
    """
    home = Home(cluster="here", folder=folder)
    claim = read_claim(open_path(home.control))
    if claim:
        job = job_in(claim["journal"], home.folder)
        entries = Journal(open_path(job.journal)).entries()
        if entries and entries[-1].home != home.folder:
            now = entries[-1].home
            raise HandoverError(
                f"job {job.name} is not at {home.folder} any more, but at {now}: stop it there "
                f"(`airflow-mm2-offsets stop --home {now}`)"
            )
        return job
    return SparkJob(name=home.folder.rpartition("/")[2], homes=(home,))


def job_in(journal: str, folder: str) -> SparkJob:
    """Return the job of a journal with one home, for who has no file of jobs."""
    records, _, name = journal.rstrip("/").rpartition("/")
    home = Home(cluster="here", folder=folder)
    return SparkJob(
        name=name, homes=(home,), records=records or ("/" if journal.startswith("/") else ".")
    )
