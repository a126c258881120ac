"""The hook of connection type ``mm2``: the clusters of operators, triggers and REST plugin."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from airflow.providers.apache.kafka.hooks.base import KafkaBaseHook
from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook

from airflow_mm2_offsets.clusters import ClusterPair, checked_logins
from airflow_mm2_offsets.collected_errors import Problems
from airflow_mm2_offsets.config.entries import Entries, Entry
from airflow_mm2_offsets.config.keys import (
    CLUSTERS,
    INTERNAL_SEPARATOR,
    MAPPING,
    POLICY,
    SEPARATOR,
    SOURCE_ALIAS,
    SYNCS_LOCATION,
    TARGET_ALIAS,
)
from airflow_mm2_offsets.config.reader import SettingsReader
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.connection_check import check_connection
from airflow_mm2_offsets.core import OffsetMapping, ReplicationPolicy, SyncIndex, SyncsLocation
from airflow_mm2_offsets.errors import (
    ConfigurationError,
    Mm2OffsetsError,
    did_you_mean,
)
from airflow_mm2_offsets.hooks.form import field_behaviour, form_widgets
from airflow_mm2_offsets.hooks.kafka_config import kafka_config
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.syncs import read_syncs

_SETTINGS = {
    "source_alias": SOURCE_ALIAS,
    "target_alias": TARGET_ALIAS,
    "replication_policy": POLICY,
    "replication_policy_separator": SEPARATOR,
    "offset_syncs_topic_location": SYNCS_LOCATION,
    "replication_policy_internal_topic_separator_enabled": INTERNAL_SEPARATOR,
    "connect_url": "connect.url",
    "mapping": MAPPING,
}
"""The fields of the form, and what a settings file calls them."""
_FIELDS = frozenset({*_SETTINGS, "source_kafka_conn_id", "target_kafka_conn_id"})


class Mm2OffsetHook(BaseHook):
    """Finds the two clusters of a connection, and MirrorMaker 2's offset syncs.

    The connection names two connections of type ``kafka`` (of Airflow's Kafka provider, with its
    ways to log in) and the MirrorMaker 2 settings that decide names.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2``.
        timeout: Seconds until a broker or a Connect worker must have answered.
        to: The cluster that a job moves to, by its alias; None or empty: the connection's target.
            With its source it is the way home, by the syncs of the same MirrorMaker 2.
    """

    conn_name_attr = "mm2_conn_id"
    default_conn_name = "mm2_default"
    conn_type = "mm2"
    hook_name = "Kafka MirrorMaker 2"

    def __init__(
        self,
        mm2_conn_id: str = default_conn_name,
        *,
        timeout: float = 30.0,
        to: str | None = None,
    ) -> None:
        """Keep the settings; send no request yet."""
        super().__init__()
        self.mm2_conn_id = mm2_conn_id
        self.timeout = timeout
        self.to = to

    @classmethod
    def get_connection_form_widgets(cls) -> dict[str, Any]:
        """Return the fields of the connection's form, for Airflow 3.1."""
        return form_widgets()

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Return what becomes of Airflow's own fields in the form, for Airflow 3.1."""
        return field_behaviour()

    def get_conn(self) -> ClusterPair:
        """Return the pair of clusters that the connection names; no request is sent.

        Raises:
            ConfigurationError: A connection does not exist, or fields are wrong; all are named.
        """
        connection = self._connection(self.mm2_conn_id, self.conn_type)
        extra = _extra(connection)
        problems = Problems()
        problems.attempt(partial(self._check_fields, extra))
        settings = SettingsReader(self._entries(extra, problems))
        location = partial(settings.choice, SYNCS_LOCATION, SyncsLocation.SOURCE)
        policy = partial(settings.choice, POLICY, ReplicationPolicy.DEFAULT)
        for setting in (location, policy, partial(settings.flag, INTERNAL_SEPARATOR, default=True)):
            problems.attempt(setting)
        clusters = {
            side: cluster
            for side in CLUSTERS
            if (cluster := problems.attempt(partial(self._cluster, side, extra)))
        }
        connect = problems.attempt(lambda: self._connect(connection, settings.connect_url()))
        mapping = problems.attempt(settings.mapping)
        problems.raise_all()
        pair = ClusterPair(
            source=clusters["source"],
            target=clusters["target"],
            naming=settings.naming(location()),
            syncs_location=location(),
            connect=connect,
            mapping=mapping or OffsetMapping.OFFSET_SYNCS,
        )
        return checked_logins(pair).towards(self.to)

    def get_index(self) -> SyncIndex:
        """Read the offset-syncs topic and return its syncs.

        Raises:
            SyncsTopicError: The topic is missing or holds no sync.
            ClusterUnreachableError: Its cluster does not answer.
        """
        pair = self.get_conn()
        return read_syncs(pair.syncs_cluster, pair.syncs_topic).index

    def test_connection(self) -> tuple[bool, str]:
        """Tell which clusters and services answer, for the Test button of the form."""
        try:
            pair = self.get_conn()
        except Mm2OffsetsError as error:
            return False, str(error)
        parts = check_connection(pair)
        text = "; ".join(f"{part.part}: {part.error or 'ok'}" for part in parts)
        return not any(part.error for part in parts), text

    def _check_fields(self, extra: Mapping[str, Any]) -> None:
        """Refuse unknown fields: a misspelt setting would silently keep its default."""
        otherwise = f"the fields are {', '.join(sorted(_FIELDS))}"
        if unknown := [
            f"{field} is not a field of an mm2 connection; "
            + did_you_mean(field, _FIELDS, otherwise=otherwise)
            for field in extra.keys() - _FIELDS
        ]:
            raise ConfigurationError(f"connection {self.mm2_conn_id}: {'; '.join(sorted(unknown))}")

    def _entries(self, extra: Mapping[str, Any], problems: Problems) -> Entries:
        """Return the form's fields under the names of a settings file."""
        return {
            key: Entry(value=value, origin=f"connection {self.mm2_conn_id}: {field}")
            for field, key in _SETTINGS.items()
            if (value := problems.attempt(partial(self._text, extra, field)))
        }

    def _connect(self, connection: Any, url: str | None) -> ConnectClient | None:  # noqa: ANN401 - see _connection
        if url is None:
            return None
        return ConnectClient(
            url=url,
            username=connection.login or None,
            password=connection.password,
            timeout=self.timeout,
        )

    def _cluster(self, side: str, extra: Mapping[str, Any]) -> KafkaCluster:
        field = f"{side}_kafka_conn_id"
        conn_id = self._text(extra, field, default=f"kafka_{side}")
        name = f"{side} cluster ({conn_id})"
        named_by = f", {field} of {self.mm2_conn_id},"
        connection = self._connection(conn_id, KafkaBaseHook.conn_type, named_by)
        config = kafka_config(name, _extra(connection), conn_id, named_by)
        return KafkaCluster(name=name, config=config, timeout=self.timeout)

    def _connection(self, conn_id: str, conn_type: str, named_by: str = "") -> Any:  # noqa: ANN401 - its class moved between releases
        """Return a connection of a type; ``named_by`` tells in messages which field names it."""
        try:
            connection = self.get_connection(conn_id)
        except AirflowNotFoundException as error:
            raise ConfigurationError(
                f"connection {conn_id}{named_by} does not exist; create it under Admin, "
                f"Connections, or name another one"
            ) from error
        if connection.conn_type != conn_type:
            raise ConfigurationError(
                f"connection {conn_id}{named_by} is of type {connection.conn_type!r}; give one "
                f"of type {conn_type!r}"
            )
        return connection

    def _text(self, extra: Mapping[str, Any], field: str, *, default: str = "") -> str:
        value = extra.get(field)
        if value is None or value == "":
            return default
        if isinstance(value, str):
            return value
        # A list or an object may hold a password, if a user put Kafka settings in place of a name.
        shown = repr(value) if isinstance(value, int | float) else f"a {type(value).__name__}"
        raise ConfigurationError(f"connection {self.mm2_conn_id}: {field} is {shown}; give a text")


def _extra(connection: Any) -> dict[str, Any]:  # noqa: ANN401 - see Mm2OffsetHook._connection
    # Airflow's extra_dejson returns {} for invalid JSON: defaults would be used silently.
    try:
        extra = json.loads(connection.extra or "{}")
    except ValueError:
        extra = None
    if not isinstance(extra, dict):
        # Neither the message nor its cause holds the text: it may hold a password.
        raise ConfigurationError(
            f"connection {connection.conn_id}: its extra is not a JSON object; correct it under "
            f"Admin, Connections"
        )
    return extra
