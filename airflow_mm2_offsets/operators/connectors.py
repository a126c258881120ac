"""The operator that applies MirrorMaker 2's connectors on Kafka Connect."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.connect.admin import TargetState
from airflow_mm2_offsets.connectors.apply import ConnectorChange, apply, compare
from airflow_mm2_offsets.connectors.description import ConnectorKind, MirrorDescription
from airflow_mm2_offsets.errors import ConfigurationError, as_class
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.operators.connector_states import ConnectorTask
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.secret_settings import SecretSettings
from airflow_mm2_offsets.operators.settings import is_true


class ApplyMirrorMakerOperator(SecretSettings, ConnectorTask):
    """Creates or updates MirrorMaker 2's connectors by one description, and waits until they run.

    What differs is shown in the log, without secrets; Airflow stores the rendered settings without
    them, too. A connector of another class or of other clusters under one of the names is refused.
    The task is done when connectors and tasks are RUNNING and the internal topics exist (offset
    syncs, checkpoints, heartbeats). May be repeated.

    Args:
        mirror: A ``MirrorDescription`` (``connectors.description``), or a mapping with its fields:
            ``topics``, and any of ``topics_exclude``, ``groups``, ``name`` (the connectors are
            called ``<name>-source``, ``<name>-checkpoint`` and ``<name>-heartbeat``), ``kinds``,
            ``settings`` and ``settings_of`` (further settings of ``source``, ``checkpoint`` or
            ``heartbeat`` alone). Addresses and logins are the connection's unless they stand in the
            settings: Connect may reach brokers by other names. Give secrets as references to a
            config provider (KIP-297); others are stored as they are in Connect's topic, and its
            REST API shows them.
        is_dry_run: Show what differs, and change nothing. May be a templated string.
        kwargs: See ``ConnectorTask``.

    Returns:
        ``connectors`` (their names), ``state``, ``is_dry_run``, and ``changes``: for each connector
        ``name``, ``kind``, ``action`` (create, update, none) and ``differences``, without secrets.

    Raises:
        ConfigurationError: See ``MirrorDescription.from_json`` and ``connectors.apply.compare``.
        ConnectError: Connect refused, or the connectors did not run in time.
        ClusterUnreachableError: Connect or a cluster did not answer.
    """

    secret_fields = ("mirror",)
    template_fields: Sequence[str] = ("mirror", "mm2_conn_id", "is_dry_run")

    def __init__(
        self,
        *,
        mirror: MirrorDescription | Mapping[str, Any],
        is_dry_run: bool | str = False,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.mirror = mirror.to_json() if isinstance(mirror, MirrorDescription) else mirror
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
        """Return the description of the mirror, rendered.

        Raises:
            ConfigurationError: It is wrong; see ``MirrorDescription.from_json``.
        """
        try:
            return MirrorDescription.from_json(self.rendered("mirror"))
        except ConfigurationError as error:
            message = f"task {self.task_id}: mirror: {error}"
            raise as_class(ConfigurationError, error, message) from error

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
