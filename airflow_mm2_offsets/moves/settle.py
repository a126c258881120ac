"""A person's word for where a job runs: it ends any move, and begins a journal that was lost."""

from collections.abc import Sequence
from itertools import count, takewhile

from airflow_mm2_offsets.errors import HandoverError, Mm2OffsetsError
from airflow_mm2_offsets.locations import same_folder
from airflow_mm2_offsets.moves.fences import newest_number
from airflow_mm2_offsets.moves.jobs import Home, SparkJob
from airflow_mm2_offsets.moves.journal import Entry, Event, Journal, Step
from airflow_mm2_offsets.moves.move import OpenPath, read_claim, write_fences


def settle(
    job: SparkJob, home: str, open_path: OpenPath, *, by: str, seen: int
) -> tuple[Entry, list[str]]:
    """Record where a job runs, and write the fences that follow from it.

    Stop the job at its other homes first, or two drivers read the same records.

    A journal without entries begins after the fences that are there: it may take the place of one
    that was lost or moved. The homes then belong to this one.

    Args:
        job: The job.
        home: The folder where it runs.
        open_path: Makes a path of a location.
        by: Who says so.
        seen: The number of the last entry that the person has seen; 0: there is none.

    Returns:
        The entry, and what could not be written, as sentences.

    Raises:
        HandoverError: The journal has gone on since, or can't be read or written.
        StopError: The fences of the home can't be read.
    """
    journal = Journal(open_path(job.journal))
    closed: list[str] = []
    first = 1
    if not journal.entries():
        found = {home: newest_number(open_path(f"{home}/control")), **_fenced_homes(job, open_path)}
        closed, first = [each for each in found if each != home], max(found.values()) + 1
    step = Step(
        event=Event.SETTLE, run=by, home=home, seen=seen, first=first, facts={"closed": closed}
    )
    entries = journal.record(step).entries
    return entries[-1], write_fences(job, entries, open_path, takes_over=True)


def find_home(
    place: str, entries: Sequence[Entry], homes: Sequence[Home], open_path: OpenPath
) -> str:
    """Return the folder that a person names: by any spelling of it, or by its cluster.

    Args:
        place: What the person says.
        entries: The job's journal.
        homes: Those of the file of jobs; none where a person has only the journal.
        open_path: Makes a path of a location.

    Raises:
        HandoverError: It is none of the job's.
    """
    used = [each for entry in reversed(entries) for each in (entry.home, entry.target) if each]
    for home in homes:
        if place == home.cluster:
            return next(filter(home.stay_in, used), home.folder)
    known = dict.fromkeys([*used, *(home.folder for home in homes)])
    for folder in known:
        if folder == place.rstrip("/") or same_folder(open_path(folder), place):
            return folder
    if known and not any(home.stay_in(place.rstrip("/")) for home in homes):
        names = [*(home.cluster for home in homes), *known]
        raise HandoverError(f"{place} is no home of the job: give {' or '.join(names)}")
    return place.rstrip("/")


def _fenced_homes(job: SparkJob, open_path: OpenPath) -> dict[str, int]:
    """Return the newest fence of each stay that belongs to a journal; those in reach."""

    def is_used(folder: str) -> bool:
        try:
            return read_claim(open_path(f"{folder}/control")) is not None
        except Mm2OffsetsError:
            return False

    return {
        folder: newest_number(open_path(f"{folder}/control"))
        for home in job.homes
        for folder in takewhile(is_used, (home.stay(number).folder for number in count(1)))
    }
