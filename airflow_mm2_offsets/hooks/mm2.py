"""The hook of connection type ``mm2``."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from airflow.providers.apache.kafka.hooks.base import KafkaBaseHook
from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook

from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.core import (
    FailoverPlan,
    Naming,
    Positions,
    ReplicationPolicy,
    SyncIndex,
    SyncsLocation,
)
from airflow_mm2_offsets.errors import ConfigurationError, Mm2OffsetsError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.config import admin_config
from airflow_mm2_offsets.service.pair import ClusterPair
from airflow_mm2_offsets.service.planning import DEFAULT_OPTIONS, PlanOptions, plan_failover
from airflow_mm2_offsets.service.probing import probe

_Choice = TypeVar("_Choice", ReplicationPolicy, SyncsLocation)


class Mm2OffsetHook(BaseHook):
    """Reads what MirrorMaker 2 says of two clusters, and translates offsets with it.

    The connection names two connections of type ``kafka`` (of Airflow's Kafka provider, with all
    that it does for credentials) and the MirrorMaker 2 settings that decide names.

    Args:
        mm2_conn_id: Id of a connection of type ``mm2``.
        timeout: Seconds until a broker or a Connect worker must have answered.
    """

    conn_name_attr = "mm2_conn_id"
    default_conn_name = "mm2_default"
    conn_type = "mm2"
    hook_name = "Kafka MirrorMaker 2"

    def __init__(self, mm2_conn_id: str = default_conn_name, *, timeout: float = 30.0) -> None:
        """Keep the settings; nothing is asked yet."""
        super().__init__()
        self.mm2_conn_id = mm2_conn_id
        self.timeout = timeout

    def get_conn(self) -> ClusterPair:
        """Return the pair of clusters that the connection names; nothing is asked of them.

        Raises:
            ConfigurationError: A connection does not exist, or a field of one is wrong.
        """
        connection = self._connection(self.mm2_conn_id, self.conn_type)
        extra = _extra(connection)
        location = self._choice(SyncsLocation.SOURCE, extra, "offset_syncs_topic_location")
        return ClusterPair(
            source=self._cluster("source", extra),
            target=self._cluster("target", extra),
            naming=self._naming(extra),
            syncs_location=location,
            connect=self._connect(connection, extra),
        )

    def get_index(self) -> SyncIndex:
        """Read the offset-syncs topic and return its syncs.

        Raises:
            SyncsTopicError: The topic is missing or holds no sync.
            ClusterUnreachableError: Its cluster does not answer.
        """
        return self.get_conn().read_syncs().index

    def plan(
        self,
        positions: Positions,
        *,
        pending: Positions | None = None,
        options: PlanOptions = DEFAULT_OPTIONS,
    ) -> FailoverPlan:
        """Translate a job's positions; see ``service.planning.plan_failover``."""
        return plan_failover(self.get_conn(), positions, pending=pending, options=options)

    def test_connection(self) -> tuple[bool, str]:
        """Tell what is reachable and what is not, for the Test button of the form."""
        try:
            pair = self.get_conn()
        except Mm2OffsetsError as error:
            return False, str(error)
        probed = probe(pair)
        text = "; ".join(f"{each.part}: {each.error or 'ok'}" for each in probed)
        return not any(each.error for each in probed), text

    def _naming(self, extra: Mapping[str, Any]) -> Naming:
        return Naming(
            source_alias=self._text("source", extra, "source_alias"),
            target_alias=self._text("target", extra, "target_alias"),
            policy=self._choice(ReplicationPolicy.DEFAULT, extra, "replication_policy"),
            separator=self._text(".", extra, "replication_policy_separator"),
        )

    def _connect(self, connection: Any, extra: Mapping[str, Any]) -> ConnectClient | None:  # noqa: ANN401 - see _connection
        url = self._text("", extra, "connect_url")
        if not url:
            return None
        try:
            return ConnectClient(
                url=url,
                username=connection.login or None,
                password=connection.password,
                timeout=self.timeout,
            )
        except ConfigurationError as error:
            raise ConfigurationError(
                f"connection {self.mm2_conn_id}: connect_url: {error}"
            ) from error

    def _cluster(self, side: str, extra: Mapping[str, Any]) -> KafkaCluster:
        field = f"{side}_kafka_conn_id"
        conn_id = self._text(f"kafka_{side}", extra, field)
        name = f"{side} cluster ({conn_id})"
        wanted_by = f", {field} of {self.mm2_conn_id},"
        connection = self._connection(conn_id, KafkaBaseHook.conn_type, wanted_by)
        admin_config(name, _extra(connection))
        try:
            # get_conn would make a client; what is wanted is the configuration, callbacks and all.
            config = _ConfigOnly(conn_id).get_conn  # type: ignore[no-untyped-call]
        except Exception as error:  # a refused callback, a missing library of a cloud: any kind
            raise ConfigurationError(
                f"connection {conn_id}{wanted_by} gives no configuration: {error}; correct its "
                f"extra, or what this machine lacks for it"
            ) from error
        return KafkaCluster(name=name, config=config, timeout=self.timeout)

    def _connection(self, conn_id: str, conn_type: str, wanted_by: str = "") -> Any:  # noqa: ANN401 - its class moved between releases
        try:
            connection = self.get_connection(conn_id)
        except AirflowNotFoundException as error:
            raise ConfigurationError(
                f"connection {conn_id}{wanted_by} does not exist; create it under Admin, "
                f"Connections, or name another one"
            ) from error
        if connection.conn_type != conn_type:
            raise ConfigurationError(
                f"connection {conn_id}{wanted_by} is of type {connection.conn_type!r}; give one "
                f"of type {conn_type!r}"
            )
        return connection

    def _text(self, default: str, extra: Mapping[str, Any], field: str) -> str:
        given = extra.get(field) or default
        if isinstance(given, str):
            return given
        raise ConfigurationError(
            f"connection {self.mm2_conn_id}: {field} is {given!r}; give a text"
        )

    def _choice(self, default: _Choice, extra: Mapping[str, Any], field: str) -> _Choice:
        kind = type(default)
        given = extra.get(field) or default
        try:
            return kind(given)
        except ValueError as error:
            raise ConfigurationError(
                f"connection {self.mm2_conn_id}: {field} is {given!r}; give one of "
                f"{', '.join(kind)}"
            ) from error


def _extra(connection: Any) -> dict[str, Any]:  # noqa: ANN401 - see Mm2OffsetHook._connection
    # Airflow's own reader takes what is no JSON for empty: defaults would be used in silence.
    try:
        extra = json.loads(connection.extra or "{}")
    except ValueError:
        extra = None
    if not isinstance(extra, dict):
        # The text stays out of the message, and of what caused it: it may hold a password.
        raise ConfigurationError(
            f"connection {connection.conn_id}: its extra is not a JSON object; correct it under "
            f"Admin, Connections"
        )
    return extra


class _ConfigOnly(KafkaBaseHook):
    """Airflow's Kafka hook, stopped before it makes a client."""

    def _get_client(self, config: dict[str, Any]) -> dict[str, Any]:
        return dict(config)
