"""The operator that applies MirrorMaker 2's connectors on Kafka Connect."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.connect.admin import TargetState
from airflow_mm2_offsets.connectors.apply import ConnectorChange, apply, compare
from airflow_mm2_offsets.connectors.description import ConnectorKind, MirrorDescription
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.operators.connector_states import ConnectorTask
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.secret_settings import SecretSettings
from airflow_mm2_offsets.operators.settings import is_true

_ALL_KINDS = tuple(kind.value for kind in ConnectorKind)


class ApplyMirrorMakerOperator(SecretSettings, ConnectorTask):
    """Creates or updates MirrorMaker 2's connectors by one description, and waits until they run.

    What differs is shown in the log, without secrets; Airflow stores the rendered settings without
    them, too. A connector of another class or of other clusters under one of the names is refused.
    The task is done when connectors and tasks are RUNNING and the internal topics exist (offset
    syncs, checkpoints, heartbeats). May be repeated.

    Args:
        topics: Which topics are copied: names or Java's patterns.
        topics_exclude: Of those, which not; None: MirrorMaker 2's default.
        groups: Which consumer groups' offsets are translated: names or Java's patterns.
        name: The connectors are called ``<name>-source``, ``<name>-checkpoint``,
            ``<name>-heartbeat``.
        kinds: Which of ``source``, ``checkpoint`` and ``heartbeat``; ``source`` alone for a further
            part of topics that are split between several connectors.
        settings: Further settings of all connectors, by Kafka's names. Addresses and logins are the
            connection's unless they stand here: Connect may reach brokers by other names. Give
            secrets as references to a config provider (KIP-297); others are stored as they are in
            Connect's topic, and its REST API shows them.
        source_settings: Further settings of the source connector; they win over ``settings``.
        checkpoint_settings: Likewise.
        heartbeat_settings: Likewise.
        is_dry_run: Show what differs, and change nothing. May be a templated string.
        kwargs: See ``ConnectorTask``.

    Returns:
        ``connectors`` (their names), ``state``, ``is_dry_run``, and ``changes``: for each connector
        ``name``, ``kind``, ``action`` (create, update, none) and ``differences``, without secrets.

    Raises:
        ConfigurationError: See ``connectors.apply.compare``.
        ConnectError: Connect refused, or the connectors did not run in time.
        ClusterUnreachableError: Connect or a cluster did not answer.
    """

    secret_fields = ("settings", "source_settings", "checkpoint_settings", "heartbeat_settings")
    template_fields: Sequence[str] = (
        *("topics", "topics_exclude", "groups", "name", "kinds", "mm2_conn_id", "is_dry_run"),
        *secret_fields,
    )

    def __init__(
        self,
        *,
        topics: Sequence[str],
        topics_exclude: Sequence[str] | None = None,
        groups: Sequence[str] = (".*",),
        name: str = "mm2",
        kinds: Sequence[str] = _ALL_KINDS,
        settings: Mapping[str, str] | None = None,
        source_settings: Mapping[str, str] | None = None,
        checkpoint_settings: Mapping[str, str] | None = None,
        heartbeat_settings: Mapping[str, str] | None = None,
        is_dry_run: bool | str = False,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.topics = topics
        self.topics_exclude = topics_exclude
        self.groups = groups
        self.name = name
        self.kinds = kinds
        self.settings = settings
        self.source_settings = source_settings
        self.checkpoint_settings = checkpoint_settings
        self.heartbeat_settings = heartbeat_settings
        self.is_dry_run = is_dry_run

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Compare, show, apply and wait."""
        pair = Mm2OffsetHook(str(self.mm2_conn_id)).get_conn()
        is_dry_run = is_true(self, "is_dry_run")
        changes = compare(pair, self.description())
        for change in changes:
            self.log.info("%s", change)
        report = {
            "is_dry_run": is_dry_run,
            "changes": [change.to_json() for change in changes],
        }
        if is_dry_run:
            return {"connectors": [each.name for each in changes], "state": None, **report}
        apply(pair, changes)
        return self._wait(context, changes, report)

    def description(self) -> MirrorDescription:
        """Return the description of the mirror, from settings that are rendered.

        Raises:
            ConfigurationError: A setting is invalid.
        """
        lists = {name: self._words(name) for name in ("topics", "groups", "kinds")}
        unknown = set(lists["kinds"]) - set(ConnectorKind)
        if unknown or not lists["kinds"]:
            raise ConfigurationError(
                f"task {self.task_id}: kinds is {list(lists['kinds'])!r}; give some of "
                f"{', '.join(ConnectorKind)}"
            )
        return MirrorDescription(
            topics=lists["topics"],
            topics_exclude=None if self.topics_exclude is None else self._words("topics_exclude"),
            groups=lists["groups"],
            name=self.name,
            kinds=[ConnectorKind(each) for each in lists["kinds"]],
            settings=_texts(self.rendered("settings")),
            settings_of={kind: _texts(self.rendered(f"{kind}_settings")) for kind in ConnectorKind},
        )

    def _words(self, field: str) -> list[str]:
        value = getattr(self, field)
        words = value.split(",") if isinstance(value, str) else [str(each) for each in value]
        return [word.strip() for word in words if word.strip()]

    def _wait(
        self, context: Context, changes: Sequence[ConnectorChange], report: Mapping[str, Any]
    ) -> dict[str, Any]:
        return self.wait_for_state(
            context,
            [each.name for each in changes],
            TargetState.RUNNING,
            with_tasks=[each.name for each in changes if each.kind is not ConnectorKind.CHECKPOINT],
            kinds=[each.kind.value for each in changes],
            report=report,
        )


def _texts(settings: Mapping[str, Any] | None) -> dict[str, str]:
    """Return settings as Connect takes them: a truth value in Java's words."""
    return {
        str(name): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (settings or {}).items()
    }
