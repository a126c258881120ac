"""Finds why a drill may not use a folder; the check and the start of a drill call it.

Everything in a drill's folder is removed in the end. So it must not be, hold or lie in anything
that the job or a failover needs, and the drill's job must write nowhere else.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from upath import UPath

from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.locations import is_within, overlap, same_folder, spark_location
from airflow_mm2_offsets.moves.folders import is_beating
from airflow_mm2_offsets.spark.control import read_driver
from airflow_mm2_offsets.spark.drill import ANOTHER, MARK, foreign_entries, listed, read_mark

_ABSENT = {None, "", "None"}
"""Jinja writes a param that is null as "None"."""
_SAY = (
    "if the job's DAG honours conf['drill'] and writes elsewhere in a drill, say so by "
    "honours_drill=True"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillFolders:
    """A drill's folder, and what it must keep away from."""

    drill: UPath
    job: Mapping[str, UPath]
    """The folders that the job's DAG is given as ``conf["folder"]``, by what messages call them."""
    others: Mapping[str, UPath]
    """Other locations of the job and of failovers: checkpoint, archive, reports..."""
    sinks: Sequence[UPath | str]
    """Where the job writes: locations, or the names of topics and tables."""
    honours_drill: bool = False
    """The user's word that a run with ``conf["drill"]`` writes to none of ``sinks``."""


def open_drill_folders(
    open_path: Callable[[str], UPath],
    *,
    folder: str,
    control: str | None,
    job_folders: Mapping[str, str | None],
    other_folders: Mapping[str, str | None],
    sinks: Sequence[str] | str,
    honours_drill: bool,
) -> DrillFolders:
    """Return the folders of a drill; what is not given is left out.

    The locations that the running job's driver has written down are among those to keep away from.

    Args:
        open_path: Makes a path of a location, with its credentials.
        folder: The drill's folder.
        control: The running job's control location.
        job_folders: See ``DrillFolders.job``.
        other_folders: What else to keep away from, by what messages call it.
        sinks: Locations or names, as a list or as a text with commas.
        honours_drill: See ``DrillFolders``.

    Raises:
        ConfigurationError: A location can't be opened.
        StopError: The control location can't be read.
    """
    driver = read_driver(open_path(control)) if control else None
    written = [*driver.checkpoints.values(), driver.control] if driver else []
    others = {"control location": control, **other_folders}
    names = sinks.split(",") if isinstance(sinks, str) else sinks
    return DrillFolders(
        drill=open_path(folder),
        job=_opened(open_path, job_folders),
        others={**_opened(open_path, others), **_own(written)},
        sinks=[_sink(open_path, name.strip()) for name in names if name.strip() not in _ABSENT],
        honours_drill=honours_drill,
    )


def _opened(
    open_path: Callable[[str], UPath], places: Mapping[str, str | None]
) -> dict[str, UPath]:
    return {name: open_path(str(each)) for name, each in places.items() if each not in _ABSENT}


def _own(written: Sequence[str | None]) -> dict[str, UPath]:
    """Return the locations that a driver has written down; only their names are compared."""
    own = {}
    for location in filter(None, written):
        # Only Hadoop knows some storages, and no drill's folder can lie there.
        with suppress(ImportError, ValueError):
            own[f"job's own location {location},"] = spark_location(location) or UPath(location)
    return own


def _sink(open_path: Callable[[str], UPath], name: str) -> UPath | str:
    """Return a location as a path; the name of a topic or a table as it is."""
    if "/" not in name:
        return name
    try:
        return open_path(name)
    except Mm2OffsetsError:  # such as kafka://cluster/topic
        return name


def find_drill_problems(folders: DrillFolders, request_id: str) -> list[str]:
    """Return why no drill may use a folder, as sentences.

    Raises:
        DrillError: The folder or its mark can't be read.
        StopError: The control location of an earlier drill can't be read.
    """
    return [
        *_place_problems(folders),
        *_sink_problems(folders),
        *_content_problems(folders.drill, request_id),
    ]


def _place_problems(folders: DrillFolders) -> list[str]:
    drill = folders.drill
    problems = []
    if ".." in drill.path.split("/"):
        problems.append(
            f'the drill folder {drill} has ".." in it, which storages read differently: write it '
            f"without"
        )
    problems += [
        f"the drill folder {drill} is, lies in, or holds the {name} {place}, and everything in a "
        f"drill folder is removed: {ANOTHER}"
        for name, place in {**folders.job, **folders.others}.items()
        if overlap(drill, place)
    ]
    return problems


def _sink_problems(folders: DrillFolders) -> list[str]:
    """Return where the drill's job would write beside the job that runs."""
    if not folders.sinks and not folders.honours_drill:
        problem = (
            f"it is not known where the job writes, so a drill may write there, too: name its "
            f"output folders in sinks; {_SAY}"
        )
        return [problem]
    problems = []
    for sink in folders.sinks:
        if not isinstance(sink, str):
            if any(is_within(sink, folder) for folder in folders.job.values()):
                continue
            if overlap(folders.drill, sink):
                problems.append(f"the drill folder {folders.drill} overlaps the sink {sink}")
        if not folders.honours_drill:
            places = " and ".join(str(folder) for folder in folders.job.values())
            problems.append(
                f"the job writes to {sink}, outside its folder ({places}), so the drill's job "
                f"would write there, too: {_SAY}"
            )
    return problems


def _content_problems(folder: UPath, request_id: str) -> list[str]:
    mark = read_mark(folder)
    if mark is None:
        names = foreign_entries(folder)
        problem = (
            f"the drill folder {folder} holds {listed(names)} and no {MARK}, so no drill has made "
            f"it, and a tear-down would remove it: {ANOTHER}"
        )
        return [problem] if names else []
    if not same_folder(folder, mark.folder):
        problem = (
            f"{folder / MARK} was written in {mark.folder}, so {folder} is a copy, and is not "
            f"removed: {ANOTHER}"
        )
        return [problem]
    driver = None if mark.request_id == request_id else read_driver(folder / "control")
    if driver is None or not is_beating(folder / "control", driver):
        return []
    problem = (
        f"the job of the earlier drill {mark.request_id!r} still runs in {folder} (driver "
        f"{driver.application_id} on {driver.host}): clear that run's tear-down, or end its job"
    )
    return [problem]
