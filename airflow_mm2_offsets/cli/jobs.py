"""``jobs``: where each job runs, what became of its moves, and a person's word where it runs."""

import getpass
import socket
from typing import TYPE_CHECKING, Annotated

from airflow_mm2_offsets.cli.command import answering, grouped
from airflow_mm2_offsets.cli.numbers import Number
from airflow_mm2_offsets.cli.output import Answer
from airflow_mm2_offsets.cli.params import Argument, Option

if TYPE_CHECKING:
    from upath import UPath

LIST_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets jobs list --jobs s3://bucket/jobs.yaml"""
SHOW_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets jobs show orders --jobs s3://bucket/jobs.yaml"""
SETTLE_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets jobs settle orders --at east --seen 12 --jobs s3://bucket/jobs.yaml"""
FENCE_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets jobs fence orders --jobs s3://bucket/jobs.yaml"""

Jobs = Annotated[str, Option("--jobs", metavar="FILE", help="The file of jobs, on any storage.")]
Name = Annotated[str, Argument(metavar="JOB", help="The job's name in the file of jobs.")]


def _open(location: str) -> "UPath":
    from airflow_mm2_offsets.errors import HandoverError
    from airflow_mm2_offsets.storage import open_location

    return open_location(location, HandoverError)


@grouped
@answering
def list_(*, jobs: Jobs) -> Answer:
    """Show where each job runs, and since when."""
    from airflow_mm2_offsets.moves.jobs_file import read_jobs
    from airflow_mm2_offsets.moves.overview import overview_of

    found = [overview_of(job, _open) for job in read_jobs(_open(jobs))]
    return Answer(
        text="\n".join(map(str, found)), data={"jobs": [each.to_json() for each in found]}
    )


@grouped
@answering
def show(*, name: Name, jobs: Jobs) -> Answer:
    """Show where a job runs, and the history of its moves."""
    from airflow_mm2_offsets.moves.jobs_file import find_job, read_jobs
    from airflow_mm2_offsets.moves.overview import overview_of

    found = overview_of(find_job(read_jobs(_open(jobs)), name, file=jobs), _open)
    lines = [str(found), *("\n".join(each.to_lines()) for each in found.moves)]
    return Answer(text="\n\n".join(lines), data=found.to_json())


@grouped
@answering
def settle(
    *,
    name: Name,
    at: Annotated[
        str, Option("--at", metavar="HOME", help="The cluster, or the folder, where the job runs.")
    ],
    jobs: Jobs,
    seen: Annotated[
        int | None,
        Option(
            "--seen",
            metavar="N",
            type=Number(int),
            help="The journal's last entry that you have seen.",
        ),
    ] = None,
) -> Answer:
    """Say where a job runs: drivers may run there from now on, and nowhere else.

    Stop the job at its other home first, or both read the same records.
    """
    from airflow_mm2_offsets.moves.jobs_file import find_job, read_jobs
    from airflow_mm2_offsets.moves.journal import Journal
    from airflow_mm2_offsets.moves.overview import home_at
    from airflow_mm2_offsets.moves.overview import settle as record

    job = find_job(read_jobs(_open(jobs)), name, file=jobs)
    entries = Journal(_open(job.journal)).entries()
    by = f"cli:{getpass.getuser()}@{socket.gethostname()}"
    number = len(entries) if seen is None else seen
    entry = record(job, home_at(job, at, entries), _open, by=by, seen=number)
    return Answer(
        text=f"Settled: {entry}", data={"number": entry.number, "home": entry.home, "by": by}
    )


@grouped
@answering
def fence(*, name: Name, jobs: Jobs) -> Answer:
    """Write each fence that follows from a job's journal, such as of a storage that has come back.

    From then on drivers obey the journal there.
    """
    from airflow_mm2_offsets.core.policy import DISASTER
    from airflow_mm2_offsets.errors import StopError
    from airflow_mm2_offsets.moves.jobs_file import find_job, read_jobs
    from airflow_mm2_offsets.moves.move import Mover

    job = find_job(read_jobs(_open(jobs)), name, file=jobs)
    mover = Mover(job, "", DISASTER, _open)
    if problems := mover.write_fences():
        raise StopError("; ".join(problems))
    fences = mover.fences()
    text = "\n".join(f"{folder}: {each}" for folder, each in fences.items())
    return Answer(
        text=text or "The job has never moved: there are no fences",
        data={"fences": {folder: str(each.state) for folder, each in fences.items()}},
    )
