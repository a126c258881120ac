"""``jobs`` and ``stop``: where jobs run, a person's word for it, and a stop without Airflow."""

import getpass
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from airflow_mm2_offsets.cli.clusters import open_path
from airflow_mm2_offsets.cli.command import answering, grouped, say
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.cli.numbers import MOST_SECONDS, Number
from airflow_mm2_offsets.cli.options import JobsFile, find_job_of
from airflow_mm2_offsets.cli.output import Answer
from airflow_mm2_offsets.cli.params import Argument, Option
from airflow_mm2_offsets.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow_mm2_offsets.moves.jobs import SparkJob
    from airflow_mm2_offsets.moves.journal import Entry

LIST_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets jobs list --jobs s3://bucket/jobs.yaml"""
SHOW_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets jobs show orders --jobs s3://bucket/jobs.yaml"""
HISTORY_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets jobs history orders --jobs s3://bucket/jobs.yaml"""
SETTLE_EXAMPLE = """\
\b
Examples:
  airflow-mm2-offsets jobs settle orders --at east --seen 12 --jobs s3://bucket/jobs.yaml
  airflow-mm2-offsets jobs settle --journal s3://bucket/records/orders --at s3://eu/orders"""
FENCE_EXAMPLE = """\
\b
Examples:
  airflow-mm2-offsets jobs fence orders --jobs s3://bucket/jobs.yaml
  airflow-mm2-offsets jobs fence --journal s3://bucket/records/orders"""
STOP_EXAMPLE = """\
\b
Examples:
  airflow-mm2-offsets stop orders --jobs s3://bucket/jobs.yaml
  airflow-mm2-offsets stop --home s3://eu/orders"""

Name = Annotated[str, Argument(metavar="JOB", help="The job's name in the file of jobs.")]
NameOrNone = Annotated[
    str | None, Argument(metavar="JOB", help="The job's name in the file of jobs.")
]
Jobs = Annotated[str, Option("--jobs", metavar="FILE", help="The file of jobs, on any storage.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOrJournal:
    """A job of a file of jobs, or a journal where there is no such file."""

    name: NameOrNone = None
    jobs: JobsFile = None
    journal: Annotated[
        str | None,
        Option(
            "--journal",
            metavar="FOLDER",
            help="The folder of the job's journal, in place of JOB and --jobs.",
        ),
    ] = None

    def journal_of(self) -> "tuple[SparkJob | None, list[Entry], str]":
        """Return the job, if a file of jobs has it; its journal's entries; and where they lie.

        Raises:
            ConfigurationError: It names neither, or both.
            HandoverError: The journal can't be read.
        """
        from airflow_mm2_offsets.moves.journal import Journal

        if self.journal:
            if self.name or self.jobs:
                raise ConfigurationError("give --journal, or JOB with --jobs FILE: both are given")
            job, folder = None, self.journal.rstrip("/")
        else:
            job = find_job_of(self.name, self.jobs, "--journal, or JOB", open_path)
            folder = job.journal
        return job, Journal(open_path(folder)).entries(), folder


@grouped
@answering
def list_(*, jobs: Jobs) -> Answer:
    """Show where each job runs, and since when; a journal that can't be read hides no other."""
    from airflow_mm2_offsets.moves.jobs_file import read_jobs
    from airflow_mm2_offsets.moves.overview import UnreadJob, overviews_of

    found = overviews_of(read_jobs(open_path(jobs)), open_path)
    is_whole = not any(isinstance(each, UnreadJob) for each in found)
    return Answer(
        text="\n".join(map(str, found)),
        data={"jobs": [each.to_json() for each in found]},
        exit_code=ExitCode.OK if is_whole else ExitCode.UNUSABLE,
    )


@grouped
@answering
def show(*, name: Name, jobs: Jobs) -> Answer:
    """Show where a job runs, and what became of its last move."""
    from airflow_mm2_offsets.moves.overview import overview_of

    found = overview_of(find_job_of(name, jobs, "JOB", open_path), open_path)
    last = found.last_move.to_lines() if found.last_move else []
    return Answer(text="\n".join([found.place, *last]), data=found.to_json())


@grouped
@answering
def history(*, job: JobOrJournal) -> Answer:
    """Show each entry of a job's journal: who did what, when and where."""
    from airflow_mm2_offsets.moves.overview import HISTORY, history_of, history_text

    _, entries, folder = job.journal_of()
    rows = history_of(entries)
    return Answer(
        text=history_text(rows) or f"{folder} has no entry: the job has never moved",
        data={
            "journal": folder,
            "entries": [dict(zip(HISTORY, row, strict=True)) for row in rows],
        },
        has_advice=False,
    )


@grouped
@answering
def settle(
    *,
    job: JobOrJournal,
    at: Annotated[
        str, Option("--at", metavar="HOME", help="The cluster, or the folder, where the job runs.")
    ],
    seen: Annotated[
        int | None,
        Option(
            "--seen",
            metavar="N",
            type=Number(int),
            help="The journal's last entry that you have seen; without it, it is shown.",
        ),
    ] = None,
) -> Answer:
    """Say where a job runs: drivers may run there from now on, and nowhere else.

    Stop the job at its other home first, or both read the same records.
    """
    from airflow_mm2_offsets.moves.move import check_claim, job_in
    from airflow_mm2_offsets.moves.settle import find_home
    from airflow_mm2_offsets.moves.settle import settle as record

    known, entries, folder = job.journal_of()
    home = find_home(at, entries, known.homes if known else (), open_path)
    if known is None:
        # Only who knows all homes may take one over from another journal: the rest are closed.
        check_claim(open_path(f"{home}/control"), folder)
    if entries and seen is None:
        raise ConfigurationError(
            f"{entries[-1]}. Stop it wherever else it runs; then give --seen {entries[-1].number}"
        )
    entry, problems = record(
        known or job_in(folder, home), home, open_path, by=_person(), seen=seen or 0
    )
    return _answer(f"Settled: {entry}", {"number": entry.number, "home": home}, folder, problems)


@grouped
@answering
def fence(*, job: JobOrJournal) -> Answer:
    """Write each fence that follows from a job's journal, such as of a storage that has come back.

    From then on drivers obey the journal there.
    """
    from airflow_mm2_offsets.moves.fences import derive_fences
    from airflow_mm2_offsets.moves.move import job_in, write_fences
    from airflow_mm2_offsets.moves.settle import find_unknown_stays

    known, entries, folder = job.journal_of()
    if not entries:
        return Answer(text="The job has never moved: there are no fences", data={"fences": {}})
    fences = derive_fences(entries, folder)
    problems = write_fences(known or job_in(folder, entries[-1].home), entries, open_path)
    unknown = find_unknown_stays(known, fences, open_path) if known else []
    text = "\n".join([*(f"{home}: {each}" for home, each in fences.items()), *unknown])
    states = {home: each.state.value for home, each in fences.items()}
    return _answer(text, {"fences": states}, folder, problems)


@grouped
@answering
def stop(
    *,
    name: NameOrNone = None,
    jobs: JobsFile = None,
    home: Annotated[
        str | None,
        Option("--home", metavar="FOLDER", help="The job's folder, in place of JOB and --jobs."),
    ] = None,
    heartbeat_timeout: Annotated[
        float | None,
        Option(
            "--heartbeat-timeout",
            metavar="SECONDS",
            type=Number(float, 0, MOST_SECONDS),
            help="After so long a silence a driver counts as dead; else what the file of jobs "
            "says, or never.",
        ),
    ] = None,
    timeout: Annotated[
        float,
        Option(
            "--timeout",
            metavar="SECONDS",
            type=Number(float, 0, MOST_SECONDS),
            help="How long to wait for the proof.",
        ),
    ] = 600.0,
) -> Answer:
    """Stop a job where it runs, with proof; no driver starts there afterwards.

    A stop without a proof in time is withdrawn, and the job runs on. A failover moves the job from
    where it has stopped.
    """
    from airflow_mm2_offsets.moves.jobs import settle_command
    from airflow_mm2_offsets.moves.move import job_at
    from airflow_mm2_offsets.moves.stop_job import stop_job
    from airflow_mm2_offsets.moves.stop_watch import StopRules

    if home and (name or jobs):
        raise ConfigurationError("give --home, or JOB with --jobs FILE: both are given")
    job = job_at(home, open_path) if home else find_job_of(name, jobs, "--home, or JOB", open_path)
    rules = StopRules(heartbeat_timeout=heartbeat_timeout or job.heartbeat_timeout)
    proof = stop_job(
        job, by=_person(), open_path=open_path, rules=rules, timeout=timeout, progress=say
    )
    batch = "" if proof["batch_id"] is None else f" after batch {proof['batch_id']}"
    return Answer(
        text=f"Stopped{batch} ({proof['proof']}): no driver starts there, until a failover "
        f"moves the job, or you let it run again: {settle_command(job.journal, proof['home'])}",
        data={"job": job.name, "journal": job.journal, **proof},
    )


def _answer(text: str, data: dict[str, object], journal: str, problems: Sequence[str]) -> Answer:
    """Return an answer with what could not be written."""
    step = f"Once that storage can be reached: `airflow-mm2-offsets jobs fence --journal {journal}`"
    return Answer(
        text="\n".join([text, *problems, step] if problems else [text]),
        data={**data, "journal": journal, "problems": list(problems)},
        exit_code=ExitCode.UNUSABLE if problems else ExitCode.OK,
    )


def _person() -> str:
    """Return what the journal calls this process's user; each command has a name of its own."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return f"{getpass.getuser()} on {socket.gethostname()} at {now}"
