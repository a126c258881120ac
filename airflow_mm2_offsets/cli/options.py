"""Options that several commands have: an archive, positions, a job of the file of jobs."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from airflow_mm2_offsets.cli.clusters import Clusters
from airflow_mm2_offsets.cli.params import Option
from airflow_mm2_offsets.core.policy import POLICIES
from airflow_mm2_offsets.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from upath import UPath

    from airflow_mm2_offsets.archive import SyncArchive
    from airflow_mm2_offsets.clusters import ClusterPair
    from airflow_mm2_offsets.core import Positions
    from airflow_mm2_offsets.moves.jobs import SparkJob
    from airflow_mm2_offsets.moves.move import Move, Mover

JobsFile = Annotated[
    str | None, Option("--jobs", metavar="FILE", help="The file of jobs, on any storage.")
]
PolicyName = Annotated[
    str, Option("--policy", type=click.Choice([*POLICIES]), help="How the job is to be moved.")
]

_PATH_LENGTH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOptions:
    """Where syncs are that the topic has no more."""

    archive: Annotated[
        str | None,
        Option("--archive", metavar="URL", help="Archive of syncs that the topic has no more."),
    ] = None
    skip_damaged: Annotated[
        bool, Option("--skip-damaged", help="Go on without damaged files of the archive.")
    ] = False

    def open(self, clusters: Clusters) -> "SyncArchive | None":
        """Return the archive, or that of the settings, if there is one."""
        return clusters.archive(self.archive, skip_damaged=self.skip_damaged)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """Where the job stands on the source."""

    positions: Annotated[
        str | None,
        Option(
            "--positions",
            metavar="FILE|JSON|-",
            help='Spark\'s offset JSON, {"orders": {"0": 42}}: a file, the text itself, or - for '
            "stdin.",
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        Option(
            "--checkpoint",
            metavar="URL",
            help="The Spark job's checkpoint location; its pending batch counts.",
        ),
    ] = None

    def read(
        self, clusters: Clusters, *, ask_source: bool = True
    ) -> "tuple[Positions, Positions | None]":
        """Return the positions, and where the pending batch ends, if there is one.

        Raises:
            ForeignPositionsError: The checkpoint is of another cluster than the source.
        """
        from airflow_mm2_offsets.positions.checkpoint import read_checkpoint_of
        from airflow_mm2_offsets.spark.offsets import parse_offsets

        if (self.positions is None) == (self.checkpoint is None):
            number = "neither" if self.positions is None else "both"
            raise ConfigurationError(f"give either --positions or --checkpoint; {number} is given")
        if self.checkpoint is not None:
            checkpoint = read_checkpoint_of(
                clusters.pair,
                clusters.open(self.checkpoint),
                open_path=clusters.open,
                ask_source=ask_source,
            )
            return checkpoint.positions, checkpoint.pending
        return parse_offsets(read_text_option("--positions", self.positions or "")), None


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedJob:
    """The job that is to be moved: its homes, archive and the like are those of the file."""

    job: Annotated[
        str | None, Option("--job", metavar="NAME", help="The job's name in the file of jobs.")
    ] = None
    jobs: JobsFile = None

    def mover(self, policy: str, open_path: "Callable[[str], UPath]") -> "Mover | None":
        """Return what finds the move that would begin now; None if no job is named.

        Raises:
            ConfigurationError: The name or the file is missing or wrong.
        """
        from airflow_mm2_offsets.moves.move import Mover

        if not self.job and not self.jobs:
            return None
        job = find_job_of(self.job, self.jobs, "--job", open_path)
        return Mover(job, "", POLICIES[policy], open_path)


def find_job_of(
    name: str | None, jobs: str | None, called: str, open_path: "Callable[[str], UPath]"
) -> "SparkJob":
    """Return a job of a file of jobs.

    Args:
        name: The job's.
        jobs: The file.
        called: What the command line calls the name, or what could be given in its place.
        open_path: Makes a path of a location.

    Raises:
        ConfigurationError: The name or the file is not given, or the file has no such job.
    """
    from airflow_mm2_offsets.moves.jobs_file import find_job, read_jobs

    if not name or not jobs:
        raise ConfigurationError(f"give {called} with --jobs FILE")
    return find_job(read_jobs(open_path(jobs)), name, file=jobs)


def pair_of(move: "Move", pair: "ClusterPair") -> "ClusterPair":
    """Return the clusters as a move goes: against the copying where no other way copies.

    Raises:
        ConfigurationError: The settings are of other clusters.
    """
    way = move.here.cluster, move.there.cluster if move.there else ""
    aliases = pair.naming.source_alias, pair.naming.target_alias
    if {*aliases} == {*way}:
        return pair.towards(way[1])
    raise ConfigurationError(
        f"job {move.job.name} goes from {way[0]!r} to {way[1]!r}, and the settings have the "
        f"aliases {' and '.join(map(repr, aliases))}: give those of its clusters"
    )


def read_text_option(name: str, source: str) -> str:
    """Return the text of an option that is a file, JSON itself, or - for stdin.

    Raises:
        ConfigurationError: The file can't be read.
    """
    if source.lstrip().startswith("{"):
        return source
    try:
        if source == "-":
            return sys.stdin.read() if sys.stdin else ""
        return Path(source).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        # A text that was pasted in place of a file's name may hold secrets.
        shown = source if len(source) <= _PATH_LENGTH and source.isprintable() else "the file"
        raise ConfigurationError(
            f"{shown} can't be read: {reason}; give a file, JSON, or - for stdin", setting=name
        ) from None
