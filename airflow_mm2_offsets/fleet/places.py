"""Whether the jobs of a manifest have folders of their own, by whatever names."""

import os
import posixpath
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from upath import UPath

from airflow_mm2_offsets.collected_errors import Problems
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.fleet.job import FleetJob
from airflow_mm2_offsets.locations import LOCAL, overlap, storage_kind
from airflow_mm2_offsets.logins import without_login

_FIELDS = ("source_folder", "target_folder", "source_output", "target_output")
_WHAT = {
    "source_folder": "checkpoint and control location",
    "target_folder": "folder on the target",
    "source_output": "output",
    "target_output": "output",
}


class _Place(NamedTuple):
    path: UPath
    folder: str
    """Sorts a folder before what it holds: normalised, and without the storage's host."""
    job: FleetJob
    field: str

    def __str__(self) -> str:
        location = without_login(getattr(self.job, self.field))
        return f"{self.field} of job {self.job.name} (line {self.job.line}, {location})"


def check_places(jobs: Sequence[FleetJob], file: str, open_place: Callable[[str], UPath]) -> None:
    """Raise unless no folder of a job is, holds, or lies in one of another job.

    Two jobs with one control location would stop each other; with one checkpoint or output they
    would overwrite each other.

    Args:
        jobs: Of one manifest.
        file: What messages call the manifest.
        open_place: Returns a location as a path; it need not exist.

    Raises:
        ConfigurationError: Two jobs share a folder, one job has the same on both sides, or a
            location can't be opened. All are named.
    """
    problems = Problems()
    places = [
        place
        for job in jobs
        for name in _FIELDS
        if (place := problems.attempt(partial(_place, job, name, open_place))) is not None
    ]
    problems.add(*_shared(sorted(places, key=lambda each: each.folder)))
    problems.raise_all(file=file)


def _place(job: FleetJob, name: str, open_place: Callable[[str], UPath]) -> _Place:
    path = open_place(getattr(job, name))
    inner = os.path.realpath(path.path) if path.protocol in LOCAL else f"/{path.path.strip('/')}"
    folder = f"{storage_kind(path.protocol)}:/{posixpath.normpath(inner).rstrip('/')}/"
    return _Place(path=path, folder=folder, job=job, field=name)


def _shared(places: Sequence[_Place]) -> Iterator[ConfigurationError]:
    """Yield the pairs of which one holds the other; sorted, a folder comes before what it holds."""
    above: list[_Place] = []
    for place in places:
        above = [each for each in above if place.folder.startswith(each.folder)]
        outer = next((each for each in above if not _are_apart(each, place)), None)
        if outer is not None:
            verb = "is also" if outer.folder == place.folder else "lies in"
            yield ConfigurationError(
                f"{place} {verb} {outer}: each job needs its own "
                f"{_WHAT[place.field]} on each side; give one of them another"
            )
        above.append(place)


def _are_apart(outer: _Place, inner: _Place) -> bool:
    """Tell whether two places whose paths say otherwise are two, or may be one.

    One HDFS cluster has several names, so two names on one side may be one cluster. A job moves
    from one cluster to another, so two names on two sides are two clusters.
    """
    hosts = {str(each.path.storage_options.get("host", "")) for each in (outer, inner)}
    sides = {each.field.partition("_")[0] for each in (outer, inner)}
    if len(sides) > 1 and len(hosts) > 1 and storage_kind(outer.path.protocol) == "hdfs":
        return True
    return _may_share(outer, inner) or not overlap(outer.path, inner.path)


def _may_share(outer: _Place, inner: _Place) -> bool:
    """Tell whether two folders of one job may be one: its output lies in its folder."""
    if outer.job.name != inner.job.name:
        return False
    sides = {each.field.partition("_")[0] for each in (outer, inner)}
    return len(sides) == 1
