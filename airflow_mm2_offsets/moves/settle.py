"""A person's word for where a job runs: it ends any move, and begins a journal that was lost."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from airflow_mm2_offsets.errors import ConfigurationError, HandoverError, Mm2OffsetsError
from airflow_mm2_offsets.locations import location_key, same_folder
from airflow_mm2_offsets.moves.fences import newest_number, read_fences
from airflow_mm2_offsets.moves.jobs import Home, SparkJob, settle_job_command
from airflow_mm2_offsets.moves.journal import Entry, Event, Journal, Step, decide
from airflow_mm2_offsets.moves.move import (
    OpenPath,
    is_same_journal,
    read_claim,
    write_fences,
)
from airflow_mm2_offsets.storage import list_directory, open_location

MOST_ENTRIES: Final = 1000
"""By how many entries a journal catches up with the fences of one that was lost."""
HIGHEST: Final = 999_000
"""The highest fence after which a journal begins: its entries have numbers of six digits."""


def settle(
    job: SparkJob, home: str, open_path: OpenPath, *, by: str, seen: int
) -> tuple[Entry, list[str]]:
    """Record where a job runs, and write the fences that follow from it: closed everywhere else.

    Stop the job at its other homes first, or two drivers read the same records.

    All homes of the job then belong to this journal, which may take the place of one that was lost,
    moved, or restored without its last entries. So its entries go on until their number is above
    that of each fence in reach.

    Args:
        job: The job, with all its homes.
        home: The folder where it runs.
        open_path: Makes a path of a location.
        by: Who says so.
        seen: The number of the last entry that the person has seen; 0: there is none.

    Returns:
        The entry, and what could not be written, as sentences.

    Raises:
        HandoverError: The journal has gone on since, is too far behind the fences, or can't be read
            or written.
        StopError: The fences of the home can't be read.
    """
    journal = Journal(open_path(job.journal))
    entries: list[Entry] = journal.entries()
    last = entries[-1].number if entries else 0
    stays = _find_stays(job, [home, *_folders_of(entries)], open_path)
    highest = max(_newest(home, stays, open_path), last)
    _refuse_far_behind(job, last, highest)
    closed = [each for each in stays if location_key(each) != location_key(home)]
    step = Step(
        event=Event.SETTLE,
        run=by,
        home=home,
        seen=seen,
        first=highest + 1,
        facts={"closed": closed, **_start_at(home, entries, open_path)},
    )
    entries = [*journal.record(step).entries]
    while entries[-1].number <= highest:
        entry = decide(entries, replace(step, seen=entries[-1].number))
        if not journal.create(entry):
            raise HandoverError("the journal has gone on meanwhile: say it again")
        entries.append(entry)
    return entries[-1], write_fences(job, entries, open_path)


def _refuse_far_behind(job: SparkJob, last: int, highest: int) -> None:
    """Raise if a journal must not go on from its last entry, 0 for none, to the highest fence."""
    behind = f"a home has the fence {highest}, and the journal {job.journal} has come to {last}: it"
    if highest > (last + MOST_ENTRIES if last else HIGHEST):
        raise HandoverError(f"{behind} is another job's journal, or a very old copy; restore it")
    if highest > last > 0 and len(job.homes) == 1:
        raise HandoverError(
            f"{behind} has lost entries, and does not say where else the job has been. Restore it, "
            f"or give JOB, and --jobs FILE with all of its homes"
        )


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
        ConfigurationError: Nothing says which homes the job has.
    """
    if not entries and not homes:
        raise ConfigurationError(
            "the journal has no entry, so it does not say which homes the job has, and none could "
            "be closed: give JOB, and --jobs FILE with all of its homes"
        )
    lived = [each.home for each in reversed(entries)]
    known = dict.fromkeys([*lived, *_folders_of(entries), *(home.folder for home in homes)])
    for home in homes:
        if place == home.cluster:
            _refuse_unknown_stays(home, known, open_path)
            stays = (home.stay_in(each) for each in lived)
            return next(filter(None, stays), home).folder
    for folder in known:
        if location_key(folder) == location_key(place) or same_folder(open_path(folder), place):
            stay = next(filter(None, (home.stay_in(folder) for home in homes)), None)
            return stay.folder if stay else folder
    if not any(home.stay_in(place.rstrip("/")) for home in homes):
        names = [*(home.cluster for home in homes), *known]
        raise HandoverError(f"{place} is no home of the job: give {' or '.join(names)}")
    return place.rstrip("/")


def _refuse_unknown_stays(home: Home, known: Collection[str], open_path: OpenPath) -> None:
    """Raise if a cluster's name may mean a folder that the journal does not name."""
    if others := _unknown_stays(home, known, open_path):
        raise ConfigurationError(
            f"the job has had folders at {home.cluster} that its journal does not name: give the "
            f"one where it runs, such as {others[-1]}"
        )


def _unknown_stays(home: Home, known: Collection[str], open_path: OpenPath) -> list[str]:
    named = {location_key(each) for each in known}
    return [each for each in _later_stays(home, open_path) if location_key(each) not in named]


def find_unknown_stays(job: SparkJob, known: Collection[str], open_path: OpenPath) -> list[str]:
    """Return the stays where a driver may start although the job's journal does not name them.

    Args:
        job: The job, with all its homes.
        known: The folders that its journal names.
        open_path: Makes a path of a location.

    Returns:
        A sentence for each. What can't be looked at is not among them.
    """
    stays = []
    for home in job.homes:
        with suppress(Mm2OffsetsError):
            stays += _unknown_stays(home, known, open_path)
    return [
        f"{folder}: the job has been there, and its journal {job.journal} does not say so, so a "
        f"driver may start there. Say where the job runs: {settle_job_command(job.name)}"
        for folder in stays
    ]


def _find_stays(job: SparkJob, folders: Sequence[str], open_path: OpenPath) -> list[str]:
    """Return every folder in which the job may have a driver, each once.

    Those are the first stay at each cluster, those that the journal names, later ones that belong
    to a journal, and those that a fence names. Of a home that can't be looked at it is each stay up
    to one more than is known at the other: the job goes from one to the other.
    """
    found: dict[str, str] = {}
    lost: list[Home] = []
    waiting = [*folders, *(home.folder for home in job.homes)]
    for home in job.homes:
        try:
            waiting += _later_stays(home, open_path)
        except Mm2OffsetsError:
            lost.append(home)
    while waiting:
        folder = waiting.pop(0)
        if location_key(folder) not in found and not _is_another_job_s(job, folder, open_path):
            found[location_key(folder)] = folder
            waiting += _named_by_fences(folder, open_path)
    most = max(_number_of(job, folder) for folder in found.values()) + 1
    for home in lost:
        for number in range(1, most + 1):
            found.setdefault(location_key(home.stay(number).folder), home.stay(number).folder)
    return [*found.values()]


def _is_another_job_s(job: SparkJob, folder: str, open_path: OpenPath) -> bool:
    """Tell whether a folder is no home of the job, and belongs to another journal by now."""
    if job.stay_in(folder):
        return False
    try:
        claim = read_claim(open_path(f"{folder}/control"))
    except Mm2OffsetsError:
        return False
    return claim is not None and not is_same_journal(job.journal, claim["journal"])


def _later_stays(home: Home, open_path: OpenPath) -> list[str]:
    """Return the later stays of a home that belong to a journal, whichever it is.

    Raises:
        HandoverError: The home can't be looked at.
    """
    place = open_location(open_path(home.folder), HandoverError)
    inner = [f"{home.folder}/{name}" for name in list_directory(place, HandoverError)]
    stays = sorted(filter(home.stay_in, inner), key=lambda each: int(each.rpartition("/")[2]))
    return [each for each in stays if read_claim(open_path(f"{each}/control")) is not None]


def _number_of(job: SparkJob, folder: str) -> int:
    """Return which stay of its home a folder is; 1 for a folder that is no later stay."""
    is_later = any(
        home.stay_in(folder) and location_key(folder) != location_key(home.folder)
        for home in job.homes
    )
    return int(folder.rstrip("/").rpartition("/")[2]) if is_later else 1


def _named_by_fences(folder: str, open_path: OpenPath) -> list[str]:
    """Return the folders that the fences of a home name as the target of a move."""
    try:
        fences = read_fences(open_path(f"{folder}/control"))
    except Mm2OffsetsError:
        return []  # no fence can be written there either, and that is reported
    return [each.moved_to for each in fences if each.moved_to]


def _newest(home: str, stays: Sequence[str], open_path: OpenPath) -> int:
    """Return the highest number of all fences in reach; those of the home must be."""
    numbers = [newest_number(open_path(f"{home}/control"))]
    for folder in stays:
        with suppress(Mm2OffsetsError):
            numbers.append(newest_number(open_path(f"{folder}/control")))
    return max(numbers)


def _start_at(home: str, entries: Sequence[Entry], open_path: OpenPath) -> dict[str, Any]:
    """Return where the job began at a home, by its fences, if the journal does not say so."""
    key = location_key(home)
    if any(location_key(each.home) == key and "starting_offsets" in each.facts for each in entries):
        return {}
    for fence in read_fences(open_path(f"{home}/control")):
        if fence.starting_offsets or fence.topics:
            return {"starting_offsets": fence.starting_offsets, "topics": fence.topics}
    return {}


def _folders_of(entries: Sequence[Entry]) -> list[str]:
    """Return the folders that a journal names, the latest first."""
    folders = (each for entry in reversed(entries) for each in (entry.home, entry.target))
    return list(dict.fromkeys(filter(None, folders)))
