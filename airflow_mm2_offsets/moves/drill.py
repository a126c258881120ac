"""A drill: its home, the two fences of that home, and why it may not begin.

Everything in a drill's folder is removed in the end. So it must not be, hold or lie in anything
that the job or a move needs, and the drill's job must write nowhere else. The start and the
tear-down of a drill call this; the job's journal is only read.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from upath import UPath

from airflow_mm2_offsets.errors import ConfigurationError, DrillError
from airflow_mm2_offsets.locations import overlap, same_folder, spark_location
from airflow_mm2_offsets.moves.fences import Fence, newest_number, put_fence
from airflow_mm2_offsets.moves.folders import is_beating
from airflow_mm2_offsets.moves.jobs import Home
from airflow_mm2_offsets.moves.journal import FenceState, State
from airflow_mm2_offsets.moves.move import Move
from airflow_mm2_offsets.spark.control import Driver, read_driver
from airflow_mm2_offsets.spark.drill import (
    ANOTHER,
    MARK,
    DrillMark,
    foreign_entries,
    listed,
    read_mark,
)

OPEN: Final = 1
"""The number of the fence that lets the drill's job run."""
CLOSED: Final = 2
"""The number of the fence that stops it; no later one opens the folder again."""


def drill_home(home: Home, folder: str) -> Home:
    """Return the throw-away home of a drill: all that its job writes lies in the folder.

    Args:
        home: The job's first home at the cluster where the drill's job runs.
        folder: The drill's folder.

    Raises:
        ConfigurationError: Spark reaches the job's home by another name, and the drill's folder
            does not lie beside it; or the folder has a login in it.
    """
    drill = replace(home, folder=folder, output="", spark_folder="")
    if not home.spark_folder:
        return drill
    parent, spark_parent = (
        name.rstrip("/").rpartition("/")[0] for name in (home.folder, home.spark_folder)
    )
    name = drill.folder.removeprefix(f"{parent}/")
    if name == drill.folder:
        raise ConfigurationError(
            f"Spark reaches {home} as {home.spark_folder}, and it is not known how it reaches the "
            f"drill's folder {folder}: give a folder in {parent}",
            setting="folder",
        )
    return replace(drill, spark_folder=f"{spark_parent}/{name}")


def open_drill(
    home: Home,
    control: UPath,
    mark: DrillMark,
    *,
    starting_offsets: str,
    topics: str,
) -> None:
    """Write the fence that lets the drill's job run, and tells it where to begin.

    Args:
        home: The drill's.
        control: Its control location.
        mark: The drill's record.
        starting_offsets: Spark's JSON text.
        topics: Of the cluster where the job runs, separated by commas.

    Raises:
        DrillError: The drill is being torn down.
        StopError: The location can't be read or written.
    """
    if newest_number(control) > OPEN:
        raise DrillError(
            f"the drill {mark.request_id!r} is being torn down: start a new run of the drill",
            file=str(control),
        )
    fence = _fence(home, mark, OPEN, FenceState.OPEN, at=mark.at)
    put_fence(control, replace(fence, starting_offsets=starting_offsets, topics=topics))


def close_drill(home: Home, control: UPath, mark: DrillMark) -> None:
    """Write the fence that stops the drill's job, and lets no later one begin.

    Raises:
        StopError: The location can't be read or written.
    """
    if newest_number(control) < CLOSED:
        fence = _fence(home, mark, CLOSED, FenceState.STOPPING, at=datetime.now(UTC))
        put_fence(control, fence)


def _fence(home: Home, mark: DrillMark, number: int, state: FenceState, *, at: datetime) -> Fence:
    return Fence(
        number=number,
        home=home.folder,
        state=state,
        request_id=mark.request_id,
        moved_to="nowhere, for its drill is over",
        at=at,
        journal=f"{home.folder}/{MARK}",
    )


def find_drill_problems(move: Move, folder: str, open_path: Callable[[str], UPath]) -> list[str]:
    """Return why a run can't begin a drill in a folder now, as sentences.

    Args:
        move: What would be moved, by the policy ``drill``.
        folder: The drill's folder.
        open_path: Makes a path of a location, with its credentials.

    Raises:
        ConfigurationError: A location can't be opened.
        DrillError: The folder or its mark can't be read.
        StopError: The control location of the job, or of an earlier drill, can't be read.
    """
    driver = read_driver(open_path(move.here.control))
    drill = open_path(folder)
    return [
        *_job_problems(move, driver),
        *_place_problems(drill, _needed(move, driver, open_path)),
        *_content_problems(drill, move.run),
    ]


def _job_problems(move: Move, driver: Driver | None) -> list[str]:
    job, problems = move.job, []
    if move.last is not None and move.last.state is not State.HOME:
        problems.append(f"job {job.name}: {move.last}, and no drill begins beside a move: wait")
    if move.there is None:
        problems.append(f"job {job.name} has one home, and goes nowhere")
    if not job.is_controlled:
        problems.append(
            f"job {job.name} runs without StopControl, and a drill is ended through its control "
            f"location: run it under StopControl first"
        )
    elif driver is None:
        problems.append(
            f"no job has run at {move.here} under StopControl, and a drill is ended through its "
            f"control location: run it under StopControl first"
        )
    if job.writes and not job.honours_drill:
        problems.append(
            f"job {job.name} writes to {listed(job.writes)}, so the drill's job would write there, "
            f"too: if its DAG honours conf['drill'] and writes elsewhere in a drill, say so by the "
            f"job's honours_drill"
        )
    return problems


def _needed(
    move: Move, driver: Driver | None, open_path: Callable[[str], UPath]
) -> dict[str, UPath]:
    """Return the locations that a drill must keep away from, by what messages call them.

    Those that the running job's driver has written down are among them.
    """
    job = move.job
    locations = {
        **{f"job's folder at {home.cluster}": home.folder for home in job.homes},
        **{f"job's output at {home.cluster}": home.output for home in job.homes},
        "folder of journals": job.journal.rpartition("/")[0],
        "archive": job.archive,
        "folder of saved positions": job.saved_positions,
    }
    opened = {name: open_path(location) for name, location in locations.items() if location}
    written = [*driver.checkpoints.values(), driver.control] if driver else []
    for location in filter(None, written):
        # Only Hadoop knows some storages, and no drill's folder can lie there.
        with suppress(ImportError, ValueError):
            own = spark_location(location) or UPath(location)
            opened[f"job's own location {location},"] = own
    return opened


def _place_problems(drill: UPath, needed: dict[str, UPath]) -> list[str]:
    problems = []
    if ".." in drill.path.split("/"):
        problems.append(
            f'the drill folder {drill} has ".." in it, which storages read differently: write it '
            f"without"
        )
    problems += [
        f"the drill folder {drill} is, lies in, or holds the {name} {place}, and everything in a "
        f"drill folder is removed: {ANOTHER}"
        for name, place in needed.items()
        if overlap(drill, place)
    ]
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
