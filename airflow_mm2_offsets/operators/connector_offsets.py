"""The operators that read, alter and reset the offsets of a MirrorSourceConnector (KIP-875)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connectors.apply import connect_of
from airflow_mm2_offsets.connectors.entries import Entries, overlay, parse_entries
from airflow_mm2_offsets.connectors.offsets import (
    change_offsets,
    find_changes,
    read_stopped_offsets,
    require_words,
)
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links


class ReadConnectorOffsetsOperator(BaseOperator):
    """Reads all offsets of a stopped connector: the backup before they are changed.

    The log has them too, as JSON: clearing this task after the change replaces its XCom.

    Args:
        connector: Its name.
        mm2_conn_id: Id of a connection of type ``mm2`` that names Kafka Connect.

    Returns:
        ``connector``, and ``offsets`` as Connect tells them: the last copied source offsets.

    Raises:
        ConnectError: It is not STOPPED, does not exist, or Connect is older than 3.5.
        ClusterUnreachableError: Connect did not answer.
    """

    operator_extra_links = page_links("connection")
    template_fields: Sequence[str] = ("connector", "mm2_conn_id")

    def __init__(
        self,
        *,
        connector: str,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.connector = connector
        self.mm2_conn_id = mm2_conn_id

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Read them."""
        connect = connect_of(Mm2OffsetHook(self.mm2_conn_id).get_conn())
        offsets = read_stopped_offsets(connect, self.connector)
        self.log.info("Offsets of connector %s: %s", self.connector, json.dumps(offsets))
        return {"connector": self.connector, "offsets": offsets}


class AlterConnectorOffsetsOperator(BaseOperator):
    """Alters offsets of a stopped MirrorSourceConnector, or puts a backup of them back.

    A lower offset makes MirrorMaker 2 copy records a second time, behind what the target holds; a
    higher one makes it skip records. Each has to be confirmed by its word. Afterwards plans are as
    safe as before, but wider until the copies have caught up: see docs/connect.md. May be
    repeated: a try that finds the wanted offsets changes nothing.

    Args:
        connector: Its name.
        offsets: Topic to partition to the LAST source offset that counts as copied (MirrorMaker 2
            goes on with the next), None to forget it; or ``offsets`` of an earlier
            ``ReadConnectorOffsetsOperator``, to put them back. May be JSON text.
        backup: ``offsets`` of the ``ReadConnectorOffsetsOperator`` that ran just before. The
            connector must still have them.
        confirm: Which of ``copies again`` and ``skips records`` are wanted.
        mm2_conn_id: Id of a connection of type ``mm2`` that names Kafka Connect.

    Returns:
        ``connector``, ``backup`` (to put back), ``offsets`` (as they are now), ``changes`` (each
        with ``partition``, ``before``, ``after``, ``effect``), ``changed`` (False: an earlier try
        has done it) and ``warnings``.

    Raises:
        ConfigurationError: An effect is not confirmed, or the offsets have another form.
        PositionError: A partition does not exist on the source, or an offset is not one of it.
        ConnectError: The connector is not STOPPED, has other offsets than the backup, or Connect is
            older than 3.6.
        ClusterUnreachableError: Connect or the source did not answer.
    """

    operator_extra_links = page_links("connection")
    template_fields: Sequence[str] = ("connector", "offsets", "backup", "confirm", "mm2_conn_id")

    def __init__(
        self,
        *,
        connector: str,
        offsets: Mapping[str, Any] | Entries | str,
        backup: Entries | str,
        confirm: str | Sequence[str] = (),
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.connector = connector
        self.offsets = offsets
        self.backup = backup
        self.confirm = confirm
        self.mm2_conn_id = mm2_conn_id

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Say what it means, and change them."""
        pair = Mm2OffsetHook(self.mm2_conn_id).get_conn()
        backup = parse_entries(self.backup, pair.naming.source_alias)
        after = self.wanted(pair, backup)
        changes = find_changes(pair, self.connector, backup, after)
        confirm = [self.confirm] if isinstance(self.confirm, str) else self.confirm
        warnings = require_words(changes, confirm)
        for sentence in warnings:
            self.log.warning("Connector %s: %s", self.connector, sentence)
        self.log.info("Offsets before: %s", json.dumps(backup))
        changed = change_offsets(pair, self.connector, backup=backup, after=after)
        return {
            "connector": self.connector,
            "backup": backup,
            "offsets": after,
            "changes": [change.to_json() for change in changes],
            "changed": changed,
            "warnings": warnings,
        }

    def wanted(self, pair: ClusterPair, backup: Entries) -> list[dict[str, Any]]:
        """Return all offsets that the connector is to have."""
        return overlay(backup, parse_entries(self.offsets, pair.naming.source_alias))


class ResetConnectorOffsetsOperator(AlterConnectorOffsetsOperator):
    """Forgets all offsets of a stopped MirrorSourceConnector: it copies everything again.

    Args:
        connector: Its name.
        backup: See ``AlterConnectorOffsetsOperator``.
        confirm: Must be ``copies again``.
        mm2_conn_id: Id of a connection of type ``mm2`` that names Kafka Connect.

    Returns:
        See ``AlterConnectorOffsetsOperator``.

    Raises:
        ConfigurationError: It is not confirmed.
        ConnectError: See ``AlterConnectorOffsetsOperator``.
        ClusterUnreachableError: Connect did not answer.
    """

    template_fields: Sequence[str] = ("connector", "backup", "confirm", "mm2_conn_id")

    def __init__(self, *, backup: Entries | str, **kwargs: Any) -> None:
        """Keep the settings."""
        super().__init__(offsets=(), backup=backup, **kwargs)

    def wanted(
        self,
        pair: ClusterPair,  # noqa: ARG002 - of the base
        backup: Entries,  # noqa: ARG002
    ) -> list[dict[str, Any]]:
        """Return none."""
        return []
