"""Which jobs a fleet moves, and in what order.

Two things order them: ``after``, and topics. A job that reads a topic is moved before the job that
writes it. Once the writer runs on the target, its new records lie in the target's topic behind
those that MirrorMaker 2 has copied. A reader that is translated after that stands at the end of
the copies, but the target's end offset is past the new records, too: it would skip them. A reader
that is moved first goes on with the copies, and then with what the writer writes there.

All jobs of the file count, whether this run moves them or not: ``check_order_now`` asks their
journals.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from upath import UPath

from airflow_mm2_offsets.collected_errors import Problems
from airflow_mm2_offsets.errors import ConfigurationError, HandoverError
from airflow_mm2_offsets.moves.jobs import SparkJob
from airflow_mm2_offsets.moves.jobs_file import find_job
from airflow_mm2_offsets.moves.overview import JobOverview, overview_of


def has_home(job: SparkJob, cluster: str) -> bool:
    """Tell whether a job has a home at a cluster."""
    return any(home.cluster == cluster for home in job.homes)


def select_jobs(
    jobs: Sequence[SparkJob],
    *,
    to: str,
    out_of: str | None = None,
    names: Collection[str] = (),
    file: str,
) -> tuple[SparkJob, ...]:
    """Return the jobs that a fleet moves, in the order in which they begin.

    Args:
        jobs: All jobs of the file, from ``order_jobs``.
        to: The cluster that they go to.
        out_of: Only jobs that have their other home at this cluster; None: at any.
        names: Only these jobs; none: all.
        file: What messages call the file of jobs.

    Raises:
        ConfigurationError: There is no such job, or one that a fleet can't move. All are named.
    """
    for name in names:
        find_job(tuple(jobs), name, file=file)
    named = [job for job in jobs if not names or job.name in names]
    found = [
        job
        for job in named
        if has_home(job, to) and (out_of in {None, ""} or has_home(job, str(out_of)))
    ]
    problems = Problems()
    problems.add(
        *(
            ConfigurationError(f"job {job.name} has homes at {_clusters([job])}, and not at {to!r}")
            for job in named
            if names and job not in found
        ),
        *(
            ConfigurationError(
                f"job {job.name}: a fleet moves jobs that a DAG runs under StopControl; move this "
                f"one by failover_tasks with stop and submit"
            )
            for job in found
            if job.dag is None or not job.is_controlled
        ),
    )
    problems.raise_all(file=file)
    if not found:
        raise ConfigurationError(
            f"no job goes {f'from {out_of!r} ' if out_of else ''}to {to!r}: the jobs have homes at "
            f"{_clusters(jobs)}",
            file=file,
        )
    return tuple(found)


def order_jobs(jobs: Sequence[SparkJob], file: str) -> tuple[SparkJob, ...]:
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
    ordered = [replace(job, after=tuple(reasons[job.name])) for job in _in_order(jobs, sorter)]
    # Stable: what a job is after is in its wave or an earlier one.
    return tuple(sorted(ordered, key=lambda job: job.wave))


def check_order_now(
    job: SparkJob, jobs: Iterable[SparkJob], to: str, open_path: Callable[[str], UPath]
) -> None:
    """Raise unless a job may be moved now; one that is handed over already may.

    Jobs may also be moved one by one, or come home, or be added to the file later. So the journals
    are asked: at the job's turn, and at each later step of its move that depends on the order.

    Args:
        job: From ``order_jobs``.
        jobs: All jobs of the file.
        to: The cluster that it goes to.
        open_path: Returns a location as a path.

    Raises:
        HandoverError: A job that it is after is not at that cluster; or one that writes what it
            reads is there, or is being moved; or a journal can't be read.
    """
    if overview_of(job, open_path).home.cluster == to:
        return
    others = {each.name: each for each in jobs if each.name != job.name and has_home(each, to)}
    before = [overview_of(others[name], open_path) for name in job.after if name in others]
    if left := [each for each in before if not is_at(each, to)]:
        raise HandoverError(
            f"job {job.name} moves after {', '.join(each.job.name for each in left)}. "
            f"{_lines(left)}. Move it to {to} first; this try did nothing to job {job.name}"
        )
    writers = [each for each in others.values() if {*each.writes} & {*job.reads}]
    found = [overview_of(each, open_path) for each in writers]
    if gone := [each for each in found if each.is_moving or each.home.cluster == to]:
        raise HandoverError(
            f"{', '.join(each.job.name for each in gone)} writes a topic that job {job.name} "
            f"reads, and has left its cluster. {_lines(gone)}. A reader that moves after its "
            f"writer skips what the writer has written at {to}. Bring the writer home first, or "
            f"let its move be taken back; or start job {job.name} at {to} by hand, at positions "
            f"that you choose. This try did nothing to job {job.name}"
        )


def is_at(overview: JobOverview, cluster: str) -> bool:
    """Tell whether a job has arrived at a cluster, and is not leaving it."""
    return overview.home.cluster == cluster and not overview.is_moving


def find_wrong_reads(
    job: SparkJob, topics: Collection[str], written: Collection[str]
) -> Iterator[ConfigurationError]:
    """Yield the difference between a job's ``reads`` and the topics of its checkpoint.

    A job without ``reads`` may read topics that are not ``written`` by a job of the file.
    """
    needed = {*topics} if job.reads else {*topics} & {*written} - {*job.writes}
    if needed != {*job.reads}:
        named = ", ".join(sorted(job.reads)) or "nothing"
        yield ConfigurationError(
            f"reads of job {job.name} names {named}, and its checkpoint reads "
            f"{', '.join(sorted(topics))}: a reader is moved before the writer of its topic, so "
            f"correct reads and start a new run"
        )


def _predecessors(job: SparkJob, jobs: Iterable[SparkJob]) -> Iterator[tuple[str, str]]:
    """Yield the jobs that are moved before a job, each with the reason."""
    for name in job.after:
        yield name, f"{job.name} is after {name}"
    for other in jobs:
        shared = sorted(set(job.writes) & set(other.reads))
        if shared and other.name != job.name:
            yield other.name, f"{other.name} reads {', '.join(shared)}, which {job.name} writes"


def _in_order(jobs: Sequence[SparkJob], sorter: TopologicalSorter[str]) -> Iterator[SparkJob]:
    """Yield jobs behind all that they are after; those that may begin together as in the file."""
    places = {job.name: place for place, job in enumerate(jobs)}
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=places.__getitem__)
        yield from (jobs[places[name]] for name in ready)
        sorter.done(*ready)


def _cycle(names: Sequence[str], reasons: Mapping[str, Mapping[str, str]]) -> str:
    # Each name is moved before the one behind it; the first and the last are the same.
    because = "; ".join(reasons[after][before] for before, after in pairwise(names))
    return (
        f"these jobs wait for each other: {' before '.join(names)} ({because}); remove one of "
        f"these conditions. A job that reads a topic is moved before the one that writes it"
    )


def _later_waves(
    jobs: Sequence[SparkJob], reasons: Mapping[str, Mapping[str, str]]
) -> Iterator[ConfigurationError]:
    waves = {job.name: job.wave for job in jobs}
    for job in jobs:
        for before, reason in reasons[job.name].items():
            if waves[before] > job.wave:
                yield ConfigurationError(
                    f"job {job.name} is in wave {job.wave}, and {before}, which is moved before "
                    f"it, in wave {waves[before]} ({reason}); move one of them to another wave"
                )


def _lines(overviews: Iterable[JobOverview]) -> str:
    return "; ".join(map(str, overviews))


def _clusters(jobs: Iterable[SparkJob]) -> str:
    return ", ".join(sorted({home.cluster for job in jobs for home in job.homes})) or "none"
