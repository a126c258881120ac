"""``archive run`` and ``archive show``: offset syncs kept on storage."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer

from airflow_mm2_offsets.archive import COMPACT_OVER, PairIdentity, SyncArchive
from airflow_mm2_offsets.archive.incremental_read import iso_time
from airflow_mm2_offsets.archive.update import ArchiveRun, archive_syncs
from airflow_mm2_offsets.cli.clusters import ClusterOptions, find_clusters, open_path
from airflow_mm2_offsets.cli.command import answering, grouped
from airflow_mm2_offsets.cli.output import Answer, waiting
from airflow_mm2_offsets.core.summary import table
from airflow_mm2_offsets.errors import ArchiveError, ConfigurationError

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive.history import ArchivedSyncs

RUN_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets archive run s3://bucket/mm2-syncs/orders --config mm2.toml"""

SHOW_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets archive show s3://bucket/mm2-syncs/orders"""

archive = Typer(no_args_is_help=True, rich_markup_mode=None)

_HEADER = ("partition", "syncs", "first upstream", "last upstream", "last downstream")

SkipDamaged = Annotated[
    bool, Option("--skip-damaged", help="Go on without damaged or missing files.")
]


@archive.callback()
def _group() -> None:
    """Keep offset syncs when their topic is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepOptions:
    """How long to keep syncs, and in how many files."""

    compact_over: Annotated[
        int,
        Option("--compact-over", metavar="FILES", min=1, help="Make one file of more than these."),
    ] = COMPACT_OVER
    keep_days: Annotated[
        float | None,
        Option("--keep-days", metavar="DAYS", min=0, help="Keep syncs so long; else all."),
    ] = None

    def compact(self, held: SyncArchive) -> int:
        """Compact the archive, and return the number of files that became one."""
        keep = None if self.keep_days is None else timedelta(days=self.keep_days)
        return held.compact(over=self.compact_over, keep=keep)


@archive.command(epilog=RUN_EXAMPLE)
@grouped
@answering
def run(
    *,
    url: Annotated[
        str | None,
        Argument(
            metavar="URL",
            help="A folder for this pair alone; else that of the settings.",
        ),
    ] = None,
    keep: KeepOptions,
    skip_damaged: SkipDamaged = False,
    where: ClusterOptions,
) -> Answer:
    """Add the topic's newer syncs to an archive."""
    clusters = find_clusters(where)
    held = clusters.archive(url, skip_damaged=skip_damaged)
    if held is None:
        raise ConfigurationError("no archive was given: give its URL, or `archive` in the settings")
    with waiting("Reading offset syncs"):
        done = archive_syncs(clusters.pair, held)
        compacted = keep.compact(held)
    return Answer(
        text=_run_text(held, done, compacted), data={**done.to_json(), "compacted": compacted}
    )


@archive.command(epilog=SHOW_EXAMPLE)
@grouped
@answering
def show(
    *,
    url: Annotated[str, Argument(metavar="URL", help="The archive's folder.")],
    skip_damaged: SkipDamaged = False,
) -> Answer:
    """Show the content of an archive, without reading a cluster."""
    held = SyncArchive(open_path(url), skip_damaged=skip_damaged).read()
    if held.pair is None:
        raise ArchiveError(
            f"{url} holds no archive; check the location, or make one by `archive run`"
        )
    return Answer(text=_text(url, held.pair, held), data=_to_json(url, held.pair, held))


def _run_text(held: SyncArchive, done: ArchiveRun, compacted: int) -> str:
    lines = [
        f"{held.location}: {done.new_syncs} new syncs, {done.total} in all, as of {done.as_of}",
        *(f"Note: {note}" for note in done.notes),
    ]
    if done.skipped:
        lines.append(f"Skipped {done.skipped} records of the topic that are not offset syncs")
    if compacted:
        lines.append(f"Compacted {compacted} files into one")
    return "\n".join(lines)


def _text(url: str, pair: PairIdentity, held: "ArchivedSyncs") -> str:
    lines = [
        f"Archive: {url}, {len(held.segments)} files",
        f"Source cluster: {pair.source}",
        f"Target cluster: {pair.target}",
        f"Syncs: {len(held)} of {pair.syncs_topic}, read {len(held.runs)} times",
        f"As of: {iso_time(held.as_of or 0)}",
        *(f"Damaged: {each}" for each in held.damaged),
        *(
            f"{partition}: earlier syncs are missing; earlier positions are refused"
            for partition in sorted(held.history_starts)
        ),
    ]
    rows = [
        (f"{row['topic']}[{row['partition']}]", row["syncs"], *list(row.values())[3:])
        for row in _partitions(held)
    ]
    return "\n".join(lines) + f"\n\n{table(_HEADER, rows)}"


def _partitions(held: "ArchivedSyncs") -> Iterator[dict[str, str | int]]:
    for (topic, partition), syncs in sorted(held.index().partitions.items()):
        if len(syncs):
            yield {
                "topic": topic,
                "partition": partition,
                "syncs": len(syncs),
                "first_upstream": str(syncs.first.upstream),
                "last_upstream": str(syncs.last.upstream),
                "last_downstream": str(syncs.last.downstream),
            }


def _to_json(url: str, pair: PairIdentity, held: "ArchivedSyncs") -> dict[str, object]:
    return {
        "location": url,
        "source": pair.source,
        "target": pair.target,
        "syncs_topic": pair.syncs_topic,
        "as_of": iso_time(held.as_of or 0),
        "syncs": len(held),
        "files": len(held.segments),
        "runs": len(held.runs),
        "generations": [each.number for each in held.incarnations],
        "damaged": [*held.damaged],
        "cut": [
            {"topic": topic, "partition": number} for topic, number in sorted(held.history_starts)
        ],
        "partitions": [*_partitions(held)],
    }
