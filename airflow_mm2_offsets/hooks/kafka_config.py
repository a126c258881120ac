"""What a connection of type ``kafka`` says to librdkafka; ``Mm2OffsetHook`` asks it."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from airflow.providers.apache.kafka.hooks.base import KafkaBaseHook
from airflow.sdk.log import mask_secret

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.client_properties import to_librdkafka
from airflow_mm2_offsets.kafka.config import Setting, admin_config
from airflow_mm2_offsets.kafka.redaction import secrets_of


def kafka_config(
    cluster: str, extra: Mapping[str, Any], conn_id: str, named_by: str
) -> dict[str, Any]:
    """Return the configuration of a client, and let Airflow hide its secrets.

    Args:
        cluster: The name of the cluster in error messages.
        extra: The connection's extra: client properties by Java's names or librdkafka's.
        conn_id: The connection's id.
        named_by: Which field names the connection, as messages say it after the id.

    Raises:
        ConfigurationError: See ``to_librdkafka``; or Airflow refuses a callback, or a library that
            the connection needs is missing.
    """
    _mask(extra)
    admin_config(cluster, extra)
    translated = to_librdkafka(cluster, extra)
    _mask(translated)
    try:
        # Airflow's own hook would make a client; only the configuration is needed here.
        config: dict[str, Any] = _ConfigOnly(conn_id, translated).get_conn
    except Exception as error:  # a refused callback, a missing library of a cloud provider
        raise ConfigurationError(
            f"connection {conn_id}{named_by} gives no configuration: {error}; correct its "
            f"extra, or what this machine lacks for it"
        ) from error
    return config


def _mask(properties: Mapping[str, Any]) -> None:
    """Let Airflow hide the secrets: it masks fields by their names, of which few are Kafka's."""
    for secret in secrets_of(properties):
        mask_secret(secret)


class _ConfigOnly(KafkaBaseHook):
    """Airflow's Kafka hook for translated properties, stopped before it makes a client.

    It imports the callbacks that the administrator allows, and adds those of Google and Amazon.
    """

    def __init__(self, conn_id: str, properties: Mapping[str, Setting]) -> None:
        super().__init__(conn_id)  # type: ignore[no-untyped-call]
        self._properties = properties

    def get_connection(self, conn_id: str) -> Any:  # type: ignore[override] # noqa: ANN401 - see Mm2OffsetHook._connection
        return SimpleNamespace(conn_id=conn_id, extra_dejson=dict(self._properties))

    def _get_client(self, config: dict[str, Any]) -> dict[str, Any]:
        return dict(config)
