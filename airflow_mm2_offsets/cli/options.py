"""The options of ``translate`` and ``plan`` beside ``PlanOptions``."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from airflow_mm2_offsets.cli.clusters import Clusters
from airflow_mm2_offsets.cli.params import Option
from airflow_mm2_offsets.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive import SyncArchive
    from airflow_mm2_offsets.core import Positions

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
