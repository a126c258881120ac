"""``groups``: commits translated offsets for consumer groups on the target."""

from dataclasses import dataclass, replace
from typing import Annotated

from airflow_mm2_offsets.cli.clusters import ClusterOptions, find_clusters
from airflow_mm2_offsets.cli.command import answering, grouped
from airflow_mm2_offsets.cli.exit_codes import ExitCode
from airflow_mm2_offsets.cli.options import ArchiveOptions
from airflow_mm2_offsets.cli.output import Answer
from airflow_mm2_offsets.cli.params import Option
from airflow_mm2_offsets.cli.terminal import waiting
from airflow_mm2_offsets.groups import OffsetsFrom
from airflow_mm2_offsets.groups.selection import DEFAULT_EXCLUDE
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS

EXAMPLE = """\
\b
Examples:
  airflow-mm2-offsets groups --match 'orders-.*' --config mm2.toml
  airflow-mm2-offsets groups --match '.*' --offsets-from checkpoints --commit"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """Which groups, and what is allowed."""

    match: Annotated[
        str,
        Option("--match", metavar="REGEX", help="The groups, by their whole names on the source."),
    ]
    exclude: Annotated[str, Option("--exclude", metavar="REGEX", help="Groups to leave out.")] = (
        DEFAULT_EXCLUDE
    )
    offsets_from: Annotated[
        OffsetsFrom,
        Option(
            "--offsets-from",
            help="Who translates: this program, or MirrorMaker 2 in its checkpoints topic.",
        ),
    ] = OffsetsFrom.TRANSLATION
    commit: Annotated[
        bool, Option("--commit", help="Commit; without it, only tell what would be committed.")
    ] = False
    overwrite_others: Annotated[
        bool,
        Option(
            "--overwrite-others",
            help="Move commits too that a consumer or MirrorMaker 2 made; never backwards.",
        ),
    ] = False
    allow_rewind: Annotated[
        bool,
        Option("--allow-rewind", help="Move our commits back where a source group was rewound."),
    ] = False


@grouped
@answering
def groups(*, group: GroupOptions, archive: ArchiveOptions, pair_options: ClusterOptions) -> Answer:
    """Commit the groups' translated offsets on the target.

    A group with members there is left alone, and only our own commits are overwritten.
    """
    from airflow_mm2_offsets.core.group_offsets import CommitStatus, GroupRules
    from airflow_mm2_offsets.groups import parse_selection, sync_groups

    selection = parse_selection(group.match, group.exclude)
    clusters = find_clusters(pair_options)
    with waiting("Reading groups and translating their offsets"):
        report = sync_groups(
            clusters.pair,
            selection,
            offsets_from=group.offsets_from,
            rules=GroupRules(
                dry_run=not group.commit,
                overwrite_others=group.overwrite_others,
                allow_rewind=group.allow_rewind,
            ),
            options=replace(DEFAULT_OPTIONS, archive=archive.open(clusters)),
        )
    refused = report.count(CommitStatus.REFUSED) + report.count(CommitStatus.FAILED)
    return Answer(
        text=report.summary(),
        data=report.to_json(),
        exit_code=ExitCode.REFUSED if refused or report.unread else ExitCode.OK,
    )
