"""The options of ``translate`` and ``plan``, and what they mean to the service."""

import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

from typer import Option

from airflow_mm2_offsets.cli.where import Clusters
from airflow_mm2_offsets.core import OnUnmapped, Positions, Strategy
from airflow_mm2_offsets.core.times import parse_zoned
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.service.fallback import FallbackOptions
from airflow_mm2_offsets.service.plan_options import DEFAULT_OPTIONS, PlanOptions
from airflow_mm2_offsets.spark.checkpoint import read_checkpoint
from airflow_mm2_offsets.spark.offsets import parse_offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """What an answer may rest on."""

    strategy: Annotated[
        Strategy,
        Option(
            help="Which target position to take: only safe loses nothing; linear is the formula "
            "of older tools, kafka what MirrorMaker 2 answers."
        ),
    ] = Strategy.SAFE
    read_source: Annotated[
        bool,
        Option(
            "--read-source/--no-read-source",
            help="Ask the source too: positions are checked, records matched by content.",
        ),
    ] = True
    sole_writer: Annotated[
        bool,
        Option(
            "--sole-writer",
            help="Your word that only MirrorMaker 2 writes to the target's topics, in order, that "
            "they are not compacted, and that no transform makes two copies of one record differ: "
            "then records may be counted.",
        ),
    ] = False
    changed_records: Annotated[
        bool,
        Option(
            "--changed-records",
            help="A transform changes records on the way, so that a record may differ from its "
            "copy. Needless where Connect can be asked.",
        ),
    ] = False
    max_bytes: Annotated[
        int,
        Option(
            "--max-bytes",
            metavar="BYTES",
            min=0,
            help="How much of each cluster's records may be read as evidence; 0 reads none.",
        ),
    ] = DEFAULT_OPTIONS.max_bytes
    archive: Annotated[
        str | None,
        Option("--archive", metavar="URL", help="Archive of syncs that the topic has no more."),
    ] = None
    skip_damaged: Annotated[
        bool, Option("--skip-damaged", help="Go on without damaged files of the archive.")
    ] = False

    def with_fallback(self, clusters: Clusters, fallback: FallbackOptions) -> PlanOptions:
        """Return them as the service takes them."""
        return PlanOptions(
            strategy=self.strategy,
            read_source=self.read_source,
            sole_writer=self.sole_writer,
            changed_records=self.changed_records,
            max_bytes=self.max_bytes,
            archive=clusters.archive(self.archive, skip_damaged=self.skip_damaged),
            fallback=fallback,
        )


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

    def read(self, clusters: Clusters) -> tuple[Positions, Positions | None]:
        """Return the positions, and where the pending batch ends, if there is one."""
        if (self.positions is None) == (self.checkpoint is None):
            given = "neither" if self.positions is None else "both"
            raise ConfigurationError(f"give either --positions or --checkpoint; {given} is given")
        if self.checkpoint is not None:
            found = read_checkpoint(clusters.open(self.checkpoint))
            return found.positions, found.pending
        return parse_offsets(_text(self.positions or "")), None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmappedOptions:
    """What to do with partitions that are refused."""

    on_unmapped: Annotated[
        OnUnmapped,
        Option(
            help="A partition with no answer: fail, or start it at the target's earliest or "
            "latest offset, or by timestamp. The plan names each that took it."
        ),
    ] = OnUnmapped.FAIL
    time: Annotated[
        str | None,
        Option(
            "--unmapped-time",
            metavar="TIME",
            help="For timestamp: how old the position is, such as 2026-11-21T09:10:00+00:00; "
            "else the time of the source's record there.",
        ),
    ] = None
    margin: Annotated[
        float,
        Option(
            "--unmapped-margin",
            metavar="SECONDS",
            min=0,
            help="For timestamp: start so much earlier.",
        ),
    ] = 300.0

    def fallback(self) -> FallbackOptions:
        """Return them as the service takes them."""
        return FallbackOptions(
            on_unmapped=self.on_unmapped,
            time=_time(self.time) if self.time else None,
            margin=timedelta(seconds=self.margin),
        )


def _text(given: str) -> str:
    if given == "-":
        return sys.stdin.read()
    if given.lstrip().startswith("{"):
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no UTF-8"
        raise ConfigurationError(
            f"--positions {given}: can't be read: {reason}; give a file, JSON, or - for stdin"
        ) from error


def _time(text: str) -> datetime:
    time = parse_zoned(text)
    if time is None:
        raise ConfigurationError(
            f"--unmapped-time is {text!r}; give a time with its zone, such as "
            f"2026-11-21T09:10:00+00:00"
        )
    return time
