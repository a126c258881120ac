"""The steps that commit offsets for consumer groups, which find them when they start."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator, Context

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core.group_offsets import GroupRules
from airflow_mm2_offsets.core.summary import fold
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.groups import (
    GroupSelection,
    OffsetsFrom,
    parse_selection,
    publish_positions,
    sync_groups,
)
from airflow_mm2_offsets.groups.report import GroupsReport
from airflow_mm2_offsets.groups.selection import DEFAULT_EXCLUDE
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.observability import emit_groups
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.plan_settings import parse_trial_settings
from airflow_mm2_offsets.operators.settings import check_location, given, parse_mapping, parse_truth
from airflow_mm2_offsets.planning.options import PlanOptions
from airflow_mm2_offsets.positions.checkpoint import read_checkpoint_of
from airflow_mm2_offsets.spark.checkpoint import Checkpoint

_MAX_LINES = 1000
"""Offsets that an XCom lists: Airflow keeps one for each run in its database."""


class SyncConsumerGroupsOperator(BaseOperator):
    """Commits the offsets of the source's consumer groups, translated, on the target.

    What MirrorMaker 2's ``sync.group.offsets.enabled`` does, with our translation and with guards:
    see docs/consumer-groups.md. A group with members on the target is left alone, a commit never
    goes backwards, and only commits with our marker are overwritten. A retry repeats nothing.

    Args:
        include: A regular expression of whole names of groups on the source: ``orders-.*``.
        exclude: Another, of those to leave out; the default is that of MirrorMaker 2.
        offsets_from: ``translation``: ours, by the offset syncs. ``checkpoints``: MirrorMaker 2's,
            from its checkpoints topic; it needs the target alone. Checkpoints hold no topic id, and
            after the target's topic was recreated an old one skips records: so they are compared
            with the offset syncs, or with the ``archive``. Where neither can be read, the report
            counts them as ``unconfirmed``. See docs/consumer-groups.md before you take them.
        rename: Names on the target of groups that have another name there.
        rules: A mapping, or JSON, with fields of ``GroupRules``: ``dry_run`` (decide, and commit
            nothing), ``overwrite_others`` (move commits without our marker too, never backwards),
            ``allow_rewind`` (follow a source group that was rewound).
        archive: Location of the archive that ``ArchiveSyncsOperator`` keeps.
        options: See ``TranslateOffsetsOperator``; ``sole_writer`` and ``skip_damaged`` count here.
        mm2_conn_id: Id of a connection of type ``mm2``.

    Returns:
        The report (``groups.report``): ``totals``, ``offsets`` with a line for each group and
        topic-partition (1,000 at most, those first that need a look), ``reads`` and ``summary``.
        Beside it the XComs ``summary`` (one paragraph) and ``table`` (its lines).

    Raises:
        ConfigurationError: A regular expression or another setting is wrong.
        Mm2OffsetsError: See ``groups.sync.sync_groups``.
    """

    operator_extra_links = page_links("connection")
    template_fields: Sequence[str] = (
        "include",
        "exclude",
        "offsets_from",
        "rename",
        "rules",
        "archive",
        "options",
        "mm2_conn_id",
    )

    def __init__(
        self,
        *,
        include: str,
        exclude: str = DEFAULT_EXCLUDE,
        offsets_from: str = OffsetsFrom.TRANSLATION.value,
        rename: Mapping[str, str] | None = None,
        rules: Mapping[str, Any] | str | None = None,
        archive: str | None = None,
        options: Mapping[str, Any] | str | None = None,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.include = include
        self.exclude = exclude
        self.offsets_from = offsets_from
        self.rename = rename
        self.rules = rules
        self.archive = archive
        self.options = options
        self.mm2_conn_id = mm2_conn_id

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Translate, check and commit."""
        selection, offsets_from = self.parse_settings()
        report = sync_groups(
            Mm2OffsetHook(self.mm2_conn_id).get_conn(),
            selection,
            offsets_from=offsets_from,
            rename=self.rename,
            rules=_rules(self),
            options=self._options(),
        )
        return _show(self, context, report)

    def parse_settings(self) -> tuple[GroupSelection, OffsetsFrom]:
        """Return which groups are meant, and who translates.

        Raises:
            ConfigurationError: A setting is invalid.
        """
        check_location(self, "archive")
        try:
            offsets_from = OffsetsFrom(self.offsets_from)
        except ValueError as error:
            raise ConfigurationError(
                f"task {self.task_id}: offsets_from is {self.offsets_from!r}; give one of "
                f"{', '.join(OffsetsFrom)}"
            ) from error
        return parse_selection(self.include, given(self.exclude) or ""), offsets_from

    def _options(self) -> PlanOptions:
        settings = parse_trial_settings(self)
        if not (location := given(self.archive)):
            return settings.options
        archive = SyncArchive(storage_path(location), skip_damaged=settings.skip_damaged)
        return replace(settings.options, archive=archive)


class PublishPositionsOperator(BaseOperator):
    """Commits a Spark job's positions for a consumer group of the cluster that the job reads.

    Lag tools see the job then, and MirrorMaker 2 makes checkpoints of the group. Nothing else may
    use the group: the same guards hold as for ``SyncConsumerGroupsOperator``.

    Args:
        checkpoint: The job's checkpoint location; empty: the task is skipped.
        group_id: The group. Spark itself never commits for it.
        side: ``source`` or ``target``: the cluster of ``mm2_conn_id`` that the job reads.
        rules: See ``SyncConsumerGroupsOperator``; ``allow_rewind`` follows a checkpoint that was
            rewound.
        mm2_conn_id: Id of a connection of type ``mm2``.

    Returns:
        The report, as ``SyncConsumerGroupsOperator`` returns it.

    Raises:
        AirflowSkipException: No checkpoint is named.
        CheckpointError: The checkpoint can't be read.
        ForeignPositionsError: The job of the checkpoint reads another cluster.
        Mm2OffsetsError: See ``groups.publish.publish_positions``.
    """

    operator_extra_links = page_links("connection")
    template_fields: Sequence[str] = (
        "checkpoint",
        "group_id",
        "side",
        "rules",
        "mm2_conn_id",
    )

    def __init__(
        self,
        *,
        checkpoint: str,
        group_id: str,
        side: str = "source",
        rules: Mapping[str, Any] | str | None = None,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.checkpoint = checkpoint
        self.group_id = group_id
        self.side = side
        self.rules = rules
        self.mm2_conn_id = mm2_conn_id

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Read the checkpoint, check and commit."""
        if not given(self.checkpoint):
            raise AirflowSkipException("no checkpoint is named: no positions are published")
        if self.side not in {"source", "target"}:
            raise ConfigurationError(
                f"task {self.task_id}: side is {self.side!r}; give source or target"
            )
        pair = Mm2OffsetHook(self.mm2_conn_id).get_conn()
        report = publish_positions(
            pair.source if self.side == "source" else pair.target,
            self.group_id,
            self._read(pair).positions,
            self.checkpoint,
            rules=_rules(self),
        )
        return _show(self, context, report)

    def _read(self, pair: ClusterPair) -> Checkpoint:
        return read_checkpoint_of(
            pair.towards(None if self.side == "source" else pair.naming.source_alias),
            storage_path(self.checkpoint),
            open_path=storage_path,
        )


def _rules(task: BaseOperator) -> GroupRules:
    values = parse_mapping(task, "rules", [each.name for each in fields(GroupRules)])
    return GroupRules(
        **{name: parse_truth(task.task_id, name, value) for name, value in values.items()}
    )


def _show(task: BaseOperator, context: Context, report: GroupsReport) -> dict[str, Any]:
    """Log, push and send what was done."""
    content = report.to_json(max_lines=_MAX_LINES)
    emit_groups(content)
    context["ti"].xcom_push(key="summary", value=fold(content["summary"]))
    # Airflow's page shows a text as one paragraph, and a list line by line.
    context["ti"].xcom_push(key="table", value=content["summary"].splitlines())
    log = task.log.warning if report.unconfirmed or report.unread else task.log.info
    log("%s", content["summary"])
    return content
