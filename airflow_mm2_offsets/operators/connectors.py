"""The operators that apply, start and stop MirrorMaker 2's connectors on Kafka Connect."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import Context

from airflow_mm2_offsets.connect.admin import ConnectorAdmin, TargetState
from airflow_mm2_offsets.connectors.apply import ConnectorChange, apply, compare, connect_of
from airflow_mm2_offsets.connectors.description import ConnectorKind, MirrorDescription
from airflow_mm2_offsets.errors import ConfigurationError, ConnectError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.polling import DeferrablePolling
from airflow_mm2_offsets.operators.settings import is_true
from airflow_mm2_offsets.triggers.connectors import ConnectorStateTrigger
from airflow_mm2_offsets.triggers.polling import NotYet

_ALL_KINDS = tuple(kind.value for kind in ConnectorKind)


class ConnectorTask(DeferrablePolling):
    """The base of operators that tell connectors something, and wait until they have done it.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2`` that names Kafka Connect.
        timeout: Seconds to wait at most.
        poll_interval: Seconds between two looks.
        deferrable: Wait in the triggerer; None: as ``[operators] default_deferrable`` says.
    """

    wait_for = ConnectorStateTrigger.wait_for
    error = ConnectError

    def __init__(
        self,
        *,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        timeout: float = 300.0,
        poll_interval: float = 2.0,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.mm2_conn_id = mm2_conn_id
        self.timeout = timeout
        self.poll_interval = poll_interval

    def admin(self, connector: str) -> ConnectorAdmin:
        """Return what changes a connector."""
        connect = connect_of(Mm2OffsetHook(str(self.mm2_conn_id)).get_conn())
        return ConnectorAdmin(connect=connect, name=connector)

    def wait_for_state(
        self, context: Context, connectors: Sequence[str], state: TargetState, **settings: Any
    ) -> dict[str, Any]:
        """Return the trigger's result, or defer until there is one."""
        trigger = ConnectorStateTrigger(
            mm2_conn_id=str(self.mm2_conn_id),
            connectors=connectors,
            state=state.value,
            deadline=time.time() + self.timeout,
            poll_interval=self.poll_interval,
            **settings,
        )
        event = trigger.look() if self.deferrable else trigger.wait()
        if isinstance(event, NotYet):
            self.wait_in_triggerer(trigger)
        return self.execute_complete(context, event)


class ApplyMirrorMakerOperator(ConnectorTask):
    """Creates or updates MirrorMaker 2's connectors by one description, and waits until they run.

    What differs is shown in the log, without secrets. A connector of another class or of other
    clusters under one of the names is refused. The task is done when connectors and tasks are
    RUNNING and the internal topics exist (offset syncs, checkpoints, heartbeats). May be repeated.

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

    template_fields: Sequence[str] = (
        *("topics", "topics_exclude", "groups", "name", "kinds", "mm2_conn_id", "is_dry_run"),
        *("settings", "source_settings", "checkpoint_settings", "heartbeat_settings"),
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
            settings=_texts(self.settings),
            settings_of={kind: _texts(getattr(self, f"{kind}_settings")) for kind in ConnectorKind},
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


class SetConnectorStateOperator(ConnectorTask):
    """Tells a connector to run, to pause or to stop, and waits until it and its tasks do so.

    Args:
        connector: Its name.
        state: ``RUNNING`` (resume), ``PAUSED``, or ``STOPPED`` (KIP-875, Connect 3.5): its tasks
            are gone then, and its offsets can be changed.
        kwargs: See ``ConnectorTask``.

    Returns:
        ``connectors`` and ``state``.

    Raises:
        ConfigurationError: ``state`` is none of these.
        ConnectError: There is no such connector, Connect refused, or it took too long.
        ClusterUnreachableError: Connect did not answer.
    """

    template_fields: Sequence[str] = ("connector", "state", "mm2_conn_id")

    def __init__(self, *, connector: str, state: str, **kwargs: Any) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.connector = connector
        self.state = state

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Tell it, and wait."""
        state = parse_state(self.task_id, self.state)
        self.admin(self.connector).set_state(state)
        return self.wait_for_state(context, [self.connector], state)


class RestartFailedTasksOperator(ConnectorTask):
    """Restarts a connector's failed parts, and only those (KIP-745), and waits until all run.

    What fails again and again fails the task when the time has passed, with the reason that the
    task's trace names.

    Args:
        connector: Its name.
        kwargs: See ``ConnectorTask``.

    Returns:
        ``connectors`` and ``state``.

    Raises:
        ConnectError: There is no such connector, Connect refused, or not all parts run.
        ClusterUnreachableError: Connect did not answer.
    """

    template_fields: Sequence[str] = ("connector", "mm2_conn_id")

    def __init__(self, *, connector: str, **kwargs: Any) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.connector = connector

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Restart, and wait."""
        self.admin(self.connector).restart_failed()
        return self.wait_for_state(context, [self.connector], TargetState.RUNNING)


def parse_state(task_id: str, value: object) -> TargetState:
    """Return the state that a field names.

    Raises:
        ConfigurationError: It names none.
    """
    try:
        return TargetState(str(value).upper())
    except ValueError as error:
        raise ConfigurationError(
            f"task {task_id}: state is {value!r}; give one of {', '.join(TargetState)}"
        ) from error


def _texts(settings: Mapping[str, Any] | None) -> dict[str, str]:
    """Return settings as Connect takes them: a truth value in Java's words."""
    return {
        str(name): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (settings or {}).items()
    }
