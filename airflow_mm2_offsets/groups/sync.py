"""Commits the offsets of the source's consumer groups for the same groups on the target."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import Direction
from airflow_mm2_offsets.core.group_offsets import DEFAULT_RULES, GroupPosition, GroupRules
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.groups.commit import commit_positions
from airflow_mm2_offsets.groups.from_checkpoints import positions_from_checkpoints
from airflow_mm2_offsets.groups.from_translation import positions_from_translation
from airflow_mm2_offsets.groups.report import GroupsReport
from airflow_mm2_offsets.groups.selection import GroupSelection, OffsetsFrom
from airflow_mm2_offsets.planning.options import DEFAULT_OPTIONS, PlanOptions


def sync_groups(
    pair: ClusterPair,
    selection: GroupSelection,
    *,
    offsets_from: OffsetsFrom = OffsetsFrom.TRANSLATION,
    rename: Mapping[str, str] | None = None,
    rules: GroupRules = DEFAULT_RULES,
    options: PlanOptions = DEFAULT_OPTIONS,
) -> GroupsReport:
    """Translate the groups' offsets, and commit them on the target.

    Args:
        pair: The clusters.
        selection: Which groups, by their names on the source.
        offsets_from: Who translates.
        rename: Names on the target of groups that have another name there.
        rules: What the user decides about the rules of ``core.group_rules``.
        options: What the user decides about the translation.

    Raises:
        ConfigurationError: The pair leads back, its copy keeps offsets, or checkpoints are to
            follow a rewind.
        SyncsTopicError: There is no sync, or no checkpoints topic.
        Mm2OffsetsError: See ``plan_failover``.
    """
    _check(pair, offsets_from, rules)
    by_checkpoints = offsets_from is OffsetsFrom.CHECKPOINTS
    translate = positions_from_checkpoints if by_checkpoints else positions_from_translation
    translated = translate(pair, selection, options)
    positions = _renamed(translated.positions, rename or {})
    decisions = commit_positions(pair.target, positions, rules)
    return GroupsReport(
        offsets_from=offsets_from.value,
        rules=rules,
        decisions=decisions,
        reads=translated.reads,
        unread=translated.unread,
    )


def _renamed(positions: Iterable[GroupPosition], rename: Mapping[str, str]) -> list[GroupPosition]:
    return [replace(each, group=rename.get(each.group, each.group)) for each in positions]


def _check(pair: ClusterPair, offsets_from: OffsetsFrom, rules: GroupRules) -> None:
    if not pair.has_syncs:
        raise ConfigurationError(
            f"the mapping of the pair is {pair.mapping}: this copy keeps offsets; commit for its "
            f"groups by the product's own group sync (cluster mirroring, Cluster Linking)",
            setting="mapping",
        )
    if pair.direction is not Direction.FORWARD:
        raise ConfigurationError(
            "groups are synced as MirrorMaker 2 copies; for the way home take the connection of "
            "the MirrorMaker 2 that copies back"
        )
    if offsets_from is OffsetsFrom.CHECKPOINTS and rules.allow_rewind:
        raise ConfigurationError(
            "a checkpoint does not tell a rewound group from an older state of it; take "
            "offsets_from=translation to follow a rewind",
            setting="allow_rewind",
        )
