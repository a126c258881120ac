"""Names the right that a refused request lacks, and the command that grants it.

``kafka.session`` calls it: a broker only says that something was not authorized.
"""

from collections.abc import Mapping

from confluent_kafka import KafkaError

from airflow_mm2_offsets.core.acls import Acl, Operation, Resource
from airflow_mm2_offsets.kafka.advice import mechanism
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS

_RESOURCES: Mapping[int, Resource] = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Resource.TOPIC,
    KafkaError.GROUP_AUTHORIZATION_FAILED: Resource.GROUP,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: Resource.CLUSTER,
}
_ANY = {Resource.TOPIC: "NAME", Resource.GROUP: "*", Resource.CLUSTER: "kafka-cluster"}
"""The name where the refused request named none, or several."""


def missing_acl(code: int, operation: Operation, name: str | None) -> Acl | None:
    """Return the right whose lack a broker reports; None if its error is about something else.

    Args:
        code: Kafka's error code.
        operation: What the request needs: a broker does not tell.
        name: The topic or the group of the request, if it named one.
    """
    resource = _RESOURCES.get(code)
    if resource is None:
        return None
    return Acl(resource=resource, name=name or _ANY[resource], operation=operation)


def describe_missing(acl: Acl, config: Mapping[str, object]) -> str:
    """Return who lacks a right, and how an administrator grants it, as a sentence."""
    principal = principal_of(config)
    command = acl.command(principal or "User:NAME", str(config[BOOTSTRAP_SERVERS]))
    return (
        f"{principal or 'the principal of this connection'} lacks {acl}; an administrator grants "
        f"it: {command} (airflow-mm2-offsets acls prints all that a task needs)"
    )


def principal_of(config: Mapping[str, object]) -> str | None:
    """Return the principal of a login by user and password; None where only the broker knows.

    A token's or a certificate's principal depends on the broker's settings.
    """
    user = config.get("sasl.username")
    name = mechanism(config).upper()
    if not user or not (name == "PLAIN" or name.startswith("SCRAM-")):
        return None
    return f"User:{user}"
