"""``archive run`` and ``archive show``: offset syncs kept on storage."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from airflow_mm2_offsets.archive import COMPACT_OVER
from airflow_mm2_offsets.cli.clusters import ClusterOptions, find_clusters, open_path
from airflow_mm2_offsets.cli.command import answering, grouped
from airflow_mm2_offsets.cli.numbers import Number
from airflow_mm2_offsets.cli.output import Answer
from airflow_mm2_offsets.cli.params import Argument, Option
from airflow_mm2_offsets.cli.terminal import waiting
from airflow_mm2_offsets.errors import ArchiveError, ConfigurationError

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive import PairIdentity, SyncArchive
    from airflow_mm2_offsets.archive.history import ArchivedSyncs
    from airflow_mm2_offsets.archive.update import ArchiveRun

RUN_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets archive run s3://bucket/mm2-syncs/orders --config mm2.toml"""

SHOW_EXAMPLE = """\
\b
Example:
  airflow-mm2-offsets archive show s3://bucket/mm2-syncs/orders"""

_HEADER = ("partition", "syncs", "first upstream", "last upstream", "last downstream")

SkipDamaged = Annotated[
    bool, Option("--skip-damaged", help="Go on without damaged or missing files.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepOptions:
    """How long to keep syncs, and in how many files."""

    compact_over: Annotated[
        int,
        Option(
            "--compact-over",
            metavar="FILES",
            type=Number(int, 1),
            help="Make one file of more than these.",
        ),
    ] = COMPACT_OVER
    keep_days: Annotated[
        float | None,
        Option(
            "--keep-days",
            metavar="DAYS",
            type=Number(float, 0, 36_500),
            help="Keep syncs so long; else all.",
        ),
    ] = None

    def compact(self, sync_archive: "SyncArchive") -> int:
        """Compact the archive, and return the number of files that became one."""
        keep = None if self.keep_days is None else timedelta(days=self.keep_days)
        return sync_archive.compact(over=self.compact_over, keep=keep)


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
    pair_options: ClusterOptions,
) -> Answer:
    """Add the topic's newer syncs to an archive."""
    from airflow_mm2_offsets.archive.update import archive_syncs

    clusters = find_clusters(pair_options)
    sync_archive = clusters.archive(url, skip_damaged=skip_damaged)
    if sync_archive is None:
        raise ConfigurationError("no archive was given: give its URL, or `archive` in the settings")
    with waiting("Reading offset syncs"):
        result = archive_syncs(clusters.pair, sync_archive)
        compacted = keep.compact(sync_archive)
    return Answer(
        text=_run_text(str(sync_archive.location), result, compacted),
        data={**result.to_json(), "compacted": compacted},
        has_advice=False,
    )


@grouped
@answering
def show(
    *,
    url: Annotated[str, Argument(metavar="URL", help="The archive's folder.")],
    skip_damaged: SkipDamaged = False,
) -> Answer:
    """Show the content of an archive, without reading a cluster."""
    from airflow_mm2_offsets.archive import SyncArchive

    snapshot = SyncArchive(open_path(url), skip_damaged=skip_damaged).read()
    if snapshot.pair is None:
        raise ArchiveError(
            "there is no archive; check the location, or make one by `archive run`", file=url
        )
    return Answer(
        text=_text(url, snapshot.pair, snapshot),
        data=_to_json(url, snapshot.pair, snapshot),
        has_advice=False,
    )


def _run_text(location: str, result: "ArchiveRun", compacted: int) -> str:
    lines = [
        f"{location}: {result.new_syncs} new syncs, {result.total} in all, as of {result.as_of}",
        *(f"Note: {note}" for note in result.notes),
    ]
    if result.skipped:
        lines.append(f"Skipped {result.skipped} records of the topic that are not offset syncs")
    if compacted:
        lines.append(f"Compacted {compacted} files into one")
    return "\n".join(lines)


def _text(url: str, pair: "PairIdentity", snapshot: "ArchivedSyncs") -> str:
    from airflow_mm2_offsets.archive.incremental_read import iso_time
    from airflow_mm2_offsets.core.summary import table

    lines = [
        f"Archive: {url}, {len(snapshot.segments)} files",
        f"Source cluster: {pair.source}",
        f"Target cluster: {pair.target}",
        f"Syncs: {len(snapshot)} of {pair.syncs_topic}, read {len(snapshot.runs)} times",
        f"As of: {iso_time(snapshot.as_of or 0)}",
        *(f"Damaged: {file}" for file in snapshot.damaged),
        *(
            f"{partition}: earlier syncs are missing; earlier positions are refused"
            for partition in sorted(snapshot.history_starts)
        ),
    ]
    rows = [
        (f"{row['topic']}[{row['partition']}]", row["syncs"], *list(row.values())[3:])
        for row in _partitions(snapshot)
    ]
    return "\n".join(lines) + f"\n\n{table(_HEADER, rows)}"


def _partitions(snapshot: "ArchivedSyncs") -> Iterator[dict[str, str | int]]:
    for (topic, partition), syncs in sorted(snapshot.index().partitions.items()):
        if len(syncs):
            yield {
                "topic": topic,
                "partition": partition,
                "syncs": len(syncs),
                "first_upstream": str(syncs.first.upstream),
                "last_upstream": str(syncs.last.upstream),
                "last_downstream": str(syncs.last.downstream),
            }


def _to_json(url: str, pair: "PairIdentity", snapshot: "ArchivedSyncs") -> dict[str, object]:
    from airflow_mm2_offsets.archive.incremental_read import iso_time

    return {
        "location": url,
        "source": pair.source,
        "target": pair.target,
        "syncs_topic": pair.syncs_topic,
        "as_of": iso_time(snapshot.as_of or 0),
        "syncs": len(snapshot),
        "files": len(snapshot.segments),
        "runs": len(snapshot.runs),
        "incarnations": [incarnation.number for incarnation in snapshot.incarnations],
        "damaged": [*snapshot.damaged],
        "cut": [
            {"topic": topic, "partition": number}
            for topic, number in sorted(snapshot.history_starts)
        ],
        "partitions": [*_partitions(snapshot)],
    }
