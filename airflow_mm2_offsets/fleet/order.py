"""In which order the jobs of a manifest are moved.

Two things order them: ``after``, and topics. A job that reads a topic is moved before the job that
writes it. Once the writer runs on the target, its new records lie in the target's topic behind
those that MirrorMaker 2 has copied. A reader that is translated after that stands at the end of
the copies, but the target's end offset is past the new records, too: it would skip them. A reader
that is moved first goes on with the copies, and then with what the writer writes there.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from airflow_mm2_offsets.collected_errors import Problems
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.fleet.job import FleetJob
from airflow_mm2_offsets.logins import without_login


def order_jobs(jobs: Sequence[FleetJob], file: str) -> tuple[FleetJob, ...]:
    """Return jobs in the order in which they begin: by wave, then by what they are after.

    Their ``after`` then also names the jobs that follow from the topics.

    Raises:
        ConfigurationError: They wait for each other, or a job is after one of a later wave.
    """
    reasons = {job.name: dict(_predecessors(job, jobs)) for job in jobs}
    sorter = TopologicalSorter({name: list(before) for name, before in reasons.items()})
    try:
        sorter.prepare()
    except CycleError as error:
        raise ConfigurationError(_cycle(error.args[1], reasons), file=file) from None
    problems = Problems()
    problems.add(*_later_waves(jobs, reasons))
    problems.raise_all(file=file)
    ordered = [_with_after(job, tuple(reasons[job.name])) for job in _in_order(jobs, sorter)]
    # Stable: what a job is after is in its wave or an earlier one.
    return tuple(sorted(ordered, key=lambda job: job.wave))


def _predecessors(job: FleetJob, jobs: Iterable[FleetJob]) -> Iterator[tuple[str, str]]:
    """Yield the jobs that are moved before a job, each with the reason."""
    for name in job.after:
        yield name, f"{job.name} is after {name}"
    for other in jobs:
        shared = sorted(set(job.writes) & set(other.reads))
        if shared and other.name != job.name:
            yield other.name, f"{other.name} reads {', '.join(shared)}, which {job.name} writes"


def writers_of(job: FleetJob, jobs: Iterable[FleetJob]) -> list[FleetJob]:
    """Return the other jobs that write a topic which a job reads."""
    return [each for each in jobs if each.name != job.name and {*each.writes} & {*job.reads}]


def find_wrong_reads(
    job: FleetJob, topics: Collection[str], written: Collection[str]
) -> Iterator[ConfigurationError]:
    """Yield the difference between a job's ``reads`` and the topics of its checkpoint.

    A job without ``reads`` may read topics that are not ``written`` by a job of the manifest.
    """
    needed = {*topics} if job.reads else {*topics} & {*written} - {*job.writes}
    if needed != {*job.reads}:
        told = ", ".join(sorted(job.reads)) or "nothing"
        yield ConfigurationError(
            f"line {job.line}: reads of job {job.name} names {told}, and its checkpoint "
            f"{without_login(job.checkpoint)} reads {', '.join(sorted(topics))}: a reader is moved "
            f"before the writer of its topic, so correct reads and start a new run"
        )


def _in_order(jobs: Sequence[FleetJob], sorter: TopologicalSorter[str]) -> Iterator[FleetJob]:
    """Yield jobs behind all that they are after; those that may begin together as in the file."""
    places = {job.name: place for place, job in enumerate(jobs)}
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=places.__getitem__)
        yield from (jobs[places[name]] for name in ready)
        sorter.done(*ready)


def _with_after(job: FleetJob, after: tuple[str, ...]) -> FleetJob:
    return type(job).from_json({**job.to_json(), "after": after})


def _cycle(names: Sequence[str], reasons: Mapping[str, Mapping[str, str]]) -> str:
    # Each name is moved before the one behind it; the first and the last are the same.
    because = "; ".join(reasons[after][before] for before, after in pairwise(names))
    return (
        f"these jobs wait for each other: {' before '.join(names)} ({because}); remove one of "
        f"these conditions. A job that reads a topic is moved before the one that writes it"
    )


def _later_waves(
    jobs: Sequence[FleetJob], reasons: Mapping[str, Mapping[str, str]]
) -> Iterator[ConfigurationError]:
    waves = {job.name: job.wave for job in jobs}
    for job in jobs:
        for before, reason in reasons[job.name].items():
            if waves[before] > job.wave:
                yield ConfigurationError(
                    f"line {job.line}: job {job.name} is in wave {job.wave}, and {before}, which "
                    f"must be moved before it, in wave {waves[before]} ({reason}); move one of "
                    f"them to another wave"
                )
