"""A person's word for where a job runs: it ends any move, and begins a journal that was lost."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from airflow_mm2_offsets.errors import ConfigurationError, HandoverError, Mm2OffsetsError
from airflow_mm2_offsets.locations import same_folder
from airflow_mm2_offsets.moves.fences import newest_number, read_fences
from airflow_mm2_offsets.moves.jobs import Home, SparkJob, settle_job_command
from airflow_mm2_offsets.moves.journal import Entry, Event, Journal, Step
from airflow_mm2_offsets.moves.move import OpenPath, read_claim, write_fences
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
    entries: Sequence[Entry] = journal.entries()
    last = entries[-1].number if entries else 0
    stays = _find_stays(job, [home, *_folders_of(entries)], open_path)
    highest = max(_newest(home, stays, open_path), last)
    if highest > (last + MOST_ENTRIES if entries else HIGHEST):
        raise HandoverError(
            f"a home has the fence {highest}, and the journal {job.journal} has come to {last}: it "
            f"is another job's journal, or a very old copy; restore it"
        )
    facts = {
        "closed": [each for each in stays if each != home],
        **_start_at(home, entries, open_path),
    }
    number = last
    while number <= highest:
        step = Step(
            event=Event.SETTLE, run=by, home=home, seen=seen, first=highest + 1, facts=facts
        )
        entries = journal.record(step).entries
        number = seen = entries[-1].number
    return entries[-1], write_fences(job, entries, open_path)


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
            return next(filter(home.stay_in, lived), home.folder)
    for folder in known:
        if folder == place.rstrip("/") or same_folder(open_path(folder), place):
            return folder
    if not any(home.stay_in(place.rstrip("/")) for home in homes):
        names = [*(home.cluster for home in homes), *known]
        raise HandoverError(f"{place} is no home of the job: give {' or '.join(names)}")
    return place.rstrip("/")


def find_unknown_stays(job: SparkJob, known: Collection[str], open_path: OpenPath) -> list[str]:
    """Return the stays where a driver may start although the job's journal does not name them.

    Args:
        job: The job, with all its homes.
        known: The folders that its journal names.
        open_path: Makes a path of a location.

    Returns:
        A sentence for each. What can't be looked at is not among them.
    """
    stays, _ = _claimed_stays(job, known, open_path)
    return [
        f"{folder}: the job has been there, and its journal {job.journal} does not say so, so a "
        f"driver may start there. Say where the job runs: {settle_job_command(job.name)}"
        for folder in stays
    ]


def _find_stays(job: SparkJob, folders: Sequence[str], open_path: OpenPath) -> list[str]:
    """Return every folder in which the job may have a driver.

    Those are the first stay at each cluster, those that the journal names, those that are claimed
    for the job, and those that a fence names. Of a home that can't be looked at it is each stay up
    to one more than is known at the other: the job goes from one to the other.
    """
    claimed, lost = _claimed_stays(job, (), open_path)
    stays = dict.fromkeys([*folders, *(home.folder for home in job.homes), *claimed])
    for folder in list(stays):
        stays |= dict.fromkeys(_named_by_fences(job, folder, open_path))
    most = max(_number_of(job, folder) for folder in stays) + 1
    stays |= dict.fromkeys(home.stay(each).folder for home in lost for each in range(1, most + 1))
    return list(stays)


def _claimed_stays(
    job: SparkJob, known: Collection[str], open_path: OpenPath
) -> tuple[list[str], list[Home]]:
    """Return the later stays that are claimed for the job, but for known ones; and lost homes."""
    stays: list[str] = []
    lost: list[Home] = []
    for home in job.homes:
        try:
            place = open_location(open_path(home.folder), HandoverError)
            names = sorted(list_directory(place, HandoverError))
            inner = [f"{home.folder}/{name}" for name in names]
            for folder in filter(home.stay_in, inner):
                claim = None if folder in known else read_claim(open_path(f"{folder}/control"))
                stays += [folder] if claim and claim["job"] == job.name else []
        except Mm2OffsetsError:
            lost.append(home)
    return stays, lost


def _number_of(job: SparkJob, folder: str) -> int:
    """Return which stay of its home a folder is; 1 for a folder that is no stay."""
    name = folder.rpartition("/")[2]
    return int(name) if any(folder == f"{home.folder}/{name}" for home in job.homes) else 1


def _named_by_fences(job: SparkJob, folder: str, open_path: OpenPath) -> list[str]:
    """Return the stays that the fences of a folder name as the target of a move."""
    try:
        fences = read_fences(open_path(f"{folder}/control"))
    except Mm2OffsetsError:
        return []  # its home is reported
    targets = {each.moved_to for each in fences}
    return [each for each in targets if any(home.stay_in(each) for home in job.homes)]


def _newest(home: str, stays: Sequence[str], open_path: OpenPath) -> int:
    """Return the highest number of all fences in reach; those of the home must be."""
    numbers = [newest_number(open_path(f"{home}/control"))]
    for folder in stays:
        try:
            numbers.append(newest_number(open_path(f"{folder}/control")))
        except Mm2OffsetsError:
            continue
    return max(numbers)


def _start_at(home: str, entries: Sequence[Entry], open_path: OpenPath) -> dict[str, Any]:
    """Return where the job began at a home, by its fences, if the journal does not say so."""
    if any(each.home == home and "starting_offsets" in each.facts for each in entries):
        return {}
    for fence in read_fences(open_path(f"{home}/control")):
        if fence.starting_offsets or fence.topics:
            return {"starting_offsets": fence.starting_offsets, "topics": fence.topics}
    return {}


def _folders_of(entries: Sequence[Entry]) -> list[str]:
    """Return the folders that a journal names, the latest first."""
    folders = (each for entry in reversed(entries) for each in (entry.home, entry.target))
    return list(dict.fromkeys(filter(None, folders)))
